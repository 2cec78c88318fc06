"""Tools and agents of a brain in an orchestrator, and the way back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import pytest

from bigbrain import Agent as BrainAgent
from bigbrain import Brain, Budget, Chat, Doc, Flow, Image, Turn, Usage, agent, tool
from bigbrain import Tool as BrainTool
from bigbrain.errors import SchemaError, WiringError
from bigbrain.messages import ToolCall
from bigbrain.orchestrator import Agent, Field, Orchestrator, TaskResult, Tool, from_agent, from_tool, to_tool
from bigbrain.testing import Client, Says, ScriptedModel

CALL = '{"action": "call", "agent": "a", "tool": "%s", "input": %s}'
END = '{"action": "finish", "answer": "done"}'


@dataclass
class Step:
    what: str
    then: list[Step] | None = None


@tool(timeout=7, longest=500)
def read_sensor(sensor: Annotated[Literal["temperature", "humidity"], Doc("which one")], digits: int = 1) -> float:
    """Read one of the house sensors."""
    return round(21.54, digits)


@tool
def plan(steps: list[Step]) -> dict[str, int]:
    """Take a plan."""
    return {"steps": len(steps)}


def carried_out(one: Tool, given: str, *replies: Any, **options: Any) -> tuple[TaskResult, ScriptedModel]:
    model = ScriptedModel(CALL % (one.tag, given), *replies, END)
    return Orchestrator([Agent("a", "d", [one])], model=model, **options).execute_task("go"), model


class TestFromATool:
    def test_it_says_all_that_the_tool_says(self) -> None:
        made = from_tool(read_sensor)

        assert (made.tag, made.description, made.timeout, made.longest) == (
            "read_sensor",
            "Read one of the house sensors.",
            7,
            500,
        )
        sensor, digits = made.fields or ()
        assert (sensor.name, sensor.description, sensor.required) == ("sensor", "which one", True)
        assert sensor.schema["enum"] == ["temperature", "humidity"]
        assert (digits.name, digits.required) == ("digits", False)
        assert made.write()["input"][0]["schema"] == {"type": "string", "enum": ["temperature", "humidity"]}

    def test_it_runs_the_function_and_gives_its_result_as_text(self) -> None:
        result, _ = carried_out(from_tool(read_sensor), '{"sensor": "temperature"}')

        assert result.tool_traces[0].result == "21.5"

    def test_what_does_not_fit_is_told_as_ever(self) -> None:
        result, model = carried_out(from_tool(read_sensor), '{"sensor": "loudness"}')

        assert result.ok
        assert "SchemaError" in model.last.messages[-1].text
        assert "loudness" in model.last.messages[-1].text

    def test_a_type_that_contains_itself_keeps_its_definitions(self) -> None:
        [steps] = from_tool(plan).fields or ()
        result, _ = carried_out(from_tool(plan), '{"steps": [{"what": "a", "then": [{"what": "b"}]}]}')

        assert "$defs" in steps.schema
        assert result.tool_traces[0].result == '{"steps":1}'

    def test_an_async_one_is_awaited(self) -> None:
        @tool
        async def slowly(text: str) -> str:
            """Wait."""
            await asyncio.sleep(0)
            return text.upper()

        assert carried_out(from_tool(slowly), '{"text": "x"}')[0].tool_traces[0].result == "X"

    def test_a_picture_cannot_be_told(self) -> None:
        @tool
        def picture() -> Image:
            """Take a picture."""
            return Image(url="https://example.com/a.png")

        result, _ = carried_out(from_tool(picture), "{}")

        assert "a picture or a file" in result.tool_traces[0].result

    def test_a_bare_tool_is_refused(self) -> None:
        with pytest.raises(WiringError, match="has no function"):
            from_tool(BrainTool("bare"))

    def test_the_way_back_gives_the_very_tool(self) -> None:
        assert to_tool(from_tool(read_sensor)) is read_sensor
        assert from_tool(read_sensor) == from_tool(read_sensor)

    def test_a_change_on_the_way_is_kept(self) -> None:
        changed = to_tool(replace(from_tool(read_sensor), description="Otherwise.", output=""))

        assert changed.description == "Otherwise."
        assert changed.run(ToolCall("", "read_sensor", '{"sensor": "humidity"}')) == "21.5"


FIELDS = Tool("write-file", "Write.", [Field("path", "Where"), Field("text", "What", required=False)], "OK", repr)
WORDS = Tool("find", "Find a user.", "The name", "JSON", lambda name: f"found {name}", timeout=9, longest=77)


class TestToATool:
    def test_it_says_all_that_the_tool_says(self) -> None:
        made = to_tool(FIELDS)

        assert (made.name, made.description) == ("write-file", "Write.\n\nGives: OK")
        assert made.spec.schema == {
            "type": "object",
            "properties": {"path": {"description": "Where"}, "text": {"description": "What"}},
            "required": ["path"],
        }
        assert (to_tool(WORDS).timeout, to_tool(WORDS).longest) == (9, 77)

    def test_one_text_is_one_field(self) -> None:
        made = to_tool(WORDS)

        assert made.spec.schema["properties"] == {"value": {"type": "string", "description": "The name"}}
        assert made.run(ToolCall("", "find", '{"value": "Ada"}')) == "found Ada"

    def test_a_model_runs_it_in_a_chat(self) -> None:
        call = ToolCall("c1", "write-file", '{"path": "/tmp/x"}')
        model = ScriptedModel(Says(calls=(call,)), "written")

        assert Chat(model).resolve("go", tools=[to_tool(FIELDS)]).text == "written"
        assert model.last.messages[-1].results[0].text == "{'path': '/tmp/x'}"

    def test_what_does_not_fit_is_told(self) -> None:
        with pytest.raises(SchemaError, match="lacks `path`"):
            to_tool(FIELDS).run(ToolCall("", "write-file", "{}"))

    @pytest.mark.parametrize("one", [FIELDS, WORDS, Tool("t", "d", (), "", str)])
    def test_the_way_back_gives_the_very_tool(self, one: Tool) -> None:
        assert from_tool(to_tool(one)) is one

    def test_a_change_on_the_way_is_kept(self) -> None:
        changed = from_tool(replace(to_tool(WORDS), description="Otherwise."))

        assert (changed.description, changed.call({"value": "Ada"})) == ("Otherwise.", "found Ada")

    def test_another_function_bound_to_it_is_checked(self) -> None:
        with pytest.raises(WiringError, match="field `path` has no parameter"):
            to_tool(FIELDS).bind(lambda: "x")


@agent(role="You are a poet.")
def poet(turn: Turn, chat: Chat) -> None:
    turn.reply(chat.ask(*turn.messages))


class TestFromAnAgent:
    def test_it_is_asked_a_text_and_its_reply_is_the_result(self) -> None:
        verses = ScriptedModel("Roses are red.")
        one = from_agent(poet, description="Writes verses.", model=verses)

        result, _ = carried_out(one, '"about roses"')

        assert result.tool_traces[0].result == "Roses are red."
        assert [message.text for message in verses.last.messages] == ["You are a poet.", "about roses"]
        assert (one.tag, one.description, one.timeout) == ("poet", "Writes verses.", 60)
        assert from_agent(poet, description="d", timeout=300).timeout == 300

    def test_it_may_be_called_on_its_own(self) -> None:
        one = from_agent(poet, description="d", tag="verses", model=ScriptedModel("Violets."))

        assert (one.tag, one.call("go")) == ("verses", "Violets.")

    def test_its_own_model_goes_first(self) -> None:
        own, other = ScriptedModel("own"), ScriptedModel()

        assert from_agent(BrainAgent(name="plain", model=own), description="d", model=other).call("go") == "own"

    def test_without_a_model_one_that_needs_it_is_refused(self) -> None:
        with pytest.raises(WiringError, match="has no model"):
            from_agent(BrainAgent(name="plain"), description="d")

        @agent
        def speaks(turn: Turn, chat: Chat) -> None:
            turn.reply("by itself")

        assert from_agent(speaks, description="d").call("go") == "by itself"

    def test_what_it_spends_is_the_runs_and_its_budget_holds(self) -> None:
        verses = ScriptedModel(Says("Roses.", usage=Usage(10, 5)), repeat=True)
        desk = Orchestrator([Agent("a", "d", [from_agent(poet, description="d", model=verses)])])
        ask = CALL % ("poet", '"x"')
        with Client(Brain("b", Flow(desk, model=ScriptedModel(Says(ask, usage=Usage(1, 1)), END)))) as client:
            answer = client.chat("go")
            kinds = [event.detail["model"] for event in client.trace(answer.run_id) if event.kind == "model.call"]

        assert answer.usage == Usage(11, 6)
        assert kinds == ["scripted"] * 3

        bounded = Flow(desk, model=ScriptedModel(ask, ask, END)).within(Budget(calls=2))
        with Client(Brain("b", bounded)) as client:
            failed = client.ask("go").failed
        assert failed is not None
        assert failed.code == "budget_spent"

    def test_an_agent_that_asks_its_client_for_tools_cannot(self) -> None:
        @agent
        def forwards(turn: Turn, chat: Chat) -> None:
            turn.call(ToolCall("c1", "look"))

        result, _ = carried_out(from_agent(forwards, description="d"), '"x"')

        assert "asks its client to call tools" in result.tool_traces[0].result

    def test_an_orchestrator_may_be_a_tool_of_another(self) -> None:
        inner = Orchestrator([], model=ScriptedModel('{"action": "finish", "answer": "from inside"}'), name="inner")

        result, _ = carried_out(from_agent(inner, description="d"), '"x"')

        assert (result.tool_traces[0].tool, result.tool_traces[0].result) == ("inner", "from inside")
