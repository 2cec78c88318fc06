"""A brain: which flow answers, what is wrong with it, how it looks."""

from __future__ import annotations

import pytest

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.errors import UnknownModel, WiringError
from bigbrain.flows import All, Flow, Notify, One, Select, respond
from bigbrain.models import FixedModel, Model
from bigbrain.settings import Settings
from bigbrain.turns import Turn

A, B, C = (Flow(model=FixedModel(text)) for text in "abc")


def test_the_flow_that_a_brain_is_made_with_is_the_default() -> None:
    brain = Brain("main", A)
    brain.add_flow(B)
    brain.add_flow(C, name="c")

    assert list(brain.flows.items()) == [("main", A), ("c", C)]
    assert [brain.route(name) for name in ("main", "c", "", "gpt-9")] == ["main", "c", "main", "main"]


def test_two_flows_of_one_name_are_a_fault() -> None:
    brain = Brain("main", A)
    brain.add_flow(B, name="b")
    brain.add_flow(C, name="b")

    assert brain.faults() == ("two flows are named `b`, so one could never answer: rename one",)


def test_a_strict_brain_refuses_a_model_that_it_does_not_have() -> None:
    brain = Brain("main", A, strict_models=True)

    assert brain.route("") == brain.route("main") == "main"
    with pytest.raises(UnknownModel, match="there are `main`"):
        brain.route("gpt-9")


def test_without_one_the_last_flow_without_a_name_is_the_default() -> None:
    brain = Brain("main")
    brain.add_flow(A)
    brain.add_flow(B)
    brain.add_flow(C, name="c")

    assert list(brain.flows.items()) == [("main", B), ("c", C)]


def test_without_any_the_last_named_one_is_the_default() -> None:
    brain = Brain("main")
    brain.add_flow(A, name="a")
    brain.add_flow(B, name="b")

    assert list(brain.flows) == ["b", "a"]
    assert brain.route("gpt-9") == "b"


def test_a_named_flow_does_not_take_the_place_of_the_default() -> None:
    brain = Brain("main", A)
    brain.add_flow(B, name="main")

    assert brain.flows == {"main": A}


def test_a_brain_without_a_flow_is_faulty_and_cannot_be_built() -> None:
    brain = Brain("main")

    assert brain.faults(Settings()) == (
        "the brain has no flow: give one to `Brain(name, flow)` or `brain.add_flow(flow)`",
    )
    for use in (lambda: brain.program(Settings()), lambda: brain.route("x")):
        with pytest.raises(WiringError, match="the brain has no flow"):
            use()


def test_the_faults_of_all_flows_are_told_at_once() -> None:
    brain = Brain("main", Flow())
    brain.add_flow(Flow() >> Flow(), name="other")

    assert [fault.partition(", has")[0] for fault in brain.faults(Settings())] == [
        "agent `model` at main, step 0",
        "agent `model` at other, step 0",
        "agent `model` at other, step 1",
    ]
    with pytest.raises(WiringError) as caught:
        brain.program(Settings())
    assert caught.value.faults == brain.faults(Settings())


def test_a_brain_knows_whether_it_needs_a_worker_for_the_processor() -> None:
    @agent(cpu=True)
    def crunch(turn: Turn, chat: Chat) -> None: ...

    assert Brain("b", A >> Flow(crunch)).has_cpu_steps
    assert not Brain("b", A).has_cpu_steps
    assert not Brain("b").has_cpu_steps


def test_the_tree_shows_flows_steps_stages_agents_and_models_but_no_key() -> None:
    @agent(cpu=True)
    def crunch(turn: Turn, chat: Chat) -> None: ...

    brain = Brain("main", Flow(crunch, model=FixedModel("x")).named("maths") >> respond >> Flow())
    brain.add_model(Model("gpt-4o-mini", api_key="sk-secret"))
    lines = brain.tree(Settings()).splitlines()

    assert lines[0] == f"main  (structure {brain.program(Settings()).fingerprint('main')})"
    assert lines[1].startswith("  0  main/maths: agent crunch, FixedModel(text='x'")
    assert lines[1].endswith("[cpu]")
    assert lines[2] == "  1  respond"
    assert lines[3].startswith("  2  main: agent model, ")
    assert "gpt-4o-mini" in lines[3]
    assert "sk-secret" not in brain.tree(Settings())


def test_the_tree_of_a_faulty_brain_is_drawn_all_the_same() -> None:
    assert Brain("main", Flow()).tree(Settings()).splitlines()[1] == "  0  main: agent model, no model"


def test_choices_and_groups_are_drawn_with_their_members() -> None:
    @agent
    def a(turn: Turn, chat: Chat) -> None: ...

    rooms = Select((Flow(a) >> respond).named("kitchen"), Flow(a, a).named("hall"), default="hall")
    flow = Flow(a) >> rooms >> All(Flow(a).named("x"), One(Flow(a))) >> Notify("https://example.test/hook")

    assert Brain("main", flow).tree(Settings()).splitlines()[1:] == [
        "  0  main: agent a, no model",
        "  1  main: select one, `hall` by default",
        "    kitchen",
        "      1/kitchen/0  main/kitchen: agent a, no model",
        "      1/kitchen/1  respond",
        "    hall",
        "      1/hall/0  main/hall: agents at once",
        "        agent a, no model",
        "        agent a, no model",
        "  2  main: all of",
        "    x",
        "      2/0/0  main/x: agent a, no model",
        "    1",
        "      2/1/0  main: the first of",
        "        0",
        "          2/1/0/0/0  main: agent a, no model",
        "  3  main: notify example.test",
    ]


@pytest.mark.parametrize("id", ["", "a b", "a/b", "a\n"])
def test_an_id_that_would_break_a_path_is_refused(id: str) -> None:
    with pytest.raises(WiringError, match="is no id for a flow"):
        A.named(id)
