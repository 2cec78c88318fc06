"""Where a run goes from each step, over random trees."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bigbrain.engine.plan import SEAM, Fork, Item, Mark, Plan, Step, UnknownChoice, Way
from bigbrain.engine.records import END

Trace = tuple[Item, ...]


@st.composite
def sequences(draw: st.DrawFn, prefix: str = "", depth: int = 2) -> tuple[Item, ...]:
    """A sequence in which every fork follows a step, which is who chooses."""
    items: list[Item] = []
    kinds = st.lists(st.sampled_from(["step", "mark", "fork"] if depth else ["step", "mark"]), max_size=4)
    for kind in draw(kinds):
        if kind != "mark":
            items.append(step(f"{prefix}{len(items)}"))
        if kind == "mark" or (kind == "fork" and draw(st.booleans())):
            items.append(Mark(f"{prefix}{len(items)}"))
        if kind == "fork":
            path = f"{prefix}{len(items)}"
            members = {
                name: draw(sequences(f"{path}/{name}/", depth - 1)) for name in ("a", "b")[: draw(st.integers(1, 2))]
            }
            items.append(Fork(path, "choice", members))
    return tuple(items)


plans = sequences().map(Plan)


def step(path: str) -> Step:
    return Step(path, "flow", ("agent",))


def traces(items: tuple[Item, ...]) -> list[Trace]:
    """Every way through a sequence: the steps and marks passed, a fork standing for its choice as `Step(member)`."""
    ways: list[list[Trace]] = []
    for item in items:
        if isinstance(item, Fork):
            ways.append([(item, *way) for member in item.members.values() for way in traces(member)])
        else:
            ways.append([(item,)])
    return [tuple(one for way in combination for one in way) for combination in product(*ways)]


def steps_of(trace: Trace) -> list[Step]:
    return [item for item in trace if isinstance(item, Step)]


def choices(plan: Plan, trace: Trace) -> Iterator[tuple[Step, Trace, str | None]]:
    """Each step of a trace with what is passed until the next one and the choice that leads there."""
    for index, item in enumerate(trace):
        if not isinstance(item, Step):
            continue
        passed = list[Item]()
        for later in trace[index + 1 :]:
            if isinstance(later, Step):
                break
            passed.append(later)
        yield item, trace[index + 1 :], next((choice_of(one, trace) for one in passed if isinstance(one, Fork)), None)


def choice_of(fork: Fork, trace: Trace) -> str | None:
    """The member of a fork that a trace went through; the first one of those that make no difference to it."""
    for name, member in fork.members.items():
        if any(item in trace for item in member):
            return name
    return next((name for name, member in fork.members.items() if not member), None)


@settings(max_examples=30, deadline=None)
@given(plans)
def test_every_way_through_a_plan_is_the_one_that_its_choices_say(plan: Plan) -> None:
    for trace in traces(plan.items):
        for at, later, choice in choices(plan, trace):
            way = plan.after(at.path, choice)

            following = [item for item in later if isinstance(item, Step)]
            marks = 0
            for item in later:
                if isinstance(item, Step):
                    break
                marks += isinstance(item, Mark)
            assert (way.path, way.marks) == (following[0].path if following else END, marks)
            assert way.used == (choice is not None)


@settings(max_examples=30, deadline=None)
@given(plans)
def test_more_stages_may_end_exactly_when_some_way_on_ends_one(plan: Plan) -> None:
    every = traces(plan.items)
    for trace in every:
        for at, _, choice in choices(plan, trace):
            way = plan.after(at.path, choice)
            on = [other[other.index(plan.step(way.path)) :] for other in every if _passes(other, way.path)]

            assert way.more == any(isinstance(item, Mark) for rest in on for item in rest)


def _passes(trace: Trace, path: str) -> bool:
    return any(item.path == path for item in steps_of(trace))


def seams(plan: Plan) -> set[str]:
    """The paths of the steps after which what is ahead is named anew."""
    return {step.path for number, step in enumerate(plan.steps(), 1) if number % SEAM == 0}


@settings(max_examples=30, deadline=None)
@given(plans)
@example(Plan(tuple(Step(str(number), "flow", ("agent",)) for number in range(20))))
def test_what_is_sure_to_come_is_what_all_ways_have_in_common_up_to_a_choice_or_a_seam(plan: Plan) -> None:
    for trace in traces(plan.items):
        for index, item in enumerate(trace):
            if not isinstance(item, Step):
                continue
            sure = list[Item]()
            for later in trace[index:]:
                if isinstance(later, Fork):
                    break
                sure.append(later)
                if later.path in seams(plan):
                    break

            assert plan.ahead(item.path) == steps_of(tuple(sure))


def long_plan() -> Plan:
    """Several seams: in a sequence, in one member of a choice, and behind it."""
    members = {
        "a": tuple(step(f"6/a/{number}") for number in range(3)),
        "b": tuple(step(f"6/b/{number}") for number in range(12)),
    }
    before, after = (tuple(step(str(number)) for number in numbers) for numbers in (range(6), range(7, 30)))
    return Plan((*before, Fork("6", "choice", members), *after, Mark("30")))


@settings(max_examples=30, deadline=None)
@given(plans)
@example(long_plan())
def test_a_chain_ends_with_the_run_or_where_its_last_step_has_the_next_one_sent(plan: Plan) -> None:
    for at in plan.steps():
        chain = plan.ahead(at.path)
        last = chain[-1].path

        # wherever the run is in it, the rest of the chain is what is ahead: no step is sent twice and none is forgotten
        assert [plan.ahead(step.path) for step in chain] == [chain[index:] for index in range(len(chain))]
        assert plan.leads_on(last) or plan.after(last).path == END


def test_what_the_messages_of_a_long_plan_name_grows_with_its_length_and_not_with_its_square() -> None:
    def named(count: int) -> int:
        plan = Plan(tuple(step(str(number)) for number in range(count)))
        at, names = 0, 0
        while at < count:
            chain = plan.ahead(str(at))
            # each message of a chain names the steps that are left of it
            names += sum(range(1, len(chain) + 1))
            at += len(chain)
        return names

    assert named(800) == 10 * named(80)


@settings(max_examples=30, deadline=None)
@given(plans)
def test_the_first_step_is_the_first_of_the_tree(plan: Plan) -> None:
    steps = list(plan.steps())

    assert plan.first().path == (steps[0].path if steps else END)


@settings(max_examples=30, deadline=None)
@given(plans)
def test_every_step_is_found_by_its_path(plan: Plan) -> None:
    assert [plan.step(item.path) for item in plan.steps()] == list(plan.steps())


@settings(max_examples=30, deadline=None)
@given(plans)
def test_a_plan_is_single_when_it_has_one_step_wherever_that_stands(plan: Plan) -> None:
    assert plan.single == (len(list(plan.steps())) == 1)


def test_a_plan_knows_its_fork_and_names_its_members() -> None:
    plan = Plan((step("0"), Fork("1", "rooms", {"kitchen": (step("1/kitchen/0"),)})))

    assert plan.after("0", "kitchen") == Way("1/kitchen/0", used=True, entered=("kitchen",), speech=True)
    with pytest.raises(UnknownChoice, match=r"`cellar` is no member of `rooms`; its members are `kitchen`"):
        plan.after("0", "cellar")


def test_a_choice_that_nobody_made_passes_the_fork() -> None:
    plan = Plan((step("0"), Fork("1", "rooms", {"kitchen": (step("1/kitchen/0"),)}), Mark("2")))

    assert plan.after("0") == Way(END, marks=1, skipped=("rooms",))


def test_a_choice_that_nobody_made_takes_the_default_and_uses_up_nothing() -> None:
    kitchen, cellar = (step("1/kitchen/0"),), (step("1/cellar/0"),)
    plan = Plan((step("0"), Fork("1", "rooms", {"kitchen": kitchen, "cellar": cellar}, default="cellar")))

    assert plan.after("0") == Way("1/cellar/0", used=False, entered=("cellar",), speech=True)


def test_a_mute_step_says_nothing_and_is_still_a_step() -> None:
    plan = Plan((step("0"), Step("1", "b", mute=True), Mark("2")))

    assert not plan.speech_after("0")
    assert plan.marks_after("0")
    assert not plan.stage_ends_after("0")
    assert plan.stage_ends_after("1")
    assert plan.after("0") == Way("1", more=True, speech=False)


def test_the_select_that_takes_a_choice_is_the_next_one_of_the_chain() -> None:
    rooms = Fork("2", "rooms", {"kitchen": (step("2/kitchen/0"),)})
    plan = Plan((step("0"), Mark("1"), rooms, step("3")))

    assert plan.next_fork("0") == rooms
    assert plan.next_fork("2/kitchen/0") is None


@pytest.mark.parametrize("path", ["9", "1/attic/0", "1/kitchen", END, ""])
def test_an_unknown_path_is_a_key_error(path: str) -> None:
    plan = Plan((step("0"), Fork("1", "rooms", {"kitchen": (step("1/kitchen/0"),)})))

    for ask in (plan.step, plan.ahead):
        with pytest.raises(KeyError):
            ask(path)
    with pytest.raises(KeyError):
        plan.after(path)


def test_the_fingerprint_tells_order_names_and_kinds_apart() -> None:
    a, b = Step("0", "main", ("a",)), Step("1", "main", ("b",))
    plans = [
        Plan((a, b)),
        Plan((Step("0", "main", ("b",)), Step("1", "main", ("a",)))),
        Plan((Step("0", "other", ("a",)), b)),
        Plan((a,)),
        Plan((a, Mark("1"))),
        Plan((a, Step("1", "main", ("b",), shape="prompt"))),
    ]

    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert Plan((a, b)).fingerprint == Plan((Step("0", "main", ("a",)), b)).fingerprint
