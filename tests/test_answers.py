"""The answer of any chain of flows: legal events, and the text that its flows said, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigbrain.agents import Agent
from bigbrain.answers import Answer, Given, Writing
from bigbrain.brain import Brain
from bigbrain.chat import Chat, Reply
from bigbrain.engine.records import END, Claim
from bigbrain.errors import ModelBroke
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started, checked, collect, replay, replay_part
from bigbrain.flows import Flow, respond
from bigbrain.messages import Message, Part, Request, Response, Text, Thinking, ToolCall, Usage, user
from bigbrain.program import Program
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.states import RunState
from bigbrain.turns import Turn

Way = Literal["text", "pieces", "stream", "relay"]


@dataclass(frozen=True)
class Act:
    """What a flow does once: it says some pieces in one way; `breaks` cuts it short, which the handler survives."""

    way: Way
    pieces: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    breaks: bool = False

    def do(self, turn: Turn) -> None:
        match self.way:
            case "text":
                turn.reply("".join(self.pieces))
            case "pieces":
                self._survive(lambda: turn.reply(self._broken(self.pieces)))
            case "stream":
                stream = turn.stream()
                if stream is None:
                    turn.reply(self.pieces)
                    return
                for piece in self.pieces:
                    stream.write(piece)
            case "relay":
                events = replay(Response(parts=self.parts, stop="calls" if self.calls else "end"))
                self._survive(
                    lambda: turn.relay(Reply(iter(self._broken(list(events)[:-1] if self.breaks else events))))
                )

    def _broken(self, items: object) -> Iterator[object]:
        yield from items
        if self.breaks:
            raise ModelBroke

    def _survive(self, act: object) -> None:
        if not self.breaks:
            act()
            return
        with pytest.raises(ModelBroke):
            act()

    @property
    def text(self) -> str:
        """What the client is to read of it."""
        if self.way == "relay":
            return "".join(part.text for part in self.parts if isinstance(part, Text))
        return "".join(self.pieces)

    @property
    def calls(self) -> list[str]:
        return [part.id for part in self.parts if isinstance(part, ToolCall)]

    @property
    def made(self) -> bool:
        """Whether a message comes of it."""
        return bool(self.text) or (self.way == "relay" and bool(self.parts) and not self.breaks)


class Tape:
    """A log in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, event: Event) -> None:
        self.events.append(event)


@dataclass
class Told:
    """What came of a run."""

    events: list[Event] = field(default_factory=list)
    messages: tuple[bytes, ...] = ()
    state: bytes = b""


def carry_out(flow: Flow) -> Told:
    """All steps of a run, one after the other, each from what the last one left on record."""
    program = Brain("b", flow).program(Settings())
    told = Told([Started("r", "b")], state=msgspec.json.encode(RunState()))
    path = program.first("b")
    while path != END:
        claim = Claim(
            run_id="r",
            path=path,
            attempt=1,
            fence=1,
            seq=1,
            flow="b",
            plan=program.fingerprint("b"),
            state=told.state,
            request=msgspec.json.encode(Request(messages=(user("go"),))),
            messages=told.messages,
        )
        tape = Tape()
        outcome = Program.run(program, claim, tape, Scope())
        assert outcome.status in ("running", "done"), outcome
        told.events += [*tape.events, *outcome.events]
        told.messages += outcome.messages
        told.state, path = outcome.state, outcome.next
    return told


def acting(acts: list[Act], number: int) -> Flow:
    def handler(turn: Turn, chat: Chat) -> None:
        for act in acts:
            act.do(turn)

    return Flow(Agent(name=f"a{number}", handler=handler))


texts = st.text(alphabet="ab\n é", max_size=3)
pieces = st.lists(texts, max_size=3).map(tuple)
parts = st.lists(
    st.one_of(
        texts.map(Text), st.just(Thinking("hm", {"x": {"signature": "s"}})), st.just(ToolCall("id", "read", "{}"))
    ),
    max_size=3,
).map(tuple)
acts = st.one_of(
    st.builds(Act, st.just("text"), pieces),
    st.builds(Act, st.just("pieces"), pieces, breaks=st.booleans()),
    st.builds(Act, st.just("stream"), pieces),
    st.builds(Act, st.just("relay"), parts=parts, breaks=st.booleans()),
)


def any_flow(chain: list[list[Act] | None]) -> bool:
    """Whether a chain can be built: one that begins with `respond` is a fault of the wiring."""
    return chain[0] is not None


chains = st.lists(st.one_of(st.lists(acts, max_size=3), st.none()), min_size=1, max_size=6).filter(any_flow)


def wired(chain: list[list[Act] | None]) -> list[list[Act] | None]:
    """The same chain with an id of its own for each call and no broken call, whose text nobody could use."""
    number = iter(range(1000))

    def own(act: Act) -> Act:
        kept = [part for part in act.parts if not (act.breaks and isinstance(part, ToolCall))]
        named = [
            msgspec.structs.replace(part, id=f"c{next(number)}") if isinstance(part, ToolCall) else part
            for part in kept
        ]
        return Act(act.way, act.pieces, tuple(named), act.breaks)

    return [None if link is None else [own(act) for act in link] for link in chain]


def expected(chain: list[list[Act] | None]) -> tuple[str, list[str]]:
    """The answer's text and its calls, told from the chain alone."""
    if None in chain:
        last = len(chain) - 1 - chain[::-1].index(None)
        flows = [link for link in chain[:last] if link is not None]
        told = [act for link in flows for act in link]
    else:
        flows = [link for link in chain if link is not None]
        said = [[act for act in link if act.made] for link in flows]
        told = said[-1] or [act for link in said for act in link][-1:]
    calls = [call for link in flows for act in link for call in act.calls]
    return "\n\n".join(act.text for act in told if act.text), calls


@settings(max_examples=100, deadline=None)
@given(chains.map(wired))
def test_the_answer_of_any_chain_is_legal_and_says_what_its_flows_said(chain: list[list[Act] | None]) -> None:
    flows = [respond if link is None else acting(link, number) for number, link in enumerate(chain)]
    flow = flows[0]
    for link in flows[1:]:
        flow = flow >> link

    told = carry_out(flow)

    answer = collect(checked(told.events))
    text, calls = expected(chain)
    assert answer.text == text
    assert sorted(call.id for call in answer.calls) == sorted(calls)
    assert answer.stop == ("calls" if calls else "end")
    assert all(part.text for part in answer.parts if isinstance(part, Text))


@pytest.mark.parametrize("part", [ToolCall("c0", "read", "{}"), Text()])
def test_what_is_not_given_of_a_relayed_answer_does_not_end_up_in_a_part_that_broke_off(part: ToolCall | Text) -> None:
    answer, events = live()
    writing = Writing(answer)
    writing.write("a")
    writing.break_off()

    answer.relay([*replay_part(0, part), Finished("calls")], calls=False)

    assert events == [Opened(0, Text()), Delta(0, "a"), Closed(0)]


NOTHING = Given()


def live(given: Given = NOTHING, *backlog: Message) -> tuple[Answer, list[Event]]:
    events: list[Event] = []
    return Answer(given, events.append, backlog), events


def test_the_blank_line_comes_with_the_first_piece() -> None:
    answer, events = live(Given(parts=2, text=True))
    writing = Writing(answer)
    writing.write("a")
    writing.write("b")
    writing.close()

    assert events == [Opened(2, Text()), Delta(2, "\n\na"), Delta(2, "b"), Closed(2)]


def test_a_text_of_nothing_opens_no_part() -> None:
    answer, events = live()
    writing = Writing(answer)
    writing.write("")

    assert (writing.close(), events) == ("", [])


def test_what_was_said_before_in_the_stage_goes_first() -> None:
    answer, events = live(Given(), Message("assistant", (Text("early"),)))
    writing = Writing(answer)
    writing.write("late")
    writing.close()

    assert collect([Started("r", "m"), *events, Finished("end")]).text == "early\n\nlate"


def test_a_closed_writing_takes_no_more() -> None:
    answer, _ = live()
    writing = Writing(answer)
    writing.close()

    with pytest.raises(ValueError, match=r"open another one with `turn\.stream\(\)`"):
        writing.write("a")


@pytest.mark.parametrize("target", [True, False])
@pytest.mark.parametrize(("piece", "error"), [("\ud800", ValueError), (5, TypeError), (b"a", TypeError)])
def test_what_no_log_can_carry_is_refused_where_it_is_given(target: bool, piece: str, error: type[Exception]) -> None:
    answer, events = live()
    writing = Writing(answer if target else None)

    with pytest.raises(error):
        writing.write(piece)

    assert events == []
    assert writing.close() == ""


def test_the_part_of_a_relayed_answer_that_breaks_off_can_be_gone_on_with_until_something_else_comes() -> None:
    def broken() -> Iterator[Event]:
        yield Started("x", "m")
        yield Opened(0, Text())
        yield Delta(0, "so far")
        raise ModelBroke

    answer, events = live()
    with pytest.raises(ModelBroke):
        answer.relay(broken(), calls=True)

    assert events == [Opened(0, Text()), Delta(0, "so far")]
    writing = Writing(answer)
    writing.write("else")
    assert events[2:] == [Closed(0), Opened(1, Text()), Delta(1, "\n\nelse")]
    answer.settle()
    answer.settle()
    assert events[5:] == [Closed(1)]


def test_calls_that_are_left_out_leave_no_gap_in_the_numbers() -> None:
    parts = (Thinking("t"), ToolCall("c", "read", "{}"), Text("x"), ToolCall("d", "read"), Text("y"))
    answer, events = live()
    answer.relay(replay(Response(parts=parts)), calls=False)
    answer.finish([], Usage())

    assert collect(checked([Started("r", "m"), *events])).parts == (Thinking("t"), Text("x"), Text("y"))


def test_a_signature_stays_with_its_thinking() -> None:
    events = [
        Started("x", "m"),
        Opened(0, Thinking()),
        Delta(0, "t"),
        Closed(0, {"anthropic": {"signature": "s"}}),
        Finished("end"),
    ]
    answer, given_events = live(Given(parts=3))
    answer.relay(events, calls=True)

    assert given_events == [Opened(3, Thinking()), Delta(3, "t"), Closed(3, {"anthropic": {"signature": "s"}})]


def test_a_call_that_the_client_has_is_not_given_twice() -> None:
    call = ToolCall("c", "read", "{}")
    answer, events = live()
    answer.relay(replay(Response(parts=(call,), stop="calls")), calls=True)
    answer.finish([call], Usage(1, 2))

    assert collect(checked([Started("r", "m"), *events])).parts == (call,)
    assert events[-1] == Finished("calls", Usage(1, 2))


@pytest.mark.parametrize(
    ("given", "owed", "stop"),
    [
        (Given(stop="calls"), (), "end"),
        (Given(stop="length"), (ToolCall("c", "f"),), "length"),
        (Given(stop="refusal"), (), "refusal"),
        (Given(), (ToolCall("c", "f"),), "calls"),
    ],
)
def test_the_answer_stops_for_calls_exactly_when_it_holds_some(
    given: Given, owed: tuple[ToolCall, ...], stop: str
) -> None:
    answer, events = live(given)
    answer.finish(owed, Usage())

    assert isinstance(events[-1], Finished)
    assert events[-1].stop == stop
