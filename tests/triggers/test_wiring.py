"""Trigger chains: what a brain makes of them, and what is wrong with those that cannot work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pytest

from bigbrain import (
    All,
    Brain,
    Chat,
    Every,
    FixedModel,
    Flow,
    Message,
    Model,
    Once,
    Request,
    Turn,
    Webhook,
    WiringError,
    again,
    agent,
    respond,
)
from bigbrain.messages import user
from bigbrain.models import model
from bigbrain.settings import Settings
from bigbrain.turns import TRIGGER
from bigbrain.webhooks import stripe_signature

SETTINGS = Settings()


@agent
def work(turn: Turn, chat: Chat) -> None:
    turn.reply("done")


A, B = Flow(work), Flow(work)
JOB = A.named("job")


def faults(*chains: Flow, served: Flow | None = A) -> tuple[str, ...]:
    brain = Brain("b", served)
    for chain in chains:
        brain.add_trigger(chain)
    return brain.faults(SETTINGS)


@pytest.mark.parametrize(
    "chain",
    [
        Every("0 21 * * *", tz="Europe/Berlin") >> JOB,
        Every("@daily", catch_up="all", overlap="allow") >> A >> B.named("job"),
        Every("*/5 * * * * *") >> JOB.durable(retries=1),
        Once("2026-07-01T09:00") >> JOB,
        Once(datetime(2026, 7, 1), tz="Europe/Berlin") >> JOB,
        Once(minutes=10) >> JOB >> respond,
        Webhook("stripe", unsigned=True) >> A,
        Webhook("stripe", verify=stripe_signature("whsec_1")) >> A >> B,
        Webhook("own", verify=lambda delivery: not delivery.body) >> A,
        A >> B,
        JOB,
        Every("@hourly") >> JOB >> Once(minutes=5) >> B.named("later"),
        Every("@hourly") >> JOB >> Once(minutes=5) >> again("job"),
    ],
)
def test_a_sound_trigger_has_no_faults(chain: Flow) -> None:
    assert faults(chain) == ()


@pytest.mark.parametrize(
    ("chain", "told"),
    [
        (Every("0 0 30 2 *") >> JOB, "can never come to pass"),
        (Every("61 * * * *") >> JOB, "Bad minute"),
        (Every("0 9 * * *", tz="Europe/Berln") >> JOB, "no time zone `Europe/Berln`"),
        (Every("0 9 * * *", tz="Europe") >> JOB, "no time zone `Europe`"),
        (Every("0 9 * * *", catch_up="every") >> JOB, "`catch_up` is `every`"),  # type: ignore[arg-type]
        (Every("0 9 * * *", overlap="wait") >> JOB, "`overlap` is `wait`"),  # type: ignore[arg-type]
        (Every("0 9 * * *", retries=-1) >> JOB, "`retries` is -1"),
        (Every("0 9 * * *") >> A, "no id"),
        (Every("0 9 * * *") >> JOB >> B.named("other"), "the ids `job`, `other`"),
        (Every("0 9 * * *").named("nightly") >> JOB, "name the flow after it instead"),
        (Every("0 9 * * *"), "nothing after it"),
        (Every("0 9 * * *") >> A.named("nächtlich"), "no id for a trigger"),
        (Every("0 9 * * *") >> A.named("a..b"), "no id for a trigger"),
        (Once("tomorrow") >> JOB, "`tomorrow` is no time"),
        (Once(lambda turn: 5) >> JOB, "no turn reaches it"),
        (Once(minutes=5) >> A, "no id"),
        (Once(minutes=5) >> respond, "no id"),
        (Webhook("stripe") >> A, "say `unsigned=True`"),
        (Webhook("stripe", verify=object()) >> A, "cannot verify"),
        (Webhook("stripe", verify=stripe_signature) >> A, "has no secret"),
        (Webhook("stripe", verify=object(), unsigned=True) >> A, "give one of them"),
        (Webhook("stripe", unsigned=True), "nothing after it"),
        (Webhook("stripe", unsigned=True) >> respond, "does nothing"),
        (Webhook("a/b", unsigned=True) >> A, "no id for a trigger"),
        (Webhook("stripe", unsigned=True) >> Flow(), "has no model"),
        (Every("0 9 * * *") >> Flow(model=model("cheap")).named("job"), "`cheap`"),
        (Every("0 9 * * *") >> JOB >> Once(minutes=5) >> A, "no id"),
        (respond, "does nothing"),
        (again("job"), "behind no trigger"),
        (Every("@daily") >> again("job"), "behind no trigger"),
        (
            Every("@daily") >> JOB >> Once(minutes=1) >> again("jobs"),
            "no trigger `jobs` to start again; there are `job`",
        ),
        (Every("@daily") >> JOB >> Once(minutes=1) >> again("job") >> A, "put it before"),
        (Every("@daily") >> JOB >> Webhook("x", unsigned=True) >> again("job"), "a webhook cannot start"),
    ],
)
def test_a_trigger_that_cannot_work_is_a_fault_of_the_wiring(chain: Flow, told: str) -> None:
    found = faults(chain)

    assert any(told in fault for fault in found), found


def test_a_trigger_that_a_served_flow_reaches_is_checked_as_well() -> None:
    found = faults(served=A >> Once(minutes=5) >> B)

    assert len(found) == 1
    assert "step 1" in found[0]
    assert "`.named(…)`" in found[0]


def test_two_triggers_of_one_id_are_a_fault_and_an_id_of_its_own_mends_it() -> None:
    weekday, weekend = Every("0 7 * * 1-5"), Every("0 9 * * 6,0")

    assert "two triggers are called `job`" in faults(weekday >> JOB, weekend >> JOB)[0]
    assert faults(weekday >> JOB, Every("0 9 * * 6,0", id="weekend") >> JOB) == ()


def test_one_chain_that_is_reached_from_two_flows_is_one_trigger() -> None:
    tail = Once(minutes=5) >> JOB
    brain = Brain("b", A >> tail)
    brain.add_flow(B >> tail, name="other")

    assert brain.faults(SETTINGS) == ()
    assert "trigger:job" in brain.compiled(SETTINGS)


def test_a_trigger_that_is_added_twice_is_a_fault() -> None:
    chain = Every("@daily") >> JOB

    assert "added twice" in faults(chain, chain)[0]


def test_a_served_flow_may_not_have_the_name_of_a_triggers_body() -> None:
    brain = Brain("b")
    brain.add_flow(A, name="trigger:job")
    brain.add_trigger(Every("@daily") >> JOB)

    assert "name it otherwise" in brain.faults(SETTINGS)[0]


def test_a_brain_may_have_triggers_only() -> None:
    assert faults(Every("@daily") >> JOB, served=None) == ()


def test_what_follows_a_trigger_is_no_part_of_the_chain_before_it() -> None:
    compiled = Brain("b", A >> respond >> Once(minutes=5) >> B.named("later") >> respond).compiled(SETTINGS)

    assert [step.path for step in compiled["b"].plan.steps()] == ["0", "2"]
    assert [step.agents for step in compiled["trigger:later"].plan.steps()] == [("work",)]


def test_a_named_chain_that_ends_with_a_trigger_is_followed_by_what_comes_after_it() -> None:
    inner = (A >> Once(minutes=5) >> B.named("later")).named("inner")
    compiled = Brain("b", inner >> Flow(work)).compiled(SETTINGS)

    assert [step.agents[0] for step in compiled["b"].plan.steps()] == ["work", "once later", "work"]


def test_the_model_of_a_group_around_a_trigger_is_asked_after_it() -> None:
    brain = Brain("b", (A >> Once(minutes=5) >> Flow().named("later")).asking(FixedModel("hi")))

    assert brain.faults(SETTINGS) == ()


def test_what_a_trigger_starts_survives_its_worker_and_has_the_triggers_retries() -> None:
    brain = Brain("b")
    brain.add_trigger(Every("@daily", retries=5) >> A >> JOB.durable(retries=1))
    brain.add_trigger(Every("@daily", retries=0) >> B.named("fragile"))
    compiled = brain.compiled(SETTINGS)

    kept = [binding.durability for binding in compiled["trigger:job"].bindings.values()]
    assert [one and one.retries for one in kept] == [5, 5]
    assert [binding.durability for binding in compiled["trigger:fragile"].bindings.values()] == [None]


def test_the_tree_shows_what_sets_off_what() -> None:
    brain = Brain("b", A >> Once(minutes=5) >> All(B, B).named("later"))
    brain.add_trigger(Every("0 7 * * *", tz="Europe/Berlin") >> JOB)
    brain.add_trigger(Webhook("stripe", unsigned=True) >> A)
    brain.add_trigger(Flow(work))

    tree = brain.tree(SETTINGS)

    assert "sets off `trigger:later`, once, 0:05:00 later" in tree
    assert "every `0 7 * * *` in Europe/Berlin" in tree
    assert "at each call of /v1/hooks/stripe" in tree
    assert "when the brain comes up" in tree


@dataclass
class Visit:
    name: str
    sure: float


def test_seeds_are_captured_once_and_kept_apart() -> None:
    brain = Brain("b")
    request = Request(model="m", messages=(Message("system", ()),), temperature=0.5, stream=True)
    visit = Visit("Sam", 0.93)
    brain.add_trigger(
        Every("@daily") >> JOB, seed_request=request, seed_chat="go", seed_payload=visit, seed_metadata={"by": "me"}
    )
    visit.name = "somebody else"

    [standing] = brain.program(SETTINGS).standing.values()

    assert standing.request.messages == (Message("system", ()), user("go"))
    assert (standing.request.temperature, standing.request.stream) == (0.5, False)
    assert standing.request.extra[TRIGGER] == {
        "payload": {"name": "Sam", "sure": 0.93},
        "metadata": {"by": "me"},
        "lineage": 1,
    }


def test_a_payload_that_is_no_json_is_refused_where_it_is_given() -> None:
    with pytest.raises(WiringError, match="the payload cannot be written as JSON"):
        Brain("b").add_trigger(Every("@daily") >> JOB, seed_payload=object())


def test_models_of_triggered_flows_are_looked_up_when_the_brain_is_built() -> None:
    brain = Brain("b")
    brain.add_model(Model("gpt", api_key="k"), tags=("cheap",))
    brain.add_trigger(Every("@daily") >> Flow(model=model("cheap")).named("job"))

    assert brain.faults(SETTINGS) == ()
