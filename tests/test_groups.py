"""Select, All, One, Group, several agents in one flow, and what they do to the answer."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from bigbrain.agents import Agent, agent
from bigbrain.brain import Brain
from bigbrain.budgets import Budget
from bigbrain.chat import Chat
from bigbrain.checkpoints import Checkpoint
from bigbrain.errors import ModelBusy, WiringError
from bigbrain.events import Event, Opened, replay
from bigbrain.flows import All, Flow, Group, Notify, One, Select, respond
from bigbrain.messages import Request, Response, Text, Usage
from bigbrain.models import FixedModel
from bigbrain.scope import Scope
from bigbrain.turns import Turn
from tests.house import living


def say(*texts: str, select: str = "", name: str = "say") -> Agent:
    """An agent that replies with these texts and selects."""

    @agent(name=name)
    def saying(turn: Turn, chat: Chat) -> None:
        for text in texts:
            turn.reply(text)
        if select:
            turn.select(select)

    return saying


def saying(*texts: str, select: str = "") -> Flow:
    return Flow(say(*texts, select=select))


class Spending:
    """A model that says its text for 10 tokens in and 2 out."""

    def __init__(self, text: str) -> None:
        self.text = text

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        yield from replay(Response(parts=(Text(self.text),), stop="end", usage=Usage(10, 2)))


TALK = saying("talked").named("talk")
HOUSE = saying("housed").named("house")


def answer(flow: Flow) -> str:
    with living(Brain("b", flow)) as house:
        return house.ask("go").text


def code(flow: Flow) -> str:
    with living(Brain("b", flow)) as house:
        return house.fail("go").code


def faults(flow: Flow) -> tuple[str, ...]:
    return Brain("b", flow).faults()


# Select


def test_select_runs_the_member_of_the_selected_id() -> None:
    assert answer(saying(select="house") >> Select(TALK, HOUSE) >> respond) == "housed"


def test_an_unknown_id_fails_and_the_record_names_the_known_ones() -> None:
    with living(Brain("b", saying(select="garden") >> Select(TALK, HOUSE))) as house:
        failed = house.fail("go", "r")
        record = house.record("r")

    assert failed.code == "select_error"
    assert "`garden` is no member" in record.error["detail"]
    assert "`talk`, `house`" in record.error["detail"]


def test_without_a_selection_no_member_runs() -> None:
    assert answer(saying("alone") >> Select(TALK, HOUSE) >> respond) == "alone"


def test_without_a_selection_the_default_runs() -> None:
    assert answer(saying() >> Select(TALK, HOUSE, default="talk") >> respond) == "talked"


def test_a_select_that_comes_first_runs_its_default() -> None:
    assert answer(Select(TALK, HOUSE, default="house") >> respond) == "housed"


def test_the_last_selection_of_a_turn_wins() -> None:
    @agent
    def both(turn: Turn, chat: Chat) -> None:
        turn.select("talk")
        turn.select("house")

    assert answer(Flow(both) >> Select(TALK, HOUSE)) == "housed"


def test_a_selection_reaches_the_next_select_through_all_that_stands_between() -> None:
    told: list[str] = []
    between = saying("between") >> respond >> Notify(told.append) >> All(saying("x"), saying("y"))

    assert answer(saying(select="house") >> between >> Select(TALK, HOUSE) >> respond) == "between\n\nx\n\ny\n\nhoused"


def test_a_selection_is_taken_once() -> None:
    second = Select(saying("again").named("house"), saying("nothing").named("talk"), default="talk")

    assert answer(saying(select="house") >> Select(TALK, HOUSE) >> second >> respond) == "housed\n\nnothing"


def test_a_member_may_select_for_the_next_select() -> None:
    first = Select(saying("one", select="house").named("first"))

    assert answer(saying(select="first") >> first >> Select(TALK, HOUSE) >> respond) == "one\n\nhoused"


def test_a_member_may_be_a_chain_with_its_own_stage() -> None:
    member = (saying("a") >> respond >> saying("b")).named("long")

    assert answer(saying(select="long") >> Select(member) >> respond) == "a\n\nb"


def test_a_selects_members_inside_members_are_chosen_in_turn() -> None:
    inner = (saying(select="house") >> Select(TALK, HOUSE)).named("inner")

    assert answer(saying(select="inner") >> Select(inner, TALK) >> respond) == "housed"


def test_each_step_of_a_chosen_member_is_a_step_of_the_run() -> None:
    member = (saying("a") >> saying("b")).named("long")
    with living(Brain("b", saying(select="long") >> Select(member, TALK) >> respond)) as house:
        house.ask("go", "r")
        paths = [step["path"] for step in house.record("r").steps]

    assert paths == ["0", "1/long/0", "1/long/1"]


def test_the_selects_model_is_the_default_of_its_members() -> None:
    select = Select(Flow().named("plain"), model=FixedModel("from the select"))

    assert answer(saying(select="plain") >> select) == "from the select"


def test_a_flows_own_model_beats_the_selects() -> None:
    select = Select(Flow(model=FixedModel("own")).named("plain"), model=FixedModel("from the select"))

    assert answer(saying(select="plain") >> select) == "own"


def test_a_select_without_ids_or_with_equal_ones_is_faulty() -> None:
    found = faults(saying(select="x") >> Select(saying("anonymous"), TALK, TALK))

    assert "member 1 of the Select" in found[0]
    assert "two members `talk`" in found[1]


def test_a_default_that_is_no_member_is_faulty() -> None:
    [fault] = faults(Select(TALK, default="garden"))

    assert "no member `garden`; there are `talk`" in fault


@pytest.mark.parametrize(
    "between",
    [
        Select(TALK, HOUSE),
        Select(TALK, HOUSE).named("named"),
        Select(TALK, HOUSE, model=FixedModel("x")),
        respond >> Select(TALK, HOUSE),
        saying("x") >> (saying("y") >> Select(TALK, HOUSE)).named("chain"),
    ],
)
def test_a_declared_exit_that_the_next_select_lacks_is_faulty(between: Flow) -> None:
    @agent(selects=("talk", "garden"))
    def router(turn: Turn, chat: Chat) -> None:
        turn.select("talk")

    [fault] = faults(Flow(router) >> between)

    assert "declares the exits `garden`" in fault
    assert "`talk`, `house`" in fault


def test_declared_exits_without_any_select_are_faulty() -> None:
    @agent(selects=("talk",))
    def router(turn: Turn, chat: Chat) -> None: ...

    assert "no Select comes after it" in faults(Flow(router) >> saying("x"))[0]


@pytest.mark.parametrize("group", [All, One, Group])
def test_an_agent_in_a_group_may_select_inside_it_or_after_it(group) -> None:
    @agent(selects=("talk",))
    def router(turn: Turn, chat: Chat) -> None:
        turn.select("talk")

    assert faults(group(Flow(router) >> Select(TALK, HOUSE))) == ()
    assert faults(group(Flow(router)) >> Select(TALK, HOUSE)) == ()
    assert answer(group(Flow(router) >> Select(TALK, HOUSE)) >> respond) == "talked"
    assert answer(group(Flow(router)) >> Select(TALK, HOUSE) >> respond) == "talked"


# Several agents in one flow


def test_agents_of_one_flow_reply_in_the_order_of_their_declaration() -> None:
    first_may_go = threading.Event()

    @agent
    def slow(turn: Turn, chat: Chat) -> None:
        assert first_may_go.wait(5)
        turn.reply("slow")

    @agent
    def fast(turn: Turn, chat: Chat) -> None:
        turn.reply("fast")
        first_may_go.set()

    assert answer(Flow(slow, fast) >> respond) == "slow\n\nfast"


def test_agents_of_one_flow_see_the_conversation_as_it_was() -> None:
    seen: list[str] = []

    @agent
    def look(turn: Turn, chat: Chat) -> None:
        seen.append(turn.last.text)

    answer(saying("before") >> Flow(look, look, say("x")))

    assert seen == ["before", "before"]


@pytest.mark.parametrize("many", [lambda *a: Flow(*a), lambda *a: All(*map(Flow, a)), lambda *a: Group(*map(Flow, a))])
def test_agents_at_once_that_select_differently_fail(many) -> None:
    flow = many(say(select="talk"), say(select="house")) >> Select(TALK, HOUSE)

    assert code(flow) == "select_error"


@pytest.mark.parametrize("many", [lambda *a: Flow(*a), lambda *a: All(*map(Flow, a)), lambda *a: Group(*map(Flow, a))])
def test_agents_at_once_may_select_the_same(many) -> None:
    assert answer(many(say(select="talk"), say(select="talk")) >> Select(TALK, HOUSE) >> respond) == "talked"


@pytest.mark.parametrize("group", [All, One, Group, lambda *flows: Flow(*(flow.body.agents[0] for flow in flows))])
def test_no_member_of_a_group_may_stream(group) -> None:
    streams: list[object] = []

    @agent
    def claim(turn: Turn, chat: Chat) -> None:
        streams.append(turn.stream())
        turn.reply("x")

    answer(group(Flow(claim), Flow(claim)) >> respond)

    assert streams[0] is None


# All


def test_all_keeps_the_order_of_its_members() -> None:
    assert answer(All(saying("a"), saying("b", "c"), saying("d")) >> respond) == "a\n\nb\n\nc\n\nd"


def test_all_gives_each_member_its_own_conversation() -> None:
    seen: list[int] = []

    @agent
    def look(turn: Turn, chat: Chat) -> None:
        seen.append(len(turn.messages))

    answer(All(saying("x") >> Flow(look), Flow(look)))

    assert sorted(seen) == [1, 2]


def test_a_failing_member_fails_all_and_stops_the_others() -> None:
    stopped = threading.Event()

    @agent
    def wait(turn: Turn, chat: Chat) -> None:
        try:
            chat.ask("x").text
        finally:
            stopped.set()

    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise ValueError("boom")

    slow = Flow(wait, model=FixedModel("never " * 100, delay=1.0))

    assert code(All(slow, Flow(fail))) == "handler_failed"
    assert stopped.wait(5)


@pytest.mark.parametrize("group", [All, Group, lambda *flows: Flow(*(flow.body.agents[0] for flow in flows))])
@pytest.mark.parametrize("error", [SystemExit(1), KeyError("k"), RecursionError()])
def test_a_crash_in_a_member_ends_the_run_only(group, error: BaseException) -> None:
    @agent
    def crash(turn: Turn, chat: Chat) -> None:
        raise error

    assert code(group(Flow(crash), saying("x"))) == "handler_failed"


def test_a_group_without_members_is_faulty() -> None:
    assert "has no members" in faults(All())[0]


def test_spread_members_are_runs_of_their_own_and_come_together_in_order() -> None:
    long = saying("a") >> saying("b")
    flow = saying("before") >> All(long, saying("c"), spread=True) >> saying("after") >> respond
    with living(Brain("b", flow)) as house:
        answer = house.ask("go", "r")
        members = [house.record(f"r.1.{number}") for number in range(2)]

    assert answer.text == "before\n\na\n\nb\n\nc\n\nafter"
    assert [[step["path"] for step in member.steps] for member in members] == [["1/0/0", "1/0/1"], ["1/1/0"]]
    assert [member.status for member in members] == ["done", "done"]


def test_spread_members_see_what_was_said_before_them_and_are_paid_for() -> None:
    @agent
    def look(turn: Turn, chat: Chat) -> None:
        turn.reply(f"{turn.messages[0].text}, {turn.last.text}: {chat.ask('x').text}")

    flow = (
        saying("said") >> All(Flow(look, model=Spending("1")), Flow(look, model=Spending("2")), spread=True) >> respond
    )
    with living(Brain("b", flow)) as house:
        answer = house.ask("go")

    assert answer.text == "said\n\ngo, said: 1\n\ngo, said: 2"
    assert answer.usage == Usage(20, 4)


def test_a_spread_member_may_select() -> None:
    assert (
        answer(All(saying("x"), saying(select="talk"), spread=True) >> Select(TALK, HOUSE) >> respond) == "x\n\ntalked"
    )


def test_a_spread_member_that_fails_fails_the_group_with_its_own_code_and_stops_the_others() -> None:
    @agent
    def busy(turn: Turn, chat: Chat) -> None:
        raise ModelBusy("quota")

    slow = Flow(model=FixedModel("never " * 100, delay=1.0))
    with living(Brain("b", All(slow, Flow(busy), spread=True) >> respond)) as house:
        failed = house.fail("go", "r")
        other = house.record("r.0.0")

    assert (failed.code, failed.status) == ("model_busy", 429)
    assert other.status == "cancelled"


def test_stopping_a_run_stops_its_spread_members() -> None:
    begun = threading.Event()

    @agent
    def begin(turn: Turn, chat: Chat) -> None:
        begun.set()
        chat.ask("x").text

    flow = All(Flow(begin, model=FixedModel("never " * 100, delay=1.0)), saying("x"), spread=True) >> respond
    with living(Brain("b", flow)) as house, house.reception.receive(Request(), "r", 0.0):
        assert begun.wait(5)
        house.store.stop("r")
        member, run = house.record("r.0.0"), house.record("r")

    assert (member.status, run.status) == ("cancelled", "cancelled")


# One


def test_one_takes_the_first_that_succeeds_and_closes_the_others_calls() -> None:
    closed = threading.Event()

    class Endless:
        def ask(self, request: Request, scope: Scope) -> Generator[Event]:
            try:
                yield Opened(0, Text())
                scope.wait(60)
            finally:
                closed.set()

    assert answer(One(Flow(model=Endless()), saying("first")) >> respond) == "first"
    assert closed.wait(5)


def test_an_early_error_does_not_end_the_race() -> None:
    failed = threading.Event()

    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        failed.set()
        raise ValueError("early")

    @agent
    def late(turn: Turn, chat: Chat) -> None:
        assert failed.wait(5)
        turn.reply("late")

    assert answer(One(Flow(fail), Flow(late)) >> respond) == "late"


def test_one_fails_when_all_members_do() -> None:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise ValueError("all of them")

    assert code(One(Flow(fail), Flow(fail))) == "handler_failed"


def test_one_does_not_wait_for_a_member_that_does_not_listen() -> None:
    release = threading.Event()

    @agent
    def deaf(turn: Turn, chat: Chat) -> None:
        release.wait(30)

    try:
        assert answer(One(Flow(deaf), saying("quick")) >> respond) == "quick"
    finally:
        release.set()


def test_only_the_winners_selection_counts() -> None:
    won = threading.Event()

    @agent
    def loser(turn: Turn, chat: Chat) -> None:
        turn.select("house")
        won.wait(5)

    flow = One(Flow(loser), saying("w", select="talk")) >> Select(TALK, HOUSE) >> respond

    assert answer(flow) == "w\n\ntalked"
    won.set()


# Checkpoints

HEARD = Checkpoint("heard")


def test_an_agent_waits_until_another_has_reached_a_checkpoint_in_every_run_anew() -> None:
    order: list[str] = []

    @agent
    def first(turn: Turn, chat: Chat) -> None:
        order.append("first")
        turn.reach(HEARD)

    @agent
    def second(turn: Turn, chat: Chat) -> None:
        turn.wait_for(HEARD)
        order.append("second")
        turn.reply("done")

    with living(Brain("b", Flow(second, first) >> respond)) as house:
        answers = [house.ask("go").text for _ in range(3)]

    assert answers == ["done"] * 3
    assert order == ["first", "second"] * 3


def test_a_checkpoint_stays_reached_for_the_later_flows_of_its_run_only() -> None:
    @agent
    def reach(turn: Turn, chat: Chat) -> None:
        if turn.last.text == "reach":
            turn.reach(HEARD)

    @agent
    def wait(turn: Turn, chat: Chat) -> None:
        turn.wait_for(HEARD, timeout=0.05)
        turn.reply("there")

    with living(Brain("b", Flow(reach) >> Flow(wait))) as house:
        assert house.ask("reach").text == "there"
        assert house.fail("do not").code == "run_failed"


def test_waiting_ends_when_the_other_agent_fails() -> None:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise ValueError("never gets there")

    @agent
    def wait(turn: Turn, chat: Chat) -> None:
        turn.wait_for(HEARD)

    assert code(Flow(wait, fail)) == "handler_failed"


# Group


def test_members_of_a_group_hear_each_other_at_once() -> None:
    said, heard = threading.Event(), []

    @agent
    def speaker(turn: Turn, chat: Chat) -> None:
        turn.reply("hello")
        said.set()

    @agent
    def listener(turn: Turn, chat: Chat) -> None:
        assert said.wait(5)
        heard.append(turn.last.text)
        turn.reply("heard")

    assert answer(Group(Flow(listener), Flow(speaker)) >> respond) == "hello\n\nheard"
    assert heard == ["hello"]


def test_an_all_inside_a_group_is_heard_when_it_is_done() -> None:
    done, heard = threading.Event(), []

    @agent
    def tell(turn: Turn, chat: Chat) -> None:
        done.set()

    @agent
    def listener(turn: Turn, chat: Chat) -> None:
        assert done.wait(5)
        heard.extend(message.text for message in turn.messages[1:])

    answer(Group(All(saying("a"), saying("b")) >> Flow(tell), Flow(listener)))

    assert heard == ["a", "b"]


def test_a_group_inside_an_all_keeps_its_words_together() -> None:
    inner = Group(saying("a"))

    assert answer(All(inner >> saying("b"), saying("c")) >> respond) == "a\n\nb\n\nc"


# Money


def test_every_members_tokens_are_counted() -> None:
    flow = All(Flow(model=Spending("a")), Flow(model=Spending("b"))) >> Flow(model=Spending("c"))
    with living(Brain("b", flow)) as house:
        assert house.ask("go").usage == Usage(30, 6)


def test_a_flows_budget_stops_further_questions_in_it() -> None:
    spend = Flow(model=Spending("x"))
    flow = (spend >> spend >> spend).within(Budget(tokens=20))

    with living(Brain("b", flow >> respond)) as house:
        failed = house.fail("go", "r")
        paths = [step["path"] for step in house.record("r").steps]

    assert failed.code == "budget_spent"
    assert paths == ["0", "1", "2"]


def test_a_budget_of_one_flow_does_not_bind_another() -> None:
    spend = Flow(model=Spending("x"))

    assert answer(spend.within(Budget(tokens=5)) >> spend >> respond) == "x\n\nx"


# Notify


def test_notify_tells_the_newest_reply_and_adds_nothing() -> None:
    told: list[str] = []

    assert answer(saying("one") >> saying("two") >> Notify(told.append)) == "two"
    assert told == ["two"]


def test_a_flow_before_a_notify_still_answers_live() -> None:
    streams: list[object] = []

    @agent
    def live(turn: Turn, chat: Chat) -> None:
        streams.append(turn.stream())

    answer(Flow(live) >> Notify(lambda text: None))

    assert streams[0] is not None


def test_a_notify_that_fails_is_tried_again_and_spoils_nothing() -> None:
    tries: list[str] = []

    def fail(text: str) -> None:
        tries.append(text)
        raise OSError("nobody there")

    with living(Brain("b", saying("fine") >> respond >> Notify(fail, tries=2))) as house:
        text = house.ask("go", "r").text
        record = house.record("r")

    assert text == "fine"
    assert tries == ["fine", "fine"]
    assert record.status == "done"


@pytest.mark.parametrize("to", ["ftp://x", "not a url"])
def test_a_notify_to_nowhere_is_refused(to: str) -> None:
    with pytest.raises(WiringError, match="http"):
        Notify(to)
