"""Triggers that fire: once for each instant, with what they carry, again when they fail."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import fakeredis
import pytest
import redis

from bigbrain import Brain, Chat, Every, Flow, Once, Turn, Webhook, again, agent, respond
from bigbrain.engine.schedules import Firing, ScheduleStore
from bigbrain.messages import Request, user
from bigbrain.testing import Client, Clock
from tests.engine.acting import until

START = datetime(2026, 6, 1, 12, tzinfo=UTC)


@dataclass
class Visit:
    visitor: str
    sure: float


class Work:
    """What bodies do: each firing is noted with the instant that it answers for; the first `failing` fail."""

    def __init__(self, failing: int = 0) -> None:
        self.due: list[str] = []
        self.failing = failing
        self.visits: list[tuple[Visit | None, dict[str, str] | None]] = []

    @property
    def flow(self) -> Flow:
        @agent(name="work")
        def work(turn: Turn, chat: Chat) -> None:
            if self.failing > 0:
                self.failing -= 1
                raise ValueError("not yet")
            self.visits.append((turn.payload(Visit), turn.metadata(dict[str, str])))
            self.due.append(turn.due.strftime("%d %H:%M:%S") if turn.due else "-")
            turn.reply(f"worked on {turn.last.text or 'nothing'}")

        return Flow(work)


@pytest.fixture
def server() -> redis.Redis:
    return fakeredis.FakeRedis(server=fakeredis.FakeServer(), max_connections=1000)


@contextmanager
def at_work(server: redis.Redis, *chains: Flow, clock: Clock, served: Flow | None = None) -> Iterator[Client]:
    brain = Brain("b", served)
    for chain in chains:
        brain.add_trigger(chain)
    with Client(brain, server=server, now=clock.now) as client:
        yield client


def job(work: Work) -> Flow:
    return work.flow.named("job")


def test_every_fires_at_its_instants_and_says_which_one_it_is(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    with at_work(server, Every("30 12 * * *") >> job(work), clock=clock) as client:
        assert client.reception.runs.schedules.one("job").due == (START + timedelta(minutes=30)).timestamp() * 1000
        clock.advance(1800)
        [first] = client.fired("job")
        clock.advance(86_400)
        first_again, second = client.fired("job", 2)

    assert first.text == first_again.text == "worked on nothing"
    assert second.run_id == "open:job:20260602T123000Z"
    assert work.due == ["01 12:30:00", "02 12:30:00"]


def test_the_test_kit_brings_what_a_schedule_needs() -> None:
    work, clock = Work(), Clock(START)
    brain = Brain("b")
    brain.add_trigger(Once(seconds=1) >> job(work))
    with Client(brain, now=clock.now) as client:
        clock.advance(1)
        client.fired("job")

    assert work.due == ["01 12:00:01"]


def test_every_that_a_run_reaches_goes_on_with_what_was_said(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    flow = Flow(echo) >> respond >> Every("0 * * * *") >> work.flow.named("hourly")
    with at_work(server, clock=clock, served=flow) as client:
        client.record(client.chat("look").run_id)
        clock.advance(3600)
        client.fired("hourly", 1)
        clock.advance(3600)
        answers = client.fired("hourly", 2)

    assert [answer.text for answer in answers] == ["worked on you said: look"] * 2
    assert work.due == ["01 13:00:00", "01 14:00:00"]


def test_a_firing_is_a_run_that_is_told_and_listed(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    with at_work(server, Every("0 * * * *") >> job(work), clock=clock) as client:
        clock.advance(3600)
        [answer] = client.fired("job")
        kinds = [event.kind for event in client.trace(answer.run_id)]
        listed = client.reception.history.page("open", limit=10).rows

    assert (kinds[0], kinds[-1]) == ("run.start", "run.end")
    assert {"fired", "flow.start", "step.end"} <= set(kinds)
    assert [(row.id, row.flow) for row in listed] == [("open:job:20260601T130000Z", "trigger:job")]


@pytest.mark.parametrize(
    ("catch_up", "made_up_for"),
    [
        ("latest", ["04 12:00:00"]),
        ("none", []),
        ("all", ["02 12:00:00", "03 12:00:00", "04 12:00:00"]),
    ],
)
def test_what_was_missed_is_made_up_for_as_the_trigger_says_and_the_order_goes_on(
    server: redis.Redis, catch_up: str, made_up_for: list[str]
) -> None:
    # B14: no hour fires that the expression does not name, and no burst unless it is asked for
    work, clock = Work(), Clock(START)
    chain = Every("0 12 * * *", catch_up=catch_up) >> job(work)  # type: ignore[arg-type]
    with at_work(server, chain, clock=clock):
        pass
    clock.set(START + timedelta(days=3, hours=3))
    with at_work(server, chain, clock=clock) as client:
        client.fired("job", len(made_up_for))
        clock.set(START + timedelta(days=4))
        client.fired("job", len(made_up_for) + 1)

    assert work.due == [*made_up_for, "05 12:00:00"]


def test_a_clock_that_is_set_back_fires_nothing_twice(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    with at_work(server, Every("*/10 * * * * *") >> job(work), clock=clock) as client:
        clock.advance(10)
        client.fired("job", 1)
        clock.advance(-10)
        clock.advance(10)
        clock.advance(10)
        client.fired("job", 2)

    assert work.due == ["01 12:00:10", "01 12:00:20"]


def test_once_fires_once_across_restarts_before_and_after_its_time(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    chain = Once("2026-06-01T13:00") >> job(work)
    for _ in range(2):
        with at_work(server, chain, clock=clock):
            pass
    clock.advance(7200)
    with at_work(server, chain, clock=clock) as client:
        client.fired("job")
    for _ in range(2):
        with at_work(server, chain, clock=clock) as client:
            clock.advance(86_400)
            client.reception.runs.wake()

    assert work.due == ["01 13:00:00"]


def test_a_once_whose_time_has_passed_fires_now(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    with at_work(server, Once(START - timedelta(seconds=10)) >> job(work), clock=clock) as client:
        client.fired("job")

    assert work.due == ["01 11:59:50"]


def test_once_in_a_span_counts_from_when_the_brain_first_knew_it(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    chain = Once(minutes=10) >> job(work)
    with at_work(server, chain, clock=clock):
        pass
    clock.advance(300)
    with at_work(server, chain, clock=clock) as client:
        clock.advance(301)
        client.fired("job")

    assert work.due == ["01 12:10:00"]


def test_a_redeploy_changes_the_schedule_of_a_changed_trigger_and_removes_that_of_one_that_is_gone(
    server: redis.Redis,
) -> None:
    work, clock = Work(), Clock(START)
    other = Every("@hourly") >> work.flow.named("other")
    with at_work(server, Every("0 15 * * *") >> job(work), other, clock=clock):
        pass
    clock.advance(60)
    with at_work(server, Every("0 18 * * *") >> job(work), clock=clock) as client:
        schedules = client.reception.runs.schedules
        assert schedules.one("other") is None
        assert [one.id for one in schedules.page("", 10)] == ["job"]
        clock.set(START + timedelta(hours=6))
        client.fired("job")

    assert work.due == ["01 18:00:00"]


def test_a_redeploy_that_changes_only_how_it_catches_up_keeps_what_was_missed(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    with at_work(server, Every("0 13 * * *", catch_up="none") >> job(work), clock=clock):
        pass
    clock.advance(7200)
    with at_work(server, Every("0 13 * * *", catch_up="latest") >> job(work), clock=clock) as client:
        client.fired("job")

    assert work.due == ["01 13:00:00"]


def test_a_boot_task_runs_when_the_brain_comes_up_and_not_when_another_process_joins(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    brain = Brain("b")
    brain.add_trigger(work.flow)
    with Client(brain, server=server, now=clock.now) as client:
        client.fired("boot-1")
        schedules = client.reception.runs.schedules
        assert schedules.come_up("another", []) is False
        assert len(work.due) == 1
    schedules.leave("another")
    clock.advance(1)
    with Client(brain, server=server, now=clock.now) as client:
        client.fired("boot-1")

    assert work.due == ["01 12:00:00", "01 12:00:01"]


def test_a_once_that_a_run_put_off_carries_the_chat_and_what_it_carried_into_the_later_run(
    server: redis.Redis,
) -> None:
    work, clock = Work(), Clock(START)
    flow = Flow(echo) >> respond >> Once(minutes=10) >> work.flow.named("later") >> respond
    with at_work(server, clock=clock, served=flow) as client:
        answer = client.chat("call mum")
        client.record(answer.run_id)
        clock.advance(599)
        client.reception.runs.wake()
        assert work.due == []
        clock.advance(1)
        [later] = client.fired("later")
        assert client.record(later.run_id).status == "done"
        until(lambda: client.reception.runs.schedules.page("", 10) == [])

    assert answer.text == "you said: call mum"
    assert later.text == "worked on you said: call mum"
    assert work.due == ["01 12:10:00"]


@agent(name="echo")
def echo(turn: Turn, chat: Chat) -> None:
    turn.reply(f"you said: {turn.last.text}")


def test_seeds_reach_the_agent_at_every_firing_and_at_every_attempt(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    brain = Brain("b")
    brain.add_trigger(
        Every("0 * * * *") >> job(work),
        seed_payload=Visit("Sam", 0.9),
        seed_metadata={"door": "front"},
        seed_chat="look",
        seed_request=Request(messages=(user("first"),), temperature=0.1),
    )
    with Client(brain, server=server, now=clock.now) as client:
        client.crash_at("work")
        clock.advance(3600)
        client.fired("job", 1)
        clock.advance(3600)
        answers = client.fired("job", 2)

    assert work.visits == [(Visit("Sam", 0.9), {"door": "front"})] * 2
    assert [answer.text for answer in answers] == ["worked on look"] * 2
    assert client.trace(answers[0].run_id)[-1].detail["status"] == "done"


@pytest.mark.slow
def test_a_body_that_fails_is_retried_with_back_off_and_ends_as_a_dead_letter_that_can_be_taken_up_again(
    server: redis.Redis,
) -> None:
    work, clock = Work(failing=2), Clock(START)
    with at_work(server, Every("0 * * * *", retries=1) >> job(work), clock=clock) as client:
        clock.advance(3600)
        [answer] = client.fired("job")
        schedules = client.reception.runs.schedules
        until_dead(client)
        [dead] = schedules.dead("")

        assert answer.failed is not None
        assert (dead.run, dead.schedule, dead.flow) == (answer.run_id, "job", "trigger:job")
        assert "not yet" in dead.error["detail"]
        assert client.reception.runs.revive("", dead.run)
        assert client.record(dead.run).status == "done"
        assert schedules.dead("") == []

    assert [event.kind for event in client.trace(answer.run_id)].count("step.start") == 3
    assert work.due == ["01 13:00:00"]


def until_dead(client: Client) -> None:
    for _ in range(200):
        if client.reception.runs.schedules.dead(""):
            return
        client.reception.runs.wake()


def test_a_worker_that_dies_in_a_firing_loses_nothing(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    with at_work(server, Every("0 * * * *") >> job(work), clock=clock) as client:
        client.crash_at("work")
        clock.advance(3600)
        client.fired("job")

    assert client.crashes == 1
    assert work.due == ["01 13:00:00"]


def test_a_durable_flow_in_a_body_is_not_done_again_when_a_later_step_is_lost(server: redis.Redis) -> None:
    first, second, clock = Work(), Work(), Clock(START)
    chain = Every("0 * * * *") >> first.flow.named("job").durable() >> second.flow
    with at_work(server, chain, clock=clock) as client:
        client.crash_at("1")
        clock.advance(3600)
        client.fired("job")

    assert (len(first.due), len(second.due)) == (1, 1)


@pytest.mark.parametrize("trigger", ["job", "hook", "boot-3", "later"])
def test_any_trigger_can_be_fired_by_hand_with_a_payload(server: redis.Redis, trigger: str) -> None:
    work, clock = Work(), Clock(START)
    chains = (Every("0 0 1 1 *") >> job(work), Webhook("hook", unsigned=True) >> work.flow >> respond, work.flow)
    served = Flow(echo) >> Once(days=90) >> work.flow.named("later")
    with at_work(server, *chains, clock=clock, served=served) as client:
        client.fired("boot-3")
        answer = client.fire(trigger, payload=Visit("Ann", 1.0), metadata={"a": "b"}, due=START + timedelta(days=1))

    assert answer.text == "worked on nothing"
    assert work.visits[-1] == (Visit("Ann", 1.0), {"a": "b"})
    assert work.due[-1] == "02 12:00:00"


def test_firing_a_trigger_that_is_not_there_is_an_error(server: redis.Redis) -> None:
    with at_work(server, Every("@daily") >> job(Work()), clock=Clock(START)) as client, pytest.raises(KeyError):
        client.fire("nightly")


def test_a_lineage_is_counted_through_real_firings(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    chain = Flow(echo) >> work.flow.named("t9")
    for number in range(8, 0, -1):
        chain = Flow(echo).named(f"t{number}") >> Once(seconds=1) >> chain
    with at_work(server, Once(seconds=1) >> chain, clock=clock) as client:
        for number in range(1, 9):
            clock.advance(1)
            client.fired(f"t{number}")
        last = client.fired("t8")[0]
        record = client.record(last.run_id)

    assert record.status == "failed"
    assert "the 9th of a chain of triggers" in record.error["detail"]
    assert work.due == []


class Held:
    """A body that waits until it is let go, so that firings overlap."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = threading.Event()

    @property
    def flow(self) -> Flow:
        @agent(name="held")
        def held(turn: Turn, chat: Chat) -> None:
            self.begun.append(f"{turn.due:%S}")
            self.go.wait(20)

        return Flow(held).named("job")

    def wait(self, count: int) -> None:
        until(lambda: len(self.begun) >= count)


def test_a_firing_that_overlaps_is_left_out_by_default(server: redis.Redis) -> None:
    held, clock = Held(), Clock(START)
    with at_work(server, Every("* * * * * *") >> held.flow, clock=clock) as client:
        clock.advance(1)
        held.wait(1)
        for _ in range(3):
            clock.advance(1)
            client.reception.runs.wake()
        schedule = client.reception.runs.schedules.one("job")
        held.go.set()
        client.fired("job")
        until(lambda: client.reception.runs.schedules.one("job").under_way == 0)
        clock.advance(1)
        held.wait(2)

    assert (schedule.fired, schedule.skipped, schedule.under_way) == (1, 3, 1)
    assert held.begun == ["01", "05"]


def test_firings_that_wait_run_one_after_the_other_as_soon_as_they_can(server: redis.Redis) -> None:
    held, clock = Held(), Clock(START)
    with at_work(server, Every("* * * * * *", overlap="queue") >> held.flow, clock=clock) as client:
        clock.advance(1)
        held.wait(1)
        for _ in range(3):
            clock.advance(1)
            client.reception.runs.wake()
        assert client.reception.runs.schedules.one("job").waiting == 3
        assert held.begun == ["01"]
        held.go.set()
        client.fired("job", 4)

    assert held.begun == ["01", "02", "03", "04"]


def test_firings_that_may_overlap_run_beside_each_other(server: redis.Redis) -> None:
    held, clock = Held(), Clock(START)
    with at_work(server, Every("* * * * * *", overlap="allow", catch_up="all") >> held.flow, clock=clock) as client:
        clock.advance(3)
        held.wait(3)
        assert client.reception.runs.schedules.one("job").under_way == 3
        held.go.set()

    assert sorted(held.begun) == ["01", "02", "03"]


def test_two_that_fire_at_once_fire_each_instant_once(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    chain = Every("* * * * * *", overlap="allow", catch_up="all") >> job(work)
    with at_work(server, chain, clock=clock) as one, at_work(server, chain, clock=clock) as other:
        for _ in range(20):
            clock.advance(3)
            threads = [threading.Thread(target=client.reception.runs.wake) for client in (one, other, one)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        until(lambda: len(work.due) >= 60)

    assert sorted(work.due) == [f"01 12:00:{second:02}" for second in range(1, 60)] + ["01 12:01:00"]


def test_a_firing_whose_process_died_before_its_run_began_is_begun_by_another(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    chain = Every("0 * * * *") >> job(work)
    with at_work(server, chain, clock=clock):
        pass
    clock.advance(3600)
    schedules = ScheduleStore(server, now=clock.now)
    *_, [due] = schedules.due(0, 10)
    assert schedules.fire(due, due.due + 3_600_000, [Firing(due.due, "open:job:20260601T130000Z")])

    with at_work(server, chain, clock=clock) as client:
        client.reception.runs.wake()
        assert work.due == []
        clock.advance(4)
        client.fired("job")

    assert work.due == ["01 13:00:00"]


def test_a_schedule_whose_flow_this_process_does_not_have_is_left_to_another(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    brain, newer = Brain("old"), Brain("new")
    brain.add_trigger(Every("@daily") >> work.flow.named("other"))
    newer.add_trigger(Every("0 * * * *") >> job(work))
    with Client(newer, server=server, now=clock.now):
        pass
    clock.advance(3600)
    with Client(brain, server=server, now=clock.now) as client:
        client.reception.runs.wake()
        assert client.reception.runs.schedules.one("job").due is not None
    with Client(newer, server=server, now=clock.now) as client:
        client.fired("job")

    assert work.due == ["01 13:00:00"]


def test_a_schedule_that_cannot_be_read_holds_up_no_other(
    server: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    work, clock = Work(), Clock(START)
    chain = Every("0 * * * *") >> job(work)
    broken = Every("59 * * * *", id="broken") >> Work().flow.named("x")
    with at_work(server, chain, broken, clock=clock) as client:
        server.hset("bb:schedule:broken", "cron", "nonsense")
        clock.advance(3600)
        client.fired("job")

    assert work.due == ["01 13:00:00"]
    assert "schedule broken cannot fire" in caplog.text


def test_a_schedule_that_is_cancelled_fires_no_more_and_stays_so_until_it_is_changed(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    chain = Every("0 * * * *") >> job(work)
    with at_work(server, chain, clock=clock) as client:
        schedules = client.reception.runs.schedules
        assert schedules.cancel("job")
        assert not schedules.cancel("job")
        assert not schedules.cancel("nothing")
    with at_work(server, chain, clock=clock) as client:
        clock.advance(7200)
        client.reception.runs.wake()
        assert client.reception.runs.schedules.one("job").cancelled is not None
    with at_work(server, Every("30 * * * *") >> job(work), clock=clock) as client:
        clock.advance(1800)
        client.fired("job")

    assert work.due == ["01 14:30:00"]


def test_what_is_cancelled_while_it_is_due_neither_fires_nor_goes_on(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    chain = Every("0 * * * *") >> job(work)
    with at_work(server, chain, clock=clock):
        pass
    clock.advance(3600)
    schedules = ScheduleStore(server, now=clock.now)
    *_, [due] = schedules.due(0, 10)
    assert schedules.cancel("job")

    assert schedules.fire(due, due.due + 3_600_000, [Firing(due.due, "late")]) == []
    assert schedules.one("job").due is None
    assert schedules.look(10) == []


def test_a_once_that_a_run_put_off_is_gone_when_it_is_cancelled(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    with at_work(server, clock=clock, served=Flow(echo) >> Once(hours=1) >> work.flow.named("later")) as client:
        client.record(client.chat("one").run_id)
        client.record(client.chat("two").run_id)
        schedules = client.reception.runs.schedules
        first, _ = schedules.page("", 10)
        assert schedules.cancel(first.id)
        clock.advance(3600)
        client.fired("later")
        until(lambda: schedules.page("", 10) == [])

    assert len(work.due) == 1


def test_a_schedule_that_is_run_by_hand_keeps_its_order(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    with at_work(server, Every("0 13 * * *") >> job(work), clock=clock) as client:
        schedules = client.reception.runs.schedules
        assert schedules.run_now("job", Firing(int(clock.now() * 1000), "by-hand"))
        client.fired("job")
        assert not schedules.run_now("nothing", Firing(0, "x"))
        clock.advance(3600)
        client.fired("job", 2)

    assert work.due == ["01 12:00:00", "01 13:00:00"]


def test_a_long_list_of_schedules_is_read_page_by_page(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    with at_work(server, clock=clock, served=Flow(echo) >> Once(days=1) >> work.flow.named("later")) as client:
        for number in range(7):
            clock.advance(0.5 if number % 2 else 0)
            client.record(client.chat(f"{number}").run_id)
        schedules = client.reception.runs.schedules
        seen, page = [], schedules.page("", 3)
        while len(page) > 3:
            seen += [one.id for one in page[:3]]
            page = schedules.page("", 3, page[2].made, page[2].id)
        seen += [one.id for one in page]

    assert len(seen) == len(set(seen)) == 7


def test_a_body_has_itself_run_again_until_it_says_otherwise(server: redis.Redis) -> None:
    clock, looked = Clock(START), list[str]()

    @agent
    def look(turn: Turn, chat: Chat) -> None:
        looked.append(f"{turn.due:%H:%M} {turn.payload(str)}")

    def not_yet(turn: Turn) -> timedelta | None:
        return timedelta(minutes=1) if len(looked) < 4 else None

    brain = Brain("b")
    brain.add_trigger(Once(minutes=1) >> Flow(look).named("poll") >> Once(not_yet) >> again("poll"), seed_payload="bus")
    with Client(brain, server=server, now=clock.now) as client:
        for number in range(1, 5):
            clock.advance(60)
            client.fired("poll", number)
        runs = [client.record(answer.run_id).status for answer in client.fired("poll", 4)]

    assert looked == ["12:01 bus", "12:02 bus", "12:03 bus", "12:04 bus"]
    assert runs == ["done"] * 4
    assert server.zcard("bb:schedules") == 0


def test_a_loop_that_does_not_end_is_ended_after_eight_of_them(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    chain = Once(seconds=1) >> job(work) >> Once(seconds=1) >> again("job")
    with at_work(server, chain, clock=clock) as client:
        for number in range(1, 9):
            clock.advance(1)
            client.fired("job", number)
        until(lambda: client.reception.runs.schedules.dead(""))
        [dead] = client.reception.runs.schedules.dead("")

    assert len(work.due) == 8
    assert "the 9th of a chain of triggers" in dead.error["detail"]


def test_a_pause_before_a_retry_holds_no_worker_keeps_the_count_and_ends_when_the_run_is_stopped(
    server: redis.Redis,
) -> None:
    work, clock = Work(failing=9), Clock(START)
    with at_work(server, Every("0 * * * *", retries=5) >> job(work), clock=clock) as client:
        clock.advance(3600)
        run = "bb:run:open:job:20260601T130000Z"
        until(lambda: server.hget(run, "failures") == b"1")
        owner, attempt = server.hmget(run, "owner", "attempt")
        assert client.reception.runs.store.stop("open:job:20260601T130000Z")
        record = client.record("open:job:20260601T130000Z")
        until(lambda: client.reception.runs.schedules.one("job").under_way == 0 or clock.advance(6))

    assert (owner, attempt) == (b"", b"2")
    assert record.status == "cancelled"
    assert client.reception.runs.schedules.dead("") == []


def test_what_has_fired_leaves_nothing_that_stays(server: redis.Redis) -> None:
    work, clock = Work(), Clock(START)
    served = Flow(echo) >> respond >> Once(minutes=1) >> work.flow.named("later")
    with at_work(server, clock=clock, served=served) as client:
        client.record(client.chat("go").run_id)
        clock.advance(60)
        client.fired("later")
        until(lambda: client.reception.runs.schedules.page("", 10) == [])
        lasting = {key.decode() for key in server.scan_iter("bb:*") if server.pttl(key) < 0}

    # the moment since which a flow is served is kept for good
    assert lasting <= {"bb:served"}
