"""Acceptance 8.1: flows and how they are put together."""

from __future__ import annotations

import threading

import pytest

from bigbrain import Brain, Chat, FixedModel, Flow, Model, Turn, agent, respond
from bigbrain.checkpoints import Checkpoint
from bigbrain.flows import All, Group, Notify, One, Select
from bigbrain.models.spec import Provider
from bigbrain.settings import Settings
from bigbrain.testing import Client, ScriptedModel
from tests.acceptance.making import PATIENCE, answer, failure, looking, say, saying, told
from tests.upstream import Upstream


def test_a_default_agent_asks_its_model_and_appends_the_reply() -> None:
    seen: list[tuple[str, ...]] = []
    model = ScriptedModel("at your service")

    assert answer(Flow(model=model) >> respond >> looking(seen), "hello") == "at your service"
    assert [message.text for message in model.last.messages] == ["hello"]


def test_what_a_default_agent_answered_is_in_the_conversation_of_the_next_flow() -> None:
    seen: list[tuple[str, ...]] = []
    answer(Flow(model=FixedModel("at your service")) >> looking(seen) >> respond, "hello")

    assert seen == [("hello", "at your service")]


def test_several_agents_run_at_once_all_see_the_chat_their_replies_accumulate_and_may_select_the_same() -> None:
    meeting = threading.Barrier(3, timeout=PATIENCE)

    def meeter(name: str):
        @agent(name=name)
        def meet(turn: Turn, chat: Chat) -> None:
            meeting.wait()
            turn.reply(f"{name} heard {turn.last.text}")
            turn.select("end")

        return meet

    flow = Flow(meeter("a"), meeter("b"), meeter("c")) >> Select(saying("the end").named("end")) >> respond

    assert answer(flow, "hi") == "a heard hi\n\nb heard hi\n\nc heard hi\n\nthe end"


def test_a_checkpoint_makes_one_agent_wait_until_another_has_reached_it() -> None:
    there, order = Checkpoint("there"), []

    @agent
    def waits(turn: Turn, chat: Chat) -> None:
        turn.wait_for(there)
        order.append("after")

    @agent
    def reaches(turn: Turn, chat: Chat) -> None:
        order.append("before")
        turn.reach(there)

    answer(Flow(waits, reaches))

    assert order == ["before", "after"]


def test_a_checkpoint_that_is_declared_once_is_closed_again_in_each_run() -> None:
    """Inverted: the seed's is open for the life of the process once it was reached."""
    there, order = Checkpoint("there"), []

    @agent
    def waits(turn: Turn, chat: Chat) -> None:
        turn.wait_for(there)
        order.append("after")

    @agent
    def reaches(turn: Turn, chat: Chat) -> None:
        order.append("before")
        turn.reach(there)

    with Client(Brain("b", All(Flow(waits), Flow(reaches)))) as client:
        for _ in range(3):
            client.chat("go")

    assert order == ["before", "after"] * 3


def test_waiting_for_a_checkpoint_ends_when_the_run_is_stopped() -> None:
    waiting = threading.Event()

    @agent
    def waits(turn: Turn, chat: Chat) -> None:
        waiting.set()
        turn.wait_for(Checkpoint("never"))

    with Client(Brain("b", Flow(waits))) as client:
        stopper = threading.Thread(
            target=lambda: waiting.wait(PATIENCE) and client.reception.runs.store.stop("r"),
        )
        stopper.start()
        failed = client.ask("go", run_id="r").failed
        stopper.join()

        assert failed is not None
        assert client.record("r").status == "cancelled"


@pytest.mark.parametrize("many", [Flow, lambda *agents: All(*map(Flow, agents))])
def test_when_one_of_two_at_once_fails_the_other_is_stopped_and_the_run_ends_at_once(many) -> None:
    waiting, stopped = threading.Event(), threading.Event()

    @agent
    def waits(turn: Turn, chat: Chat) -> None:
        waiting.set()
        try:
            turn.wait_for(Checkpoint("never"))
        finally:
            stopped.set()

    @agent
    def fails(turn: Turn, chat: Chat) -> None:
        assert waiting.wait(PATIENCE)
        raise ValueError("boom")

    failed, _ = failure(many(waits, fails))

    assert failed.code == "handler_failed"
    assert stopped.wait(PATIENCE)


def test_a_handlers_error_fails_the_flow_and_the_record_names_its_flow_and_its_agent() -> None:
    @agent(name="clumsy")
    def fails(turn: Turn, chat: Chat) -> None:
        raise ValueError("dropped it")

    for flow in (Flow(fails).named("kitchen"), Flow(say("x"), fails).named("kitchen")):
        failed, detail = failure(flow)

        assert failed.code == "handler_failed"
        assert "`clumsy`" in detail
        assert "ValueError: dropped it" in detail


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_default_agent_surfaces_that_its_models_server_refuses(provider: Provider) -> None:
    with Upstream() as up:
        base_url = up.openai if provider == "openai" else up.anthropic
        model = Model("status:403", provider=provider, base_url=base_url, api_key="k", retries=0)
        failed, detail = failure(Flow(model=model))

    assert (failed.code, failed.status) == ("model_refused", 502)
    assert "refused with 403" in detail
    assert "refused with 403" not in failed.message


def test_next_runs_its_flows_in_order_each_on_what_the_ones_before_it_made() -> None:
    seen: list[tuple[str, ...]] = []
    look = looking(seen)
    answer(saying("a").next(look).next(saying("b")).next(look).next(saying("c").next(look)), "go")

    assert seen == [("go", "a"), ("go", "a", "b"), ("go", "a", "b", "c")]


COMPOSITES = [
    pytest.param(lambda flow, model: All(flow, model=model), id="All"),
    pytest.param(lambda flow, model: One(flow, model=model), id="One"),
    pytest.param(lambda flow, model: Group(flow, model=model), id="Group"),
    pytest.param(lambda flow, model: Select(flow.named("it"), default="it", model=model), id="Select"),
    pytest.param(lambda flow, model: (saying() >> flow).asking(model), id="chain"),
]


@pytest.mark.parametrize("around", COMPOSITES)
def test_a_model_that_is_set_on_a_group_is_the_default_of_the_agents_in_it(around) -> None:
    assert answer(around(Flow(), FixedModel("the group's")) >> respond) == "the group's"


@pytest.mark.parametrize("around", COMPOSITES)
def test_an_inner_flows_own_model_beats_the_groups(around) -> None:
    assert answer(around(Flow(model=FixedModel("its own")), FixedModel("the group's")) >> respond) == "its own"


@pytest.mark.parametrize(
    "composite",
    [
        pytest.param(All(saying("x")), id="All"),
        pytest.param(One(saying("x")), id="One"),
        pytest.param(Group(saying("x")), id="Group"),
        pytest.param(Select(saying("x").named("in"), default="in"), id="Select"),
        pytest.param(saying("x") >> saying("y"), id="chain"),
        pytest.param(saying("x") >> Notify(lambda text: None), id="Notify"),
    ],
)
def test_an_id_can_be_put_on_any_composite_and_is_reported(composite: Flow) -> None:
    flows = [event.flow for event in told(composite.named("inner") >> respond) if event.kind == "flow.start"]

    assert flows
    assert all(flow.startswith("b/inner") for flow in flows)


def test_the_id_of_a_spread_group_is_reported_by_the_runs_of_its_members() -> None:
    with Client(Brain("b", All(saying("x"), spread=True).named("inner") >> respond)) as client:
        client.chat("go", run_id="r")
        client.record("r")

        assert {event.flow for event in client.trace("r.0.0") if event.kind == "flow.start"} == {"b/inner"}


def test_validation_passes_a_sound_tree() -> None:
    @agent(selects=("talk", "house"))
    def router(turn: Turn, chat: Chat) -> None:
        turn.select("talk")

    talk = Flow(model=FixedModel("x")).named("talk")
    house = (All(Flow(), saying("x"), model=FixedModel("x")) >> respond >> Group(saying("y"))).named("house")
    flow = Flow(router) >> respond >> Select(talk, house).named("rooms") >> respond >> Notify("https://example.test/x")

    assert Brain("b", flow).faults(Settings()) == ()
