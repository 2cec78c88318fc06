"""Random brains: whatever a tree of flows is, its events are legal and its text is what the rules say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.flows import All, Flow, Select, respond
from bigbrain.models import FixedModel
from bigbrain.turns import Turn
from tests.house import living


@dataclass(frozen=True)
class Said:
    """A flow that replies with texts in one of the ways there are, and may select."""

    how: str
    texts: tuple[str, ...]
    select: str = ""


@dataclass(frozen=True)
class Stage:
    """A `respond`."""


@dataclass(frozen=True)
class Choice:
    """A Select of two members."""

    a: tuple[Node, ...]
    b: tuple[Node, ...]
    default: str = ""


@dataclass(frozen=True)
class Both:
    """An All of two members."""

    first: Said
    second: Said


Node = Said | Stage | Choice | Both

words = st.sampled_from(["one", "two words", "🦊", "a\n\nb", ""])
said = st.builds(
    Said,
    st.sampled_from(["reply", "pieces", "stream", "relay"]),
    st.lists(words, max_size=2).map(tuple),
    st.sampled_from(["", "", "a", "b"]),
)
leaf = st.one_of(said, said, st.just(Stage()), st.builds(Both, said, said))
choice = st.builds(Choice, *[st.lists(leaf, max_size=2).map(tuple)] * 2, st.sampled_from(["", "a"]))
brains = st.lists(st.one_of(leaf, leaf, choice), min_size=1, max_size=5).filter(
    lambda nodes: any(isinstance(node, (Said, Both)) for node in nodes)
)


def flow_of(nodes: tuple[Node, ...] | list[Node]) -> Flow | None:
    flow: Flow | None = None
    for node in nodes:
        one = _flow(node)
        flow = one if flow is None else flow >> one
    return flow


def _flow(node: Node) -> Flow:
    match node:
        case Stage():
            return respond
        case Both(first, second):
            return All(_flow(first), _flow(second))
        case Choice(a, b, default):
            members = [(flow_of(nodes) or _flow(Said("reply", ()))).named(id) for id, nodes in (("a", a), ("b", b))]
            return Select(*members, default=default)
        case Said():
            return _saying(node)


def _saying(said: Said) -> Flow:
    @agent
    def handler(turn: Turn, chat: Chat) -> None:
        if said.select:
            turn.select(said.select)
        for text in said.texts:
            stream = turn.stream() if said.how == "stream" else None
            if stream is not None:
                with stream:
                    for piece in text:
                        stream.write(piece)
            elif said.how == "relay":
                turn.relay(chat.ask(text))
            else:
                turn.reply(iter(text) if said.how == "pieces" else text)

    return Flow(handler, model=Echo())


class Echo:
    """A model that answers with the question."""

    def ask(self, request, scope):
        yield from FixedModel(request.messages[-1].text).ask(request, scope)


@dataclass
class Reference:
    """The rules, said once more and simply."""

    told: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    everything: list[str] = field(default_factory=list)
    responded: bool = False
    selected: str | None = None

    def play(self, nodes: tuple[Node, ...] | list[Node]) -> None:
        for node in nodes:
            match node:
                case Stage():
                    self.told += self.untold
                    self.untold = []
                    self.responded = True
                case Said():
                    self.say(list(node.texts))
                    self.selected = node.select or self.selected
                case Both(first, second):
                    self.say([*first.texts, *second.texts])
                    self.selected = first.select or second.select or self.selected
                case Choice(a, b, default):
                    taken = self.selected or default
                    self.selected = None if self.selected else self.selected
                    if taken:
                        self.play(a if taken == "a" else b)
                        if not (a if taken == "a" else b):
                            self.say([])

    def say(self, texts: list[str]) -> None:
        spoken = [text for text in texts if text]
        self.untold += spoken
        self.everything += spoken
        self.last = spoken

    @property
    def answer(self) -> str:
        if self.responded:
            return "\n\n".join(self.told)
        return "\n\n".join(self.last or self.everything[-1:])


def conflicts(nodes: tuple[Node, ...] | list[Node]) -> Iterator[bool]:
    """Whether two at once may select differently, which is an error and tested elsewhere."""
    for node in nodes:
        if isinstance(node, Both):
            yield len({one.select for one in (node.first, node.second)} - {""}) > 1
        if isinstance(node, Choice):
            yield from conflicts(node.a)
            yield from conflicts(node.b)


@settings(max_examples=60, deadline=None)
@given(brains.filter(lambda nodes: not any(conflicts(nodes))))
def test_the_text_of_a_random_brain_is_what_the_rules_say(nodes: list[Node]) -> None:
    flow = flow_of(nodes)
    assert flow is not None
    assume(not Brain("b", flow).faults())
    reference = Reference()
    reference.play(nodes)
    with living(Brain("b", flow)) as house:
        answer = house.ask("go")

    assert answer.text == reference.answer
