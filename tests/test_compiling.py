"""What a tree of flows comes down to: paths, names, models, and every fault at once."""

from __future__ import annotations

from bigbrain.agents import Agent, agent
from bigbrain.chat import Chat
from bigbrain.compiling import Compiled, compile_flow
from bigbrain.engine.plan import Mark, Step
from bigbrain.flows import Flow, respond
from bigbrain.models import FixedModel, Model, Models, model
from bigbrain.settings import Settings
from bigbrain.turns import Turn


def nothing(turn: Turn, chat: Chat) -> None: ...


def doing(name: str, **more: object) -> Flow:
    return Flow(Agent(name=name, handler=nothing, **more))


def compiled(flow: Flow, *models: object) -> Compiled:
    registry = Models()
    for one in models:
        registry.add(one)
    return compile_flow("main", flow, registry, Settings())


def test_a_path_is_a_position_and_a_respond_is_a_mark() -> None:
    flow = compiled(doing("a") >> respond >> doing("b"))

    assert flow.plan.items == (Step("0", "main", ("a",)), Mark("1"), Step("2", "main", ("b",)))
    assert list(flow.bindings) == ["0", "2"]
    assert flow.faults == ()


def test_chains_within_chains_are_one_row_and_their_names_are_kept() -> None:
    inner = (doing("b") >> doing("c").named("deep")).named("inner")
    flow = compiled(doing("a") >> inner >> doing("d"))

    assert [(step.path, step.flow) for step in flow.plan.steps()] == [
        ("0", "main"),
        ("1", "main/inner"),
        ("2", "main/inner/deep"),
        ("3", "main"),
    ]


def test_how_a_chain_was_put_together_makes_no_difference() -> None:
    a, b, c = doing("a"), doing("b"), doing("c")

    assert compiled((a >> b) >> c).plan == compiled(a >> (b >> c)).plan == compiled(a.next(b).next(c)).plan


def test_the_same_flow_twice_is_two_steps() -> None:
    a = doing("a")

    assert [step.path for step in compiled(a >> a).plan.steps()] == ["0", "1"]


def test_a_handler_that_keeps_a_processor_busy_marks_its_step() -> None:
    assert [step.cpu for step in compiled(doing("a", cpu=True) >> doing("b")).plan.steps()] == [True, False]


def test_the_nearest_model_is_asked() -> None:
    own, flows, chains, default = (FixedModel(name) for name in ("own", "flow", "chain", "default"))
    inner = (doing("a", model=own) >> Flow(Agent(name="b", handler=nothing), model=flows) >> doing("c")).asking(chains)
    flow = compiled(inner >> doing("d"), default)

    assert [flow.bindings[path].work.model for path in "0123"] == [own, flows, chains, default]


def test_an_agent_with_a_handler_can_do_without_a_model() -> None:
    flow = compiled(doing("a"))

    assert (flow.bindings["0"].work.model, flow.faults) == (None, ())


def test_all_faults_are_told_at_once_each_with_its_place_and_remedy() -> None:
    flow = compiled(Flow() >> (Flow() >> doing("a", model=model("fast"))).named("inner"))

    assert flow.faults == (
        "agent `model` at main, step 0, has no model: give one to the agent, its flow or the brain",
        "agent `model` at main/inner, step 1, has no model: give one to the agent, its flow or the brain",
        "agent `a` at main/inner, step 2: no model has the tags `fast`; known tags: none",
    )


def test_a_model_without_a_key_is_a_fault() -> None:
    [fault] = compiled(Flow(), Model("gpt-4o-mini")).faults

    assert fault.startswith("agent `model` at main, step 0: ")
    assert "BIG_BRAIN_API_KEY" in fault


def test_a_flow_that_does_nothing_is_a_fault() -> None:
    assert compiled(respond >> respond).faults == ("flow `main` does nothing: put a flow with an agent into it",)


def test_the_same_tree_has_the_same_structure_and_another_one_another() -> None:
    @agent
    def b(turn: Turn, chat: Chat) -> None: ...

    trees = [
        doing("a") >> Flow(b),
        Flow(b) >> doing("a"),
        doing("a") >> respond >> Flow(b),
        (doing("a") >> Flow(b)).named("x"),
        doing("a") >> doing("b", cpu=True),
        doing("new") >> doing("a") >> Flow(b),
    ]

    prints = {compiled(tree).plan.fingerprint for tree in trees}
    assert len(prints) == len(trees)
    assert compiled(doing("a") >> doing("b")).plan.fingerprint == compiled(trees[0]).plan.fingerprint
