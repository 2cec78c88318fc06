"""The client of a brain in the same process."""

from __future__ import annotations

import threading

import fakeredis
import pytest

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.errors import Conflict, ModelBusy, UnknownModel, WiringError
from bigbrain.events import Failed, Started
from bigbrain.flows import Flow, One, respond
from bigbrain.messages import Request, ToolCall, Usage, assistant, user
from bigbrain.models import FixedModel, Model, model
from bigbrain.settings import Settings
from bigbrain.testing import AnswerFailed, Breaks, Client, Clock, Says, ScriptedModel
from bigbrain.trace import TraceEvent
from bigbrain.turns import Turn
from tests.engine.acting import until


@agent
def fail(turn: Turn, chat: Chat) -> None:
    raise ValueError("the author's own words")


def asking(*answers: object) -> tuple[Brain, ScriptedModel]:
    """A brain that is its model, and the model."""
    scripted = ScriptedModel(*answers)  # type: ignore[arg-type]
    return Brain("b", Flow(model=scripted)), scripted


@pytest.mark.parametrize(
    "asked",
    ["hi", user("hi"), [user("hi")], (user("hi"),), Request(messages=(user("hi"),))],
    ids=["text", "message", "list", "tuple", "request"],
)
def test_a_client_asks_with_whatever_is_at_hand(asked: object) -> None:
    brain, scripted = asking("Good evening.")

    with Client(brain) as client:
        answer = client.chat(asked)  # type: ignore[arg-type]

    assert answer.text == "Good evening."
    assert scripted.last.messages == (user("hi"),)


def test_a_whole_conversation_is_asked() -> None:
    brain, scripted = asking("Blue.")
    conversation = [user("My car is blue."), assistant("Nice."), user("Which colour?")]

    with Client(brain) as client:
        client.chat(conversation)

    assert scripted.last.messages == tuple(conversation)


def test_an_answer_tells_all_that_a_client_gets() -> None:
    call = ToolCall("c1", "look", "{}")
    brain, _ = asking(Says("Let me see.", thinking="Hm.", calls=(call,), usage=Usage(10, 2)))

    with Client(brain, now=Clock(77.0).now) as client:
        answer = client.chat("hi")

    assert (answer.text, answer.calls, answer.stop, answer.usage) == ("Let me see.", (call,), "calls", Usage(10, 2))
    assert "".join(answer.deltas) == "Let me see."
    assert (answer.run_id, answer.failed) == ("run-1", None)
    assert answer.events[0] == Started("run-1", "b", 77)
    assert answer.response.model == "b"


def test_a_client_picks_a_flow_by_its_name() -> None:
    brain, _ = asking("default")
    brain.add_flow(Flow(model=FixedModel("other")), name="other")

    with Client(brain) as client:
        assert client.chat("hi", model="other").text == "other"
        assert client.chat("hi", model="unknown").text == "default"


def test_a_failing_answer_raises_with_what_the_client_reads_and_what_only_the_record_knows() -> None:
    with (
        Client(Brain("b", Flow(fail))) as client,
        pytest.raises(AnswerFailed, match="the author's own words") as caught,
    ):
        client.chat("hi")

    assert (caught.value.code, caught.value.status) == ("handler_failed", 500)
    assert "own words" not in caught.value.failed.message


def test_a_failure_in_mid_answer_keeps_what_came_before() -> None:
    brain, _ = asking(Breaks("so far", ModelBusy(retry_after=2)))

    with Client(brain) as client, pytest.raises(AnswerFailed) as caught:
        client.chat("hi")

    assert caught.value.answer.text == "so far"
    assert caught.value.failed.retry_after == 2


def test_ask_gives_a_failure_as_an_answer() -> None:
    with Client(Brain("b", Flow(fail))) as client:
        answer = client.ask("hi")

    assert isinstance(answer.failed, Failed)
    assert answer.stop is None


def test_a_script_that_is_too_short_is_what_the_test_reads() -> None:
    brain, _ = asking()

    with Client(brain) as client, pytest.raises(AnswerFailed, match="has 0 answers and was asked 1 times"):
        client.chat("hi")


def test_a_record_waits_for_the_background() -> None:
    may_go_on, seen = threading.Event(), []

    @agent
    def after(turn: Turn, chat: Chat) -> None:
        may_go_on.wait(10)
        seen.append(turn.last.text)

    with Client(Brain("b", Flow(model=FixedModel("answer")) >> respond >> Flow(after))) as client:
        run_id = client.chat("hi").run_id
        assert seen == []
        may_go_on.set()
        record = client.record(run_id)

    assert seen == ["answer"]
    assert (record.status, [step["path"] for step in record.steps]) == ("done", ["0", "2"])


def test_an_unknown_run_has_no_record() -> None:
    brain, _ = asking()

    with Client(brain) as client, pytest.raises(KeyError, match="nobody"):
        client.record("nobody")


def test_a_run_id_answers_one_request() -> None:
    brain, scripted = asking("x", "y")

    with Client(brain) as client:
        first = client.chat("hi", run_id="mine")
        assert first.run_id == "mine"
        assert client.chat("hi", run_id="mine") == first
        assert len(scripted.asked) == 1
        with pytest.raises(Conflict):
            client.chat("something else", run_id="mine")


def test_a_strict_brain_refuses_an_unknown_model() -> None:
    with Client(Brain("b", Flow(model=FixedModel("x")), strict_models=True)) as client, pytest.raises(UnknownModel):
        client.chat("hi", model="unknown")


def test_an_answer_that_does_not_come_is_given_up_and_its_run_stopped() -> None:
    brain, scripted = asking(Says("never", delay=3600))

    with Client(brain, patience=0.3) as client, pytest.raises(TimeoutError, match=r"`run-1` is given up after 0\.3 s"):
        client.chat("hi")

    assert scripted.closed == 1


def test_the_model_of_a_races_loser_is_seen_to_be_left() -> None:
    slow, fast = ScriptedModel(Says("late", delay=3600)), ScriptedModel(Says("first"))
    begun = threading.Event()

    @agent
    def wait(turn: Turn, chat: Chat) -> None:
        reply = chat.ask("go")
        begun.set()
        turn.reply(reply)

    @agent
    def win(turn: Turn, chat: Chat) -> None:
        begun.wait(10)
        turn.reply(chat.ask("go"))

    with Client(Brain("b", One(Flow(wait, model=slow), Flow(win, model=fast)))) as client:
        answer = client.chat("hi")

    assert answer.text == "first"
    assert (slow.closed, fast.closed) == (1, 0)


def test_the_trace_of_a_run_tells_its_steps() -> None:
    brain, _ = asking("x", "y")

    with Client(brain) as client:
        client.chat("hi")
        other = client.chat("hi").run_id
        kinds = [event.kind for event in client.trace(other)]

    assert (kinds[0], kinds[1], kinds[-1]) == ("run.start", "step.start", "run.end")
    assert "flow.start" in kinds
    assert {event.run for event in client.trace(other)} == {other}


def test_the_brains_own_tracers_hear_as_well() -> None:
    heard: list[TraceEvent] = []

    class Author:
        def trace(self, event: TraceEvent) -> None:
            heard.append(event)

    with Client(Brain("b", Flow(model=FixedModel("x")), trace=[Author()])) as client:
        client.chat("hi")
        told = client.trace("run-1")
        until(lambda: len(heard) >= len(told))

    assert sorted(event.kind for event in heard) == sorted(event.kind for event in told)


def test_the_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIG_BRAIN_MODEL", "gpt-4o-mini")
    monkeypatch.setenv("BIG_BRAIN_API_KEY", "sk-canary")

    with pytest.raises(WiringError, match="has no model"):
        Client(Brain("b", Flow()))


def test_two_clients_with_one_server_see_the_same_runs() -> None:
    brain, _ = asking("x", "y")
    server = fakeredis.FakeRedis(server=fakeredis.FakeServer())

    with Client(brain, server=server) as one, Client(brain, server=server) as other:
        one.chat("hi", run_id="r")
        assert other.record("r").status == "done"


class TestPlayedModels:
    """Who answers for models that a brain names."""

    brain = Brain("b", Flow(model=model("clever")))
    brain.add_model(Model("small"))
    brain.add_model(Model("big", fallbacks=[model("spare")]), tags="clever")
    brain.add_model(Model("other"), tags="spare")
    brain.add_flow(Flow(), name="default")
    brain.add_flow(Flow(model=Model("direct")), name="direct")

    def test_one_answers_for_all(self) -> None:
        scripted = ScriptedModel("played", repeat=True)

        with Client(self.brain, models=scripted) as client:
            assert [client.chat("hi", model=flow).text for flow in ("b", "default", "direct")] == ["played"] * 3

    def test_each_is_played_under_its_name(self) -> None:
        names = ("small", "big", "other", "direct")

        with Client(self.brain, models={name: ScriptedModel(f"as {name}") for name in names}) as client:
            answers = [client.chat("hi", model=flow).text for flow in ("b", "default", "direct")]

        assert answers == ["as big", "as small", "as direct"]

    def test_a_fallback_is_asked_when_its_model_fails(self) -> None:
        models = {"big": ScriptedModel(ModelBusy), "other": ScriptedModel("instead"), "small": ScriptedModel()}

        with Client(self.brain, models={**models, "direct": ScriptedModel()}) as client:
            assert client.chat("hi").text == "instead"

    def test_a_model_that_nobody_plays_is_a_fault(self) -> None:
        with pytest.raises(WiringError, match="nobody plays the model `small`") as caught:
            Client(self.brain, models={"big": ScriptedModel(), "other": ScriptedModel()})

        assert len(caught.value.faults) == 2

    def test_what_answers_by_itself_is_asked_unless_one_answers_for_all(self) -> None:
        brain = Brain("b", Flow(model=FixedModel("itself")))

        with Client(brain, models={}) as client:
            assert client.chat("hi").text == "itself"
        with Client(brain, models=ScriptedModel("played")) as client:
            assert client.chat("hi").text == "played"

    def test_the_model_of_the_environment_is_played_too(self) -> None:
        with Client(Brain("b", Flow()), models=ScriptedModel("played"), settings=Settings(model="any")) as client:
            assert client.chat("hi").text == "played"

    def test_a_brain_without_any_model_stays_faulty(self) -> None:
        with pytest.raises(WiringError, match="has no model"):
            Client(Brain("b", Flow()), models=ScriptedModel())

    def test_the_brain_itself_stays_as_it_is(self) -> None:
        before = self.brain.models

        with Client(self.brain, models=ScriptedModel()):
            assert self.brain.models is before
        assert self.brain.trace == ()
