"""What an agent is told to be, and what it does on its turn."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from bigbrain.agents import Agent, agent
from bigbrain.answers import Answer, Given
from bigbrain.chat import Chat
from bigbrain.errors import SchemaError, WiringError
from bigbrain.events import Delta, Event
from bigbrain.messages import Message, Request, Text, Thinking, ToolSpec, assistant, user
from bigbrain.models import Asks
from bigbrain.run import Run
from bigbrain.tools import Tool, tool
from bigbrain.turns import Turn
from tests.scripted import Script, call, says


def acted(one: Agent, model: Asks, request: Request | None = None) -> tuple[Turn, list[Event]]:
    """The turn of an agent that answers live, and what its client got."""
    run = Run(request=request or Request(messages=(user("hi"),)))
    events = list[Event]()
    turn = Turn(run.request.messages, run=run, answer=Answer(Given(), events.append), last=True)
    chat = one.chat(model, turn, run)
    one.act(turn, chat)
    turn.close()
    chat.close()
    return turn, events


@dataclass
class Intent:
    intent: str


@tool
def look() -> int:
    """Looks."""
    return 21


def test_an_agent_takes_the_name_of_its_function() -> None:
    @agent
    def router(turn: Turn, chat: Chat) -> None: ...

    @agent(name="other", selects=["a", "b"])
    def named(turn: Turn, chat: Chat) -> None: ...

    assert (router.name, router.selects, router.plain) == ("router", (), False)
    assert (named.name, named.selects) == ("other", ("a", "b"))


def test_exits_are_no_text() -> None:
    with pytest.raises(WiringError, match=r"`selects` is text; give a tuple of ids, `\('talk',\)`"):
        Agent(name="x", selects="talk")


def test_a_schema_that_is_none_is_found_when_the_agent_is_made() -> None:
    with pytest.raises(WiringError, match="bytes"):
        Agent(name="x", schema=bytes)


def test_tools_beside_a_handler_are_refused() -> None:
    with pytest.raises(WiringError, match=r"`x` has a handler.*`chat.resolve\(tools=…\)`"):
        Agent(name="x", handler=lambda turn, chat: None, tools=[look])


def test_a_role_may_depend_on_the_turn() -> None:
    model = Script("ok")
    acted(Agent(name="x", role=lambda turn: f"answer to {turn.last.text!r}"), model)

    assert model.requests[0].messages[0].text == "answer to 'hi'"


def test_an_async_handler_may_wait() -> None:
    @agent
    async def wait(turn: Turn, chat: Chat) -> None:
        await asyncio.sleep(0)
        turn.reply("waited")

    assert acted(wait, Script("x"))[0].made == (assistant("waited"),)


def test_a_handlers_questions_have_the_agents_schema() -> None:
    seen = list[Intent]()

    @agent(schema=Intent, repairs=2)
    def router(turn: Turn, chat: Chat) -> None:
        seen.append(chat.ask(turn.last).extract(Intent))

    model = Script("?", "??", '{"intent":"talk"}')
    acted(router, model)

    assert (seen, len(model.requests)) == ([Intent("talk")], 3)


def test_a_plain_agent_with_a_schema_gives_its_json_whole() -> None:
    turn, events = acted(Agent(name="x", schema=Intent), Script('Well: {"intent": "talk"}'))

    assert turn.made == (assistant('{"intent":"talk"}'),)
    assert [event.text for event in events if isinstance(event, Delta)] == ['{"intent":"talk"}']


def test_a_plain_agent_whose_model_never_fits_fails_and_says_nothing() -> None:
    with pytest.raises(SchemaError):
        acted(Agent(name="x", schema=Intent, repairs=0), Script("no"))


def test_a_plain_agent_with_tools_runs_them_and_answers_live() -> None:
    model = Script(says(Thinking("hm"), call("look")), says("it ", "is 21"))
    turn, events = acted(Agent(name="x", tools=[look]), model)

    assert turn.made == (Message("assistant", (Thinking("hm"), Text("it "), Text("is 21"))),)
    assert [event.text for event in events if isinstance(event, Delta)] == ["hm", "it ", "is 21"]


def test_a_plain_agent_with_tools_leaves_the_clients_to_the_client() -> None:
    request = Request(messages=(user("hi"),), tools=(ToolSpec("theirs"),))
    model = Script(says("let me see", call("theirs"), call("look", id="c2")))
    turn, _ = acted(Agent(name="x", tools=[look]), model, request)

    assert [one.name for one in model.requests[0].tools] == ["theirs", "look"]
    assert turn.made == (Message("assistant", (Text("let me see"), call("theirs"), call("look", id="c2"))),)


def test_a_tool_loop_that_the_handler_does_not_read_is_carried_out() -> None:
    ran = list[int]()
    note: Tool[..., object] = Tool("note").bind(lambda: ran.append(1))

    @agent
    def quiet(turn: Turn, chat: Chat) -> None:
        chat.resolve("go", tools=[note])
        turn.reply("done")

    turn, _ = acted(quiet, Script(says("let me see", call("note")), "ok"))

    assert (ran, turn.made) == ([1], (assistant("done"),))
