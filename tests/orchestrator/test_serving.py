"""An orchestrator as an agent of a brain: served as a model, told of, paid for and stopped like any other."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bigbrain import All, Brain, Budget, Chat, Flow, Model, Select, Turn, agent, respond
from bigbrain import model as tagged
from bigbrain.errors import WiringError
from bigbrain.events import Delta
from bigbrain.messages import Message, Request, Text, ToolCall, ToolResult, Usage, assistant, system, user
from bigbrain.orchestrator import Agent, Cancellation, Orchestrator, Tool
from bigbrain.orchestrator.backends import Conversation, Said
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.testing import Breaks, Client, Says, ScriptedModel
from bigbrain.trees import draw
from tests.orchestrator.users import ABORT, ADD, DESCRIBE, FINISH, RETRIEVE, Desk, told

ANSWER = "User 1 was born in 2001."


def served(*replies: Any, desk: Desk | None = None, **options: Any) -> tuple[Flow, ScriptedModel]:
    """A flow of one orchestrator whose model replies so, and the model."""
    model = ScriptedModel(*replies)
    return Flow(Orchestrator((desk or Desk()).agents, **options), model=model), model


def test_the_answer_is_the_clients_piece_by_piece() -> None:
    flow, _ = served(DESCRIBE, RETRIEVE, Says(chunks=tuple(FINISH)))
    with Client(Brain("b", flow.named("desk").durable())) as client:
        answer = client.chat("When was User 1 born?")

    assert answer.text == ANSWER
    assert "".join(event.text for event in answer.events if isinstance(event, Delta)) == ANSWER
    assert answer.stop == "end"


def test_the_answer_flows_while_the_model_still_writes() -> None:
    seen = threading.Event()

    def pieces() -> Any:
        yield '{"action": "finish", "answer": "first'
        assert seen.wait(20)
        yield ' second"}'

    flow, _ = served(Says(chunks=pieces()))
    heard = ""
    with (
        Client(Brain("b", flow)) as client,
        client.reception.receive(Request(messages=(user("go"),)), "run-x", 1.0) as (_, follower, _),
    ):
        while not follower.over:
            for event in follower.read(20):
                heard += event.text if isinstance(event, Delta) else ""
            if heard == "first":
                seen.set()

    assert heard == "first second"


def test_steps_and_calls_are_told_and_usage_is_summed() -> None:
    flow, _ = served(Says(DESCRIBE, usage=Usage(10, 1)), Says(f"{ADD} {RETRIEVE}", usage=Usage(20, 2)), FINISH)
    with Client(Brain("b", flow)) as client:
        answer = client.chat("go")
        trace = client.trace(answer.run_id)

    assert [event.detail["tool"] for event in trace if event.kind == "tool.call"] == [
        "math/basic/add",
        "user-agent/user-retriever",
    ]
    calls = [event.detail for event in trace if event.kind == "model.call"]
    assert [call["model"] for call in calls] == ["scripted"] * 3
    assert calls[0]["usage"] == {"input": 10, "output": 1}
    assert all(call["first"] <= call["seconds"] and call["stop"] == "end" for call in calls)
    assert len([event for event in trace if event.kind == "model.start"]) == 3
    assert answer.usage == Usage(30, 3)


def test_a_tool_that_fails_is_told_with_its_error() -> None:
    flow, _ = served(RETRIEVE, FINISH, desk=Desk())
    failing = Orchestrator([Agent("user-agent", "d", [Tool("user-retriever", "d", "i", "o", lambda _: str(1 / 0))])])
    flow = Flow(failing, model=ScriptedModel(RETRIEVE, FINISH))
    with Client(Brain("b", flow)) as client:
        answer = client.chat("go")
        [call] = [event.detail for event in client.trace(answer.run_id) if event.kind == "tool.call"]

    assert call["error"] == "ZeroDivisionError"


def test_a_budget_bounds_its_questions() -> None:
    desk = Desk()
    flow, model = served(DESCRIBE, RETRIEVE, ADD, FINISH, desk=desk)
    with Client(Brain("b", flow.within(Budget(calls=2)))) as client:
        answer = client.ask("go")

    assert answer.failed is not None
    assert answer.failed.code == "budget_spent"
    assert len(model.asked) == 2
    assert [tag for tag, _ in desk.given] == ["user-retriever"]


def test_stopping_the_run_ends_the_question() -> None:
    asked = threading.Event()

    def slowly(_: Request) -> Says:
        asked.set()
        return Says(FINISH, delay=30)

    flow, model = served(slowly)
    with Client(Brain("b", flow)) as client:

        def stop() -> None:
            assert asked.wait(20)
            client.reception.runs.store.stop("run-1")

        thread = threading.Thread(target=stop)
        thread.start()
        answer = client.ask("go")
        thread.join()

    assert answer.failed is not None
    assert answer.failed.code == "run_cancelled"
    assert model.closed == 1


def test_its_own_cancellation_ends_the_run() -> None:
    stop = Cancellation()
    flow, _ = served(lambda _: stop.cancel("closed") or Says(FINISH, delay=30), cancellation=stop)  # type: ignore[func-returns-value]
    with Client(Brain("b", flow)) as client:
        answer = client.ask("go")

    assert answer.failed is not None
    assert answer.failed.code == "run_cancelled"


def test_the_conversation_before_the_last_message_is_the_history() -> None:
    flow, model = served(FINISH)
    with Client(Brain("b", flow)) as client:
        client.chat([system("Be brief."), user("hi"), assistant("hello"), user("and now?")])

    assert told(model) == [("system", "Be brief."), ("user", "hi"), ("assistant", "hello"), ("user", "and now?")]


def test_a_clients_own_calls_are_told_in_words() -> None:
    call = Message("assistant", (Text("Wait."), ToolCall("c1", "look", '{"at": 1}')))
    result = Message("tool", (ToolResult("c1", (Text("seen"),)),))
    flow, model = served(FINISH)
    with Client(Brain("b", flow)) as client:
        client.chat([user("hi"), call, result, user("and?")])

    assert told(model) == [
        ("user", "hi"),
        ("assistant", 'Wait.(Called look with {"at": 1}.)'),
        ("user", "(Result: seen)"),
        ("user", "and?"),
    ]
    assert all(not message.calls and not message.results for message in model.last.messages)


def test_behind_another_flow_it_goes_on_from_what_that_said() -> None:
    @agent
    def first(turn: Turn, chat: Chat) -> None:
        turn.reply("I found a user.")

    flow, model = served(FINISH)
    with Client(Brain("b", Flow(first) >> flow)) as client:
        answer = client.chat("go")

    assert answer.text == ANSWER
    assert told(model) == [("user", "go"), ("assistant", "I found a user."), ("user", "Go on with the task above.")]


def test_before_another_flow_and_in_a_group_its_answer_comes_whole() -> None:
    @agent
    def shouts(turn: Turn, chat: Chat) -> None:
        turn.reply(turn.last.text.upper())

    flow, _ = served(FINISH)
    other, _ = served('{"action": "finish", "answer": "Me too."}')
    with Client(Brain("b", All(flow, other) >> respond)) as client:
        assert client.chat("go").text == f"{ANSWER}\n\nMe too."
    flow, _ = served(FINISH)
    with Client(Brain("b", flow >> Flow(shouts))) as client:
        assert client.chat("go").text == ANSWER.upper()


def test_giving_up_fails_the_run_with_the_reason_for_the_one_who_asked() -> None:
    flow, _ = served(ABORT)
    with Client(Brain("b", flow)) as client:
        answer = client.ask("go")

    assert answer.failed is not None
    assert (answer.failed.code, answer.failed.status, answer.failed.message, answer.failed.retryable) == (
        "task_aborted",
        422,
        "no tool knows",
        False,
    )


def test_what_goes_wrong_inside_stays_inside() -> None:
    flow, _ = served(*["secret words"] * 9)
    with Client(Brain("b", flow)) as client:
        answer = client.ask("go")
        record = client.record(answer.run_id)

    assert answer.failed is not None
    assert answer.failed.code == "task_failed"
    assert answer.failed.message == "This brain came to no answer."
    assert record.error is not None
    assert "secret words" in record.error["detail"]


class TestModels:
    def test_it_asks_the_nearest_model_in_its_own_manner(self) -> None:
        plan = Flow(
            Orchestrator(Desk().agents), model=Model("near", api_key="k", temperature=0.9, base_url="http://x/v1")
        )
        brain = Brain("b", plan)
        brain.add_model(Model("far", api_key="k"))

        [connection] = brain.compiled(Settings())["b"].models
        model: Model = connection.model  # type: ignore[attr-defined]

        assert (model.name, model.temperature, model.max_tokens) == ("near", 0.0, 8192)

    def test_its_own_goes_first_and_may_be_looked_up_by_tags(self) -> None:
        cheap, other = ScriptedModel(FINISH, name="cheap"), ScriptedModel(name="other")
        brain = Brain("b", Flow(Orchestrator(Desk().agents, model=tagged("cheap")), model=other))
        brain.add_model(cheap, tags="cheap")
        with Client(brain) as client:
            assert client.chat("go").text == ANSWER

        assert (len(cheap.asked), len(other.asked)) == (1, 0)

    def test_without_any_it_is_a_fault_of_the_wiring(self) -> None:
        [fault] = Brain("b", Flow(Orchestrator(Desk().agents, name="desk")).named("x")).faults()

        assert "agent `desk` at b/x" in fault
        assert "has no model" in fault

    def test_unknown_tags_are_too(self) -> None:
        [fault] = Brain("b", Flow(Orchestrator(Desk().agents, model=tagged("none")))).faults()

        assert "`none`" in fault

    def test_a_test_may_answer_for_it(self) -> None:
        brain = Brain("b", Flow(Orchestrator(Desk().agents, model=Model("real", api_key="k"))))
        with Client(brain, models=ScriptedModel(FINISH)) as client:
            assert client.chat("go").text == ANSWER

    def test_another_backend_needs_no_model(self) -> None:
        class Oracle:
            name = "oracle"

            def ask(
                self,
                conversation: Conversation,
                *,
                told: Callable[[str], None],
                spent: Callable[[Usage], None],
                scope: Scope,
                deadline: float,
            ) -> Said:
                spent(Usage(1, 2))
                text = json.dumps({"action": "finish", "answer": conversation.fresh[-1].text.upper()})
                told(text)
                return Said(text)

        with Client(Brain("b", Flow(Orchestrator([], backend=Oracle())))) as client:
            answer = client.chat("go")

        assert (answer.text, answer.usage) == ("GO", Usage(1, 2))


def test_the_tree_of_the_brain_shows_its_agents_and_their_tools() -> None:
    flow, _ = served(FINISH, name="desk")
    settings = Settings()
    brain = Brain("b", flow.named("x"))

    lines = draw(brain.compiled(settings), {}).splitlines()

    assert lines[1:] == [
        "  0  b/x: agent desk, ScriptedModel('scripted')",
        "    user-agent: user-retriever",
        "    math",
        "    math/basic: add",
        "    math/advanced: diff",
    ]


def test_it_stands_wherever_a_flow_does() -> None:
    @agent(selects=("desk",))
    def router(turn: Turn, chat: Chat) -> None:
        turn.select("desk")

    flow, _ = served(FINISH)
    with Client(Brain("b", Flow(router) >> Select(flow.named("desk")) >> respond)) as client:
        assert client.chat("go").text == ANSWER


def test_an_agent_of_an_orchestrator_is_none_of_a_flow_and_that_is_told() -> None:
    wrong: Any = Agent("a", "d")

    with pytest.raises(WiringError, match="or an `Orchestrator`"):
        Flow(wrong)


class TestResuming:
    """A worker that dies: what was done is not done again."""

    def test_a_task_that_was_done_is_not_begun_again(self) -> None:
        desk = Desk()
        flow, model = served(DESCRIBE, f"{RETRIEVE} {ADD}", FINISH, desk=desk)
        with Client(Brain("b", flow.named("desk").durable())) as client:
            client.crash_at("desk", done=True)
            answer = client.chat("When was User 1 born?")

        assert client.crashes == 1
        assert answer.text == ANSWER
        assert len(model.asked) == 3
        assert [tag for tag, _ in desk.given] == ["user-retriever", "add"]

    def test_a_step_that_failed_goes_on_behind_the_calls_that_it_made(self) -> None:
        desk = Desk()
        flow, model = served(DESCRIBE, RETRIEVE, ConnectionError("lost"), FINISH, desk=desk)
        with Client(Brain("b", flow.named("desk").durable(retries=1))) as client:
            answer = client.chat("When was User 1 born?")

        assert answer.text == ANSWER
        assert [tag for tag, _ in desk.given] == ["user-retriever"]
        assert [role for role, _ in told(model)] == ["user", "assistant", "user", "assistant", "user"]

    def test_an_answer_that_broke_off_is_gone_on_with(self) -> None:
        flow, model = served(RETRIEVE, Breaks(after='{"action": "finish", "answer": "User 1 was'), FINISH)
        with Client(Brain("b", flow.named("desk").durable(retries=1))) as client:
            answer = client.chat("When was User 1 born?")

        assert answer.text == ANSWER
        assert model.last.messages[-1].text.endswith('must begin with exactly this: "User 1 was"')

    def test_a_flow_that_is_not_durable_keeps_nothing(self) -> None:
        flow, _ = served(FINISH)
        with Client(Brain("b", flow)) as client:
            client.crash_at("0", done=True)
            answer = client.ask("go")

        assert answer.failed is not None
        assert answer.failed.code == "run_interrupted"
