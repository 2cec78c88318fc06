"""Values that a run cannot keep fail in the step that made them, with their place named."""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import StrEnum

import pytest

from bigbrain import All, Brain, Chat, FixedModel, Flow, Select, Turn, agent, respond, tool
from bigbrain.checkpoints import Checkpoint
from bigbrain.errors import Unstorable
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started
from bigbrain.messages import Growing, Request, Text, Thinking, ToolCall, user
from bigbrain.scope import Scope
from bigbrain.stores import MemStore
from bigbrain.testing import Client, Says, ScriptedModel

HALF = "\ud800"

MADE: dict[str, tuple[Callable[[Turn], None], str]] = {
    "a choice that is a number": (lambda turn: turn.select(5), "`turn.select`: `5` is a `int`; give text"),
    "a choice of half a character": (lambda turn: turn.select(HALF), "`turn.select`: '\\ud800' holds half a character"),
    "a choice that is anything": (lambda turn: turn.select(object()), "is a `object`; give text"),
    "a checkpoint named by a number": (lambda turn: turn.reach(Checkpoint(5)), "the name of a checkpoint: `5`"),
    "a call with arguments as an object": (
        lambda turn: turn.call(ToolCall("c", "n", {"a": 1})),
        "`turn.call`: it could not be read again: Expected `str`, got `object` - at `$.arguments`",
    ),
    "a call with a number as its id": (lambda turn: turn.call(ToolCall(7, "n")), "got `int` - at `$.id`"),
    "a call with half a character": (
        lambda turn: turn.call(ToolCall("c", "n", f'{{"a":"{HALF}"}}')),
        "`turn.call`: `arguments`, a `str`, has no JSON",
    ),
    "a call with anything beside it": (
        lambda turn: turn.call(ToolCall("c", "n", vendor={"x": {"deep": [1, object()]}})),
        "`turn.call`: `vendor.x.deep[1]`, a `object`, has no JSON",
    ),
}


@pytest.mark.parametrize("shape", ["alone", "before another", "in a group"])
@pytest.mark.parametrize(("make", "fault"), MADE.values(), ids=list(MADE))
def test_what_cannot_be_kept_fails_the_step_that_made_it(make: Callable[[Turn], None], fault: str, shape: str) -> None:
    @agent
    def makes(turn: Turn, chat: Chat) -> None:
        make(turn)

    bad, other = Flow(makes).named("f").durable(), Flow(model=FixedModel("x"))
    flow = {"alone": bad, "before another": bad >> other, "in a group": All(bad, other).named("g").durable()}[shape]
    with Client(Brain("b", flow >> respond)) as client:
        failed = client.ask("go", run_id="r").failed
        record = client.record("r")

    assert failed is not None
    assert (failed.code, failed.message) == ("unstorable", Unstorable.safe)
    assert fault in record.error["detail"]
    assert record.error["detail"].startswith(f"step {'0/0/0' if shape == 'in a group' else '0'}, ")
    assert record.cursor == "0"


class Answers:
    """A model of one's own that answers with this part, and this text in it."""

    def __init__(self, part: Growing, text: str) -> None:
        self._part = part
        self._text = text

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        yield Started("up", "up")
        yield Opened(0, self._part)
        yield Delta(0, self._text)
        yield Closed(0)
        yield Finished("end")


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(
    ("part", "text", "fault"),
    [
        (Thinking("", {"anthropic": {"signature": object()}}), "hm", "a model's answer: `vendor.anthropic.signature`"),
        (ToolCall(7, "n"), "{}", "a model's answer: it could not be read again: Expected `str`, got `int` - at `$.id`"),
        (Text(), HALF, "surrogates not allowed"),
    ],
)
def test_so_does_what_a_model_of_ones_own_answers(part: Growing, text: str, fault: str, last: bool) -> None:
    answers = Flow(model=Answers(part, text)).named("f").durable()
    with Client(Brain("b", answers if last else answers >> Flow(model=FixedModel("x")))) as client:
        failed = client.ask("go", run_id="r").failed
        record = client.record("r")

    assert failed is not None
    assert failed.code == "unstorable"
    assert fault in record.error["detail"]
    assert record.cursor == "0"


def test_a_request_that_cannot_be_kept_starts_no_run() -> None:
    request = Request(messages=(user("hi"),), extra={"bigbrain": {"payload": {"when": object()}}})
    with Client(Brain("b", Flow(model=FixedModel("x")))) as client:
        with pytest.raises(Unstorable, match=r"the request: `extra.bigbrain.payload.when`, a `object`, has no JSON"):
            client.ask(request, run_id="r")

        assert client.reception.runs.store.record("r") is None


def test_a_value_that_memory_cannot_keep_fails_the_step_with_its_place() -> None:
    memory = MemStore()

    @agent
    def remembers(turn: Turn, chat: Chat) -> None:
        memory.put("fact", {"seen": [object()]})

    with Client(Brain("b", Flow(remembers).named("f").durable() >> respond)) as client:
        assert client.ask("go", run_id="r").failed is not None
        record = client.record("r")

    assert (record.error["code"], record.cursor) == ("store_error", "0")
    assert "`fact` cannot be kept: `value.seen[0]`" in record.error["detail"]


def test_a_tools_result_without_json_is_an_error_that_the_model_reads_and_the_run_goes_on() -> None:
    @tool
    def look() -> object:
        """Looks somewhere."""
        return {"seen": object()}

    @agent
    def house(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.resolve(turn.last, tools=[look]))

    model = ScriptedModel(Says(calls=(ToolCall("c1", "look", "{}"),)), "it cannot be seen")
    with Client(Brain("b", Flow(house, model=model).named("house").durable())) as client:
        answer = client.chat("go")

    (result,) = model.last.messages[-1].results
    assert answer.text == "it cannot be seen"
    assert result.is_error
    assert "has no JSON" in result.text


class Way(StrEnum):
    """Where to go."""

    LEFT = "left"


class Odd(str):
    """A text of a kind of its own."""


@pytest.mark.parametrize("way", [Way.LEFT, Odd("left")])
def test_members_of_enums_and_other_kinds_of_text_are_choices(way: str) -> None:
    @agent
    def choose(turn: Turn, chat: Chat) -> None:
        turn.select(way)

    left = Flow(model=FixedModel("went left")).named("left")
    with Client(Brain("b", Flow(choose) >> Select(left))) as client:
        assert client.chat("go").text == "went left"


def test_a_text_of_a_kind_of_its_own_is_a_reply() -> None:
    @agent
    def says(turn: Turn, chat: Chat) -> None:
        turn.reply(Odd("so"))

    with Client(Brain("b", Flow(says) >> Flow(model=FixedModel("x")))) as client:
        client.chat("go", run_id="r")

        assert client.record("r").status == "done"
    with Client(Brain("b", Flow(says))) as client:
        assert client.chat("go").text == "so"
