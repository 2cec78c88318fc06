"""A task from its prompt to its result, whatever the model replies."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from bigbrain.errors import ModelBusy, RunCancelled, TaskAborted, TaskFailed, ToolError, WiringError
from bigbrain.messages import Image, Message, Text, ToolCall, ToolResult, Usage, assistant, system, user
from bigbrain.orchestrator import Agent, Cancellation, Orchestrator, TaskResult, Tool, ToolTrace
from bigbrain.testing import Breaks, Says, ScriptedModel
from tests.orchestrator.users import ABORT, ADD, DESCRIBE, FINISH, RETRIEVE, Desk, carried_out, told

ANSWER = "User 1 was born in 2001."
USER_1 = '{"name": "User 1", "born": 2001, "wife": "User 2"}'


def one_tool(call: Any, *replies: Any, **options: Any) -> tuple[TaskResult, ScriptedModel]:
    """A task with one agent that has one tool."""
    made = Tool("t", "Do it.", "What", "A text", call, **options.pop("tool", {}))
    model = ScriptedModel(*replies)
    return Orchestrator([Agent("a", "Does it.", [made])], model=model, **options).execute_task("go"), model


CALL = '{"action": "call", "agent": "a", "tool": "t", "input": "x"}'


def test_a_chain_of_describe_call_and_finish_comes_to_an_answer() -> None:
    desk = Desk()

    result, model = carried_out(DESCRIBE, RETRIEVE, FINISH, desk=desk)

    assert (result.status, result.answer, result.ok) == ("success", ANSWER, True)
    assert result.tool_traces == (ToolTrace("user-retriever", "User 1", USER_1, "user-agent"),)
    assert result.steps == 3
    assert all(request.messages[0] == model.last.messages[0] for request in model.asked), "a provider can cache it"
    assert desk.given == [("user-retriever", "User 1")]
    talk = told(model)
    assert [role for role, _ in talk] == ["user", "assistant", "user", "assistant", "user"]
    assert talk[0] == ("user", "When was User 1 born?")
    assert talk[1] == ("assistant", DESCRIBE)
    described = json.loads(talk[2][1].partition("\n")[2])
    assert [one["tag"] for one in described["tools"]] == ["user-retriever"]
    assert described["subAgents"] == []
    assert talk[4] == ("user", f'Result of call "user-retriever" of agent "user-agent":\n{USER_1}')


def test_the_instructions_list_root_agents_only_and_the_whole_protocol() -> None:
    _, model = carried_out(FINISH, optional_prompt="Answer in French.")
    instructions = model.last.messages[0]

    assert instructions.role == "system"
    assert instructions.text.endswith("Answer in French.")
    for said in ("user-agent: Answers questions about users.", "math: Routes", "JSON", "Answer in French."):
        assert said in instructions.text
    for action in ("describe", "call", "finish", "abort"):
        assert f'"action": "{action}"' in instructions.text
    for hidden in ("basic", "user-retriever", "Calculus"):
        assert hidden not in instructions.text


def test_a_sub_agent_is_reached_level_by_level() -> None:
    desk = Desk()
    describe = '{"action": "describe", "agent": "math/basic"}'

    result, model = carried_out(DESCRIBE.replace("user-agent", "math"), describe, ADD, FINISH, desk=desk)

    assert result.ok
    assert desk.given == [("add", {"a": 1, "b": 2})]
    assert result.tool_traces == (ToolTrace("add", {"a": 1, "b": 2}, "3", "math/basic"),)
    talk = [text for _, text in told(model)]
    assert '"subAgents":[{"name":"basic"' in talk[2]
    assert '"tag":"add"' not in talk[2]
    assert '"tag":"add"' in talk[4]


def test_the_bare_name_of_a_sub_agent_fails_and_says_so() -> None:
    result, model = carried_out(ADD.replace("math/basic", "basic"), FINISH)

    assert result.ok
    assert result.tool_traces == ()
    assert 'No matching agent found for path "basic"; did you mean "math/basic"?' in told(model)[-1][1]


def test_giving_up_is_an_error_with_the_reason() -> None:
    result, _ = carried_out(ABORT)

    assert (result.status, result.answer, result.ok) == ("error", "no tool knows", False)
    assert isinstance(result.error, TaskAborted)


def test_the_older_forms_still_work() -> None:
    desk = Desk()
    call = '{"agent": "user-agent", "tool": "user-retriever", "input": "User 1"}'

    result, _ = carried_out(call, '{"tool": "finished", "input": "2001"}', desk=desk)
    gave_up, _ = carried_out('{"tool": "none", "input": "cannot"}')

    assert (result.status, result.answer) == ("success", "2001")
    assert desk.given == [("user-retriever", "User 1")]
    assert (gave_up.status, gave_up.answer) == ("error", "cannot")


def test_several_calls_of_one_reply_are_run_in_order() -> None:
    desk = Desk()

    result, model = carried_out(f"{ADD}\n{RETRIEVE}\n{ADD}", FINISH, desk=desk)

    assert result.ok
    assert [tag for tag, _ in desk.given] == ["add", "user-retriever", "add"]
    assert [trace.tool for trace in result.tool_traces] == ["add", "user-retriever", "add"]
    blocks = told(model)[-1][1].split("\n\n")
    assert [block.partition("\n")[2] for block in blocks] == ["3", USER_1, "3"]


def test_an_end_behind_a_call_does_not_count_and_the_model_is_told() -> None:
    result, model = carried_out(ADD + '{"action": "finish", "answer": "a guess"}', FINISH)

    assert result.answer == ANSWER
    assert [trace.tool for trace in result.tool_traces] == ["add"]
    assert "did not count" in told(model)[-1][1]


def test_a_reply_outside_the_protocol_is_put_back_with_its_fault() -> None:
    result, model = carried_out("User 1 was born in 2001.", '{"action": "fly"}', '{"action": "finish"}', FINISH)

    assert (result.status, result.answer, result.steps) == ("success", ANSWER, 4)
    faults = [text for role, text in told(model) if role == "user"][1:]
    assert "holds no JSON" in faults[0]
    assert '`action` is "fly"; it must be one of "describe"' in faults[1]
    assert "`finish` has no `answer`" in faults[2]


@pytest.mark.parametrize("repairs", [0, 1, 3])
def test_replies_outside_the_protocol_end_the_task_after_so_many(repairs: int) -> None:
    result, model = carried_out(*["only words"] * 10, repairs=repairs)

    assert len(model.asked) == repairs + 1
    assert result.status == "error"
    assert f"{repairs + 1} replies in a row" in result.answer
    assert "holds no JSON" in result.answer


def test_faults_are_counted_in_a_row_only() -> None:
    result, _ = carried_out("words", DESCRIBE, "words", ADD, "words", FINISH, repairs=1)

    assert result.ok


def test_nothing_of_a_reply_with_a_fault_is_done() -> None:
    desk = Desk()

    carried_out(RETRIEVE + '{"action": "call", "agent": "math/basic"}', FINISH, desk=desk)

    assert desk.given == []


def test_a_call_that_was_cut_off_is_not_run_and_the_limit_is_named() -> None:
    desk = Desk()
    cut = Says('{"action": "call", "agent": "user-agent", "tool": "user-retriever", "input": "User', stop="length")

    result, model = carried_out(cut, FINISH, desk=desk, max_tokens=99)

    assert result.ok
    assert desk.given == []
    assert "cut off" in told(model)[-1][1]
    assert "99 tokens" in told(model)[-1][1]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (RETRIEVE.replace("user-agent", "nobody"), 'No matching agent found for path "nobody"'),
        (RETRIEVE.replace("user-retriever", "finder"), 'has no tool "finder"; there are "user-retriever"'),
        (RETRIEVE.replace('"User 1"', '{"name": "User 1"}'), "must be one text"),
        (ADD.replace('{"a": 1, "b": 2}', '{"a": 1}'), "lacks `b`; it takes `a`, `b`"),
        (ADD.replace('{"a": 1, "b": 2}', "null"), "lacks `a`, `b`"),
        (ADD.replace('{"a": 1, "b": 2}', "[]"), "must be an object"),
        (DESCRIBE.replace("user-agent", "nobody"), 'Error of describe "nobody"'),
    ],
)
def test_a_call_that_leads_nowhere_is_told_to_the_model(reply: str, said: str) -> None:
    desk = Desk()

    result, model = carried_out(reply, FINISH, desk=desk)

    assert result.ok
    assert desk.given == []
    assert result.tool_traces == ()
    assert said in told(model)[-1][1]
    assert told(model)[-1][1].startswith("Error of ")


class TestTools:
    def test_an_async_tool_is_awaited(self) -> None:
        async def slowly(text: str) -> str:
            await asyncio.sleep(0)
            return f"{text}!"

        result, model = one_tool(slowly, CALL, FINISH)

        assert result.tool_traces == (ToolTrace("t", "x", "x!", "a"),)
        assert told(model)[-1][1].endswith("x!")

    @pytest.mark.parametrize(
        ("error", "said"),
        [(KeyError("k"), "KeyError: 'k'"), (ValueError(), "ValueError"), (SystemExit(3), "SystemExit: 3")],
    )
    def test_what_a_tool_raises_is_told_to_the_model_and_the_task_goes_on(
        self, error: BaseException, said: str
    ) -> None:
        def raises(_: str) -> str:
            raise error

        result, model = one_tool(raises, CALL, FINISH)

        assert result.ok
        assert told(model)[-1][1] == f'Error of call "t" of agent "a":\n{said}'
        assert result.tool_traces == (ToolTrace("t", "x", said, "a"),)

    def test_what_a_tool_raises_may_end_the_task(self) -> None:
        result, model = one_tool(lambda _: 1 / 0, CALL, FINISH, on_tool_error="fail")

        assert result.status == "error"
        assert "ZeroDivisionError" in result.answer
        assert len(model.asked) == 1

    def test_a_path_that_leads_nowhere_does_not_end_it(self) -> None:
        result, _ = one_tool(str, CALL.replace('"a"', '"b"'), FINISH, on_tool_error="fail")

        assert result.ok

    @pytest.mark.parametrize("given", [{"a": 1}, None, 3, b"bytes", ["text"]])
    def test_what_is_no_text_is_a_clear_error(self, given: Any) -> None:
        result, model = one_tool(lambda _: given, CALL, FINISH)

        assert result.status == "error"
        assert f"tool `t` gave a `{type(given).__name__}`: a tool must return text" in result.answer
        assert isinstance(result.error, ToolError)
        assert len(model.asked) == 1

    def test_what_is_no_text_is_one_too_when_it_was_awaited(self) -> None:
        async def wrong(_: str) -> int:
            return 3

        result, _ = one_tool(wrong, CALL, FINISH)

        assert "gave a `int`" in result.answer

    def test_a_tool_that_takes_too_long_is_told_to_the_model(self) -> None:
        ended = threading.Event()

        result, model = one_tool(lambda _: str(ended.wait(20)), CALL, FINISH, tool={"timeout": 0.05})
        ended.set()

        assert result.ok
        assert "took longer than 0.05 seconds" in told(model)[-1][1]

    def test_a_long_result_is_cut_and_the_model_is_told(self) -> None:
        result, _ = one_tool(lambda _: "y" * 50, CALL, FINISH, tool={"longest": 10})

        assert result.tool_traces[0].result == "y" * 10 + "… [cut: 40 characters more]"

    def test_an_empty_result_is_one(self) -> None:
        result, _ = one_tool(lambda _: "", CALL, FINISH)

        assert result.tool_traces == (ToolTrace("t", "x", "", "a"),)


class TestCaps:
    @pytest.mark.parametrize("replies", [[ADD], [ADD, RETRIEVE], [DESCRIBE], [ADD.replace('"b": 2', '"b": "x"')]])
    def test_a_model_that_never_ends_is_stopped_at_the_cap(self, replies: list[str]) -> None:
        result, model = carried_out(*(Says(text, usage=Usage(10, 5)) for text in replies * 9), max_steps=5)

        assert (result.status, result.steps, len(model.asked)) == ("error", 5, 5)
        assert "`max_steps=5`" in result.answer
        assert result.usage == Usage(50, 25)
        assert isinstance(result.error, TaskFailed)

    def test_the_calls_of_the_last_step_are_not_run(self) -> None:
        desk = Desk()

        result, _ = carried_out(DESCRIBE, RETRIEVE, max_steps=2, desk=desk)

        assert desk.given == []
        assert "still calls `user-retriever` in the last step" in result.answer

    def test_faults_count_as_steps(self) -> None:
        result, model = carried_out(*["words"] * 9, max_steps=2, repairs=9)

        assert (result.status, len(model.asked)) == ("error", 2)

    def test_the_last_step_may_finish(self) -> None:
        assert carried_out(DESCRIBE, FINISH, max_steps=2)[0].ok

    def test_there_is_a_pause_between_steps_and_none_before_the_first(self) -> None:
        moments: list[float] = []

        def at(text: str) -> Any:
            return lambda _: moments.append(time.monotonic()) or text

        began = time.monotonic()
        result, _ = carried_out(at(DESCRIBE), at(RETRIEVE), at(FINISH), steps_interval=0.05)

        assert result.ok
        assert moments[1] - moments[0] >= 0.05
        assert moments[2] - moments[1] >= 0.05
        assert moments[0] - began < moments[2] - began

    def test_a_question_has_its_time(self) -> None:
        result, model = carried_out(Says(FINISH, delay=30), timeout=0.05)

        assert result.status == "error"
        assert "`timeout`" in result.answer
        assert model.closed == 1


class TestCancelling:
    def test_another_thread_ends_a_question(self) -> None:
        stop = Cancellation()
        threading.Timer(0.05, stop.cancel, ["the window was closed"]).start()

        result, model = carried_out(Says(FINISH, delay=30), cancellation=stop)

        assert (result.status, result.answer) == ("error", "the window was closed")
        assert isinstance(result.error, RunCancelled)
        assert model.closed == 1

    def test_another_thread_ends_the_wait_for_a_tool(self) -> None:
        stop, ended = Cancellation(), threading.Event()

        def waits(_: str) -> str:
            stop.cancel()
            return str(ended.wait(20))

        result, model = one_tool(waits, CALL, FINISH, cancellation=stop)
        ended.set()

        assert result.status == "error"
        assert len(model.asked) == 1

    def test_another_thread_ends_a_pause(self) -> None:
        stop = Cancellation()
        threading.Timer(0.05, stop.cancel).start()

        result, _ = carried_out(DESCRIBE, FINISH, cancellation=stop, steps_interval=30)

        assert result.status == "error"

    def test_a_task_that_was_cancelled_before_is_not_begun(self) -> None:
        stop = Cancellation()
        stop.cancel("too late")

        result, model = carried_out(FINISH, cancellation=stop)

        assert (result.status, result.answer) == ("error", "too late")
        assert model.asked == []


class TestFailing:
    @pytest.mark.parametrize("error", [ModelBusy("over the limit"), ValueError("a bug of the model's")])
    def test_whatever_the_model_fails_with_is_the_result(self, error: Exception) -> None:
        result, _ = carried_out(DESCRIBE, error)

        assert result.status == "error"
        assert str(error) in result.answer
        assert result.steps == 1

    def test_a_reply_that_breaks_off_is_an_error_and_paid(self) -> None:
        result, _ = carried_out(Says(DESCRIBE, usage=Usage(3, 4)), Breaks('{"action": "fin'))

        assert result.status == "error"
        assert result.usage == Usage(3, 4)

    def test_an_empty_prompt_is_an_error(self) -> None:
        result = Orchestrator(Desk().agents, model=ScriptedModel()).execute_task("")

        assert (result.status, result.answer) == ("error", "the prompt is empty; say what is to be done")

    def test_a_prompt_that_no_wire_can_carry_is_an_error(self) -> None:
        result = Orchestrator(Desk().agents, model=ScriptedModel()).execute_task("half \ud83e")

        assert result.status == "error"
        assert "Unicode" in result.answer

    def test_a_model_without_a_key_is_an_error_that_names_the_remedy(self) -> None:
        result = Orchestrator(Desk().agents).execute_task("go")

        assert result.status == "error"
        assert "BIG_BRAIN_API_KEY" in result.answer

    def test_traces_until_the_failure_are_kept(self) -> None:
        result, _ = carried_out(RETRIEVE, ModelBusy)

        assert [trace.tool for trace in result.tool_traces] == ["user-retriever"]


class TestKnownContext:
    def test_earlier_traces_are_told_and_not_given_back(self) -> None:
        first, _ = carried_out(RETRIEVE, FINISH)
        model = ScriptedModel(ADD, '{"action": "finish", "answer": "Once."}')

        second = Orchestrator(Desk().agents, model=model).execute_task(
            "Was User 1 married before?", tool_traces=first.tool_traces
        )

        assert [trace.tool for trace in second.tool_traces] == ["add"]
        role, text = told(model)[0]
        assert role == "system"
        assert text.startswith("Known context from previous interactions: ")
        known = json.loads(text.removeprefix("Known context from previous interactions: "))
        assert known == [{"tool": "user-retriever", "input": "User 1", "result": USER_1}]
        assert told(model)[1] == ("user", "Was User 1 married before?")
        assert [trace.tool for trace in (*first.tool_traces, *second.tool_traces)] == ["user-retriever", "add"]

    def test_history_comes_as_messages_before_the_prompt(self) -> None:
        model = ScriptedModel(FINISH)
        history = [user("hi"), assistant("hello")]

        Orchestrator(Desk().agents, model=model).execute_task("and now?", history=history)

        assert told(model) == [("user", "hi"), ("assistant", "hello"), ("user", "and now?")]

    def test_calls_of_other_tools_in_it_are_told_in_words(self) -> None:
        model = ScriptedModel(FINISH)
        call = Message("assistant", (ToolCall("c1", "look", "{}"),))
        result = Message("tool", (ToolResult("c1", (Text("seen"),)),))

        Orchestrator(Desk().agents, model=model).execute_task("and?", history=[user("hi"), call, result])

        assert told(model)[1:3] == [("assistant", "(Called look with {}.)"), ("user", "(Result: seen)")]

    def test_a_prompt_may_have_pictures(self) -> None:
        model = ScriptedModel(FINISH)
        prompt = Message("user", (Text("what is this?"), Image(url="https://example.com/a.png")))

        Orchestrator(Desk().agents, model=model).execute_task(prompt)

        assert model.last.messages[-1] == prompt

    @pytest.mark.parametrize(
        ("arguments", "fault"),
        [
            ({"history": [ToolTrace("t", "x", "y")]}, "give them as `tool_traces="),
            ({"history": "hello"}, "give a list of `Message`s"),
            ({"history": [{"role": "user", "content": "hi"}]}, "give a list of `Message`s"),
            ({"tool_traces": [user("hi")]}, "`tool_traces` takes"),
            ({"tool_traces": [system("x")]}, "`tool_traces` takes"),
        ],
    )
    def test_what_is_mixed_up_is_named(self, arguments: Any, fault: str) -> None:
        with pytest.raises(WiringError, match=fault):
            Orchestrator(Desk().agents, model=ScriptedModel()).execute_task("go", **arguments)


def test_usage_is_the_sum_of_all_steps() -> None:
    result, _ = carried_out(
        Says(DESCRIBE, usage=Usage(10, 1)), Says("words", usage=Usage(20, 2)), Says(FINISH, usage=Usage(30, 3))
    )

    assert result.usage == Usage(60, 6)


def test_one_orchestrator_carries_out_many_tasks_at_once() -> None:
    def answers(request: Any) -> str:
        asked = request.messages[1].text
        return ADD if len(request.messages) == 2 else json.dumps({"action": "finish", "answer": asked})

    orchestrator = Orchestrator(Desk().agents, model=ScriptedModel(answers, repeat=True))
    results: dict[str, TaskResult] = {}

    def carry_out(name: str) -> None:
        results[name] = orchestrator.execute_task(name)

    threads = [threading.Thread(target=carry_out, args=(f"task {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {name: result.answer for name, result in results.items()} == {name: name for name in results}
    assert all(len(result.tool_traces) == 1 for result in results.values())
