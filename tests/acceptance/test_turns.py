"""Acceptance 8.13, 8.15 and 8.16: what no test of a single module says of agents, turns, values and authors' types."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigbrain import (
    Agent,
    Brain,
    Chat,
    Flow,
    Message,
    Model,
    Request,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    agent,
    assistant,
    respond,
    system,
    user,
)
from bigbrain.errors import SchemaError
from bigbrain.messages import unanswered
from bigbrain.models.spec import Provider
from bigbrain.run import Run
from bigbrain.schemas import Doc
from bigbrain.testing import Client, Says, ScriptedModel
from tests.acceptance.making import answer, looking, saying
from tests.upstream import Upstream
from tests.upstream_answers import Answer


@dataclass
class Intent:
    intent: Annotated[Literal["talk", "house"], Doc("the chosen capability")]
    reason: str


def test_an_agent_keeps_what_it_was_made_with_whatever_its_author_does_with_it_later() -> None:
    exits, handler = ["talk"], lambda turn, chat: None
    one = Agent(name="router", handler=handler, selects=exits)
    exits.append("house")

    assert (one.selects, one.handler) == (("talk",), handler)
    with pytest.raises(FrozenInstanceError):
        one.selects = ("house",)  # type: ignore[misc]


def test_a_turns_replies_accumulate() -> None:
    seen: list[tuple[str, ...]] = []
    answer(saying("one", "two") >> looking(seen))

    assert seen == [("go", "one", "two")]


def test_the_request_of_a_turn_is_empty_outside_a_served_request_and_else_the_clients() -> None:
    seen: list[Request] = []

    @agent
    def note(turn: Turn, chat: Chat) -> None:
        seen.append(turn.request)

    asked = Request(model="b", messages=(user("hi"),), temperature=0.3)
    with Client(Brain("b", Flow(note))) as client:
        client.chat(asked)

    assert seen == [asked]
    assert Turn((), run=Run(), answer=None, last=True).request == Request()


def test_a_live_reply_still_yields_its_tool_calls_whole() -> None:
    call = ToolCall("c1", "look", '{"n": 1}')
    reply = Chat(ScriptedModel(Says("let me see", calls=(call,)))).ask("go")
    pieces = iter(reply)

    assert next(pieces) == "let"
    assert reply.calls == (call,)
    assert "".join(pieces) == " me see"


def test_texts_of_one_answer_skip_what_is_empty_and_what_is_not_the_assistants() -> None:
    seen: list[tuple[str, ...]] = []

    assert answer(saying("one", "") >> looking(seen) >> saying("", "two") >> respond, "mine") == "one\n\ntwo"


usages = st.builds(Usage, *[st.integers(0, 10**9)] * 5)


@given(usages, usages)
def test_adding_usage_is_element_wise_in_any_order_with_nothing_as_its_zero(one: Usage, other: Usage) -> None:
    both = one + other

    assert (both.input, both.reasoning) == (one.input + other.input, one.reasoning + other.reasoning)
    assert both == other + one
    assert one + Usage() == one


def test_the_total_of_usage_leaves_reasoning_out_because_it_is_part_of_the_output() -> None:
    assert Usage(input=1, output=20, cache_read=300, cache_write=4000, reasoning=15).total == 4321


def test_the_calls_that_nobody_has_answered_are_listed() -> None:
    called = Message("assistant", (ToolCall("a", "f"), ToolCall("b", "f")))

    assert unanswered((user("hi"), called, Message("tool", (ToolResult("a"),)))) == (ToolCall("b", "f"),)
    assert unanswered((user("hi"),)) == ()


def test_the_helpers_make_messages_of_each_role() -> None:
    assert [(one.role, one.text) for one in (system("a"), user("b"), assistant("c"))] == [
        ("system", "a"),
        ("user", "b"),
        ("assistant", "c"),
    ]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_agent_with_a_schema_gives_its_author_a_value_end_to_end(provider: Provider) -> None:
    """Inverted: the seed sends the schema nowhere, and checks only that the text decodes."""
    values: list[Intent] = []

    @agent(schema=Intent)
    def router(turn: Turn, chat: Chat) -> None:
        values.append(chat.ask(turn.last).extract(Intent))
        turn.reply(values[-1].reason)

    with Upstream() as up:
        base_url = up.openai if provider == "openai" else up.anthropic
        up.script(
            Answer(tokens=('{"intent":"garden",', '"reason":"x"}')), Answer(tokens=('{"intent":"talk","reason":"hi"}',))
        )
        model = Model("scripted", provider=provider, base_url=base_url, api_key="k", retries=0)
        with Client(Brain("b", Flow(router, model=model))) as client:
            text = client.chat("hello").text
        first, second = (str(request.body) for request in up.requests)

    assert (text, values) == ("hi", [Intent("talk", "hi")])
    assert "the chosen capability" in first
    assert "garden" in second


@pytest.mark.parametrize("text", ['{"intent":"talk"}', '{"intent":"garden","reason":""}', "null", "[]"])
def test_extracting_from_what_lacks_a_field_or_does_not_fit_is_an_error(text: str) -> None:
    """Inverted: the seed gives the zero value."""
    with pytest.raises(SchemaError):
        Chat(ScriptedModel(text)).ask("go").extract(Intent)


def test_a_turn_has_spent_the_running_sum_of_its_questions_and_nothing_outside() -> None:
    sums: list[Usage] = []

    @agent
    def spends(turn: Turn, chat: Chat) -> None:
        for _ in range(3):
            sums.append(turn.spent)
            chat.ask("x").text

    model = ScriptedModel(Says("x", usage=Usage(10, 1)), repeat=True)
    with Client(Brain("b", Flow(spends, model=model))) as client:
        client.chat("go")

    assert sums == [Usage(), Usage(10, 1), Usage(20, 2)]
    assert Turn((), run=Run(), answer=None, last=True).spent == Usage()


def test_a_call_that_an_author_makes_reaches_the_client_under_an_id() -> None:
    @agent
    def calls(turn: Turn, chat: Chat) -> None:
        turn.call(ToolCall("", "look", '{"n": 1}'), ToolCall("", "look", '{"n": 2}'))

    with Client(Brain("b", Flow(calls))) as client:
        first, second = client.chat("go").calls

    assert (first.input, second.input) == ({"n": 1}, {"n": 2})
    assert len({first.id, second.id, ""}) == 3
