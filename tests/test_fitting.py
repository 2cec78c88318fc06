"""Structured answers: what the model is told, what is taken, what is put back to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import marshmallow
import msgspec
import pydantic
import pytest

from bigbrain.chat import Chat
from bigbrain.errors import SchemaError
from bigbrain.events import Delta
from bigbrain.fitting import UNFIT
from bigbrain.messages import AnswerSchema, Request, Stop, Text, Thinking, ToolCall, system, user
from bigbrain.models import Askable
from bigbrain.models.spec import Provider
from bigbrain.run import Run
from bigbrain.schemas import Doc, shape
from tests.models.asking import asks
from tests.schemas.examples import Plan
from tests.scripted import COST, Script, call, says
from tests.upstream import Upstream
from tests.upstream_answers import Answer


@dataclass
class Intent:
    intent: Annotated[Literal["talk", "house"], Doc("the chosen capability")]
    reason: str = ""


GOOD = '{"intent":"talk","reason":""}'


class ByMarshmallow(marshmallow.Schema):
    intent = marshmallow.fields.String(required=True)
    reason = marshmallow.fields.String(load_default="")


class ByPydantic(pydantic.BaseModel):
    intent: str
    reason: str = ""


def test_the_model_is_told_the_schema_natively_and_in_words() -> None:
    model = Script(GOOD)
    Chat(model, role="You route.").ask("hi", schema=Intent)

    [request] = model.requests
    wanted = shape(Intent)
    assert request.schema == AnswerSchema("Intent", wanted.strict, strict=True)
    role, question = request.messages
    assert role.text.startswith("You route.\n\nAnswer with one JSON object")
    assert role.text.endswith(msgspec.json.encode(wanted.schema).decode())
    assert question == user("hi")


@pytest.mark.parametrize("kind", [Intent, ByMarshmallow, ByMarshmallow(), ByPydantic, shape(Intent)])
def test_a_schema_of_any_kind_gives_a_value(kind: Any) -> None:
    reply = Chat(Script(GOOD), schema=kind).ask("hi")
    value = reply.extract(kind)

    assert (value["intent"] if isinstance(value, dict) else value.intent) == "talk"


def test_the_text_is_the_values_json_in_one_piece_whatever_stood_around_it() -> None:
    model = Script(says(Thinking("hm"), 'Sure:\n```json\n{"intent": "Talk"}\n```\nDone.'))
    reply = Chat(model).ask("hi", schema=Intent)

    assert (reply.text, list(reply)) == (GOOD, [GOOD])
    assert reply.response.parts == (Thinking("hm"), Text(GOOD))
    assert sum(isinstance(event, Delta) for event in reply.events()) == 2


def test_a_bad_answer_is_put_back_with_its_faults_and_then_taken() -> None:
    run = Run()
    model = Script('{"intent":"cook"}', GOOD)
    chat = Chat(model, run=run)
    reply = chat.ask("hi", schema=Intent)

    assert reply.extract(Intent) == Intent("talk")
    first, second = model.requests
    assert second.messages[:2] == first.messages
    answer, fault = second.messages[2:]
    assert (answer.role, answer.text) == ("assistant", '{"intent":"cook"}')
    assert 'intent: "cook" is none of "talk", "house"' in fault.text
    assert chat.messages == (user("hi"),)
    assert reply.usage == run.purse.spent == COST + COST


@pytest.mark.parametrize("repairs", [0, 1, 3])
def test_a_model_that_never_fits_is_asked_a_bounded_number_of_times(repairs: int) -> None:
    model = Script("no json here")
    with pytest.raises(SchemaError, match="no JSON"):
        Chat(model).ask("hi", schema=Intent, repairs=repairs)

    assert len(model.requests) == repairs + 1


def test_an_empty_answer_is_not_put_back_as_a_message() -> None:
    model = Script(says(), GOOD)
    Chat(model).ask("hi", schema=Intent)

    assert [message.role for message in model.requests[1].messages] == ["system", "user", "user"]


@pytest.mark.parametrize("stop", UNFIT)
def test_an_answer_that_was_cut_off_is_an_error_at_once(stop: Stop) -> None:
    model = Script(says('{"intent":"talk","reason":"be', stop=stop))
    with pytest.raises(SchemaError, match=UNFIT[stop][:12]):
        Chat(model).ask("hi", schema=Intent, repairs=5)

    assert len(model.requests) == 1


def test_a_whole_object_is_not_taken_from_an_answer_that_was_cut_off() -> None:
    with pytest.raises(SchemaError, match="cut off"):
        Chat(Script(says(GOOD, stop="length"))).ask("hi", schema=Intent)


def test_a_reply_that_calls_tools_is_no_answer_yet() -> None:
    reply = Chat(Script(says("hm", call("f")))).ask("hi", schema=Intent)

    assert reply.response.parts == (Text("hm"), ToolCall("c1", "f", "{}"))


def test_an_open_schema_is_told_in_words_and_checked() -> None:
    @dataclass
    class Open:
        notes: dict[str, int]

    model = Script('{"notes":{"a":"x"}}', '{"notes":{"a":1}}')
    reply = Chat(model).ask("hi", schema=Open)

    assert model.requests[0].schema == AnswerSchema("Open")
    assert reply.extract(Open) == Open({"a": 1})


def test_the_authors_schema_goes_before_the_clients() -> None:
    client = Request(schema=AnswerSchema("theirs", {"type": "object"}))
    model = Script(GOOD)
    chat = Chat(model, run=Run(request=client))
    chat.ask("hi", forward=True, schema=Intent)
    chat.ask(forward=True)

    assert [request.schema and request.schema.name for request in model.requests] == ["Intent", "theirs"]


def test_a_reply_without_a_schema_can_be_read_as_a_value_too() -> None:
    assert Chat(Script(f"so: {GOOD}")).ask("hi").extract(Intent) == Intent("talk")
    with pytest.raises(SchemaError):
        Chat(Script("so")).ask("hi").extract(Intent)


def test_a_value_that_is_no_object_stands_under_a_key() -> None:
    reply = Chat(Script('{"value":[1,2]}')).ask("hi", schema=list[int])

    assert reply.extract(list[int]) == [1, 2]


STEP = '{"tool":"t","note":null,"kind":null,"children":[]}'


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_recursive_schema_is_asked_for_over_the_wire(provider: Provider) -> None:
    with Upstream() as up:
        up.script(Answer(tokens=('{"steps":', '"x"}')), Answer(tokens=(f'{{"steps":[{STEP}]}}',)))
        asked: Askable = asks(up, provider, "scripted")
        plan = Chat(asked).ask("plan", schema=Plan).extract(Plan)
        first, second = (request.body for request in up.requests)

    assert plan.steps[0].tool == "t"
    assert len(second["messages"]) == len(first["messages"]) + 2
    if provider == "openai":
        form = first["response_format"]["json_schema"]
        assert form["strict"] is True
        assert form["schema"] == shape(Plan).strict
    else:
        assert "output_config" not in first


def test_anthropic_is_told_natively_what_its_strict_mode_takes() -> None:
    with Upstream() as up:
        up.script(Answer(tokens=(GOOD,)))
        assert Chat(asks(up, "anthropic", "scripted")).ask("hi", schema=Intent).extract(Intent) == Intent("talk")

        assert up.requests[0].body["output_config"]["format"]["schema"] == shape(Intent).strict


def test_the_words_for_the_model_are_one_system_text() -> None:
    model = Script(GOOD)
    Chat(model).add(system("from the client")).ask("hi", schema=Intent)

    assert [message.role for message in model.requests[0].messages] == ["system", "system", "user"]
