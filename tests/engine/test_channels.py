"""Every event reaches every follower once and in order, whatever becomes of the subscription."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import redis

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.embedded import EmbeddedRedis
from bigbrain.engine.channels import SILENCE, Follower, Hub
from bigbrain.engine.records import END, Claim, LogId, Outcome
from bigbrain.engine.server import connect
from bigbrain.engine.store import RunStore
from bigbrain.engine.writer import LogWriter
from bigbrain.errors import RunExpired
from bigbrain.events import Closed, Delta, Event, Failed, Finished, Opened, collect, write_events
from bigbrain.flows import Flow
from bigbrain.messages import Text
from bigbrain.models import FixedModel
from bigbrain.scope import Scope
from bigbrain.turns import Turn
from tests.engine.acting import new_run, until
from tests.house import House


@pytest.fixture
def hub(store: RunStore) -> Iterator[Hub]:
    """A hub that hears."""
    one = Hub(store)
    until(lambda: hears(store, one))
    yield one
    one.close()


def hears(store: RunStore, hub: Hub) -> bool:
    return store.client.pubsub_numsub(hub.channel)[0][1] > 0


def begun(store: RunStore, follower: str = "", run_id: str = "r1") -> Claim:
    """A run under way: its first step, claimed."""
    store.start(new_run(run_id), follower)
    claim = store.claim(run_id, "0", 1, "owner")
    assert claim is not None
    return claim


def tell(store: RunStore, claim: Claim, seq: int, text: str) -> None:
    store.append([(claim.run_id, claim.fence, seq, write_events([Delta(0, text)]))])


def end(store: RunStore, claim: Claim, seq: int) -> None:
    store.commit(claim, Outcome(next=END, state=b"{}", events=(Finished("end"),), answered=True), seq)
    store.finish(claim.run_id)


def texts(follower: Follower, count: int) -> list[str]:
    """The next so many pieces of text."""
    found: list[str] = []

    def enough() -> bool:
        found.extend(event.text for event in follower.read(0.05) if isinstance(event, Delta))
        return len(found) >= count

    until(enough)
    return found


def whole(follower: Follower, seconds: float = 60.0) -> list[Event]:
    """All events until the last one."""
    events: list[Event] = []

    def over() -> bool:
        events.extend(follower.read(0.1))
        return follower.over

    until(over, seconds)
    return events


def test_a_follower_from_the_start_hears_everything(hub: Hub, store: RunStore) -> None:
    with hub.follow("r1", seq=1) as follower:
        claim = begun(store, hub.channel)
        tell(store, claim, 2, "a")
        tell(store, claim, 3, "b")
        end(store, claim, 4)

        assert whole(follower) == [Delta(0, "a"), Delta(0, "b"), Finished("end")]
        assert follower.seq == 4


def test_all_followers_in_a_process_hear_everything_through_one_subscription(hub: Hub, store: RunStore) -> None:
    with hub.follow("r1", seq=1) as one, hub.follow("r1", seq=1) as other:
        claim = begun(store, hub.channel)
        tell(store, claim, 2, "a")

        assert (texts(one, 1), texts(other, 1)) == (["a"], ["a"])
        assert len(hub) == 2
        assert len(store.client.pubsub_channels("bb:web:*")) == 1


def test_one_that_leaves_takes_nothing_from_the_others(hub: Hub, store: RunStore) -> None:
    with hub.follow("r1", seq=1) as stays:
        with hub.follow("r1", seq=1):
            claim = begun(store, hub.channel)
        tell(store, claim, 2, "a")

        assert texts(stays, 1) == ["a"]
    assert store.client.scard("bb:run:r1:followers") == 0


def test_a_late_one_reads_what_it_missed_then_hears_the_rest(hub: Hub, store: RunStore) -> None:
    claim = begun(store)
    tell(store, claim, 2, "a")
    tell(store, claim, 3, "b")
    with hub.follow("r1", seq=2) as follower:
        caught = follower.catch_up()
        tell(store, claim, 4, "c")

        assert caught == [Delta(0, "b")]
        assert texts(follower, 1) == ["c"]


def test_what_is_told_before_the_hub_has_subscribed_is_read(store: RunStore) -> None:
    hub = Hub(store)
    with hub.follow("r1", seq=1) as follower:
        claim = begun(store, hub.channel)
        tell(store, claim, 2, "a")
        end(store, claim, 3)

        assert whole(follower) == [Delta(0, "a"), Finished("end")]
    hub.close()


def test_a_gap_is_filled_from_the_log_and_what_comes_twice_is_dropped(hub: Hub, store: RunStore) -> None:
    claim = begun(store)
    for seq, text in enumerate("abcd", 2):
        tell(store, claim, seq, text)
    with hub.follow("r1", seq=1) as follower:
        for seq in (2, 2, 4, 3, 4, 5, 5):
            follower.post((LogId(seq, claim.fence), write_events([Delta(0, "abcd"[seq - 2])])))

        assert texts(follower, 4) == ["a", "b", "c", "d"]
        assert follower.read(0.0) == []
        assert follower.seq == 5


def test_a_nudge_ends_the_wait(hub: Hub) -> None:
    with hub.follow("r1") as follower, ThreadPoolExecutor(1) as pool:
        read = pool.submit(follower.read, 30.0)
        follower.nudge()

        assert read.result(10) == []


def test_a_run_that_is_gone_is_expired(hub: Hub) -> None:
    with hub.follow("gone") as follower, pytest.raises(RunExpired):
        follower.catch_up()


def test_one_that_had_the_end_already_is_not_left_waiting(hub: Hub, store: RunStore) -> None:
    claim = begun(store)
    end(store, claim, 2)
    for seq in (2, 99):
        with hub.follow("r1", seq=seq) as follower:
            assert follower.catch_up() == []
            assert follower.over


def test_a_run_that_fails_is_over_for_its_followers(hub: Hub, store: RunStore) -> None:
    with hub.follow("r1", seq=1) as follower:
        begun(store, hub.channel)
        store.client.hset("bb:run:r1", "lease", 0)
        store.client.zadd("bb:due", {"r1": 0})
        store.wake()

        [event] = whole(follower)
        assert isinstance(event, Failed)
        assert event.code == "run_interrupted"


class Slow(RunStore):
    """A store that lets a test act between the moment a follower has left and the moment the run knows."""

    between: Callable[[], None] = staticmethod(lambda: None)

    def unfollow(self, run_id: str, follower: str) -> None:
        self.between()
        super().unfollow(run_id, follower)


def test_one_that_joins_while_the_last_one_leaves_is_not_forgotten(store: RunStore) -> None:
    slow = Slow(store.client, lease=store.lease)
    hub = Hub(slow)
    until(lambda: hears(store, hub))
    claim = begun(store, hub.channel)
    with ExitStack() as stack:
        joined: list[Follower] = []

        def join() -> None:
            joined.append(stack.enter_context(hub.follow("r1", seq=1)))
            joined[0].catch_up()

        slow.between = join
        with hub.follow("r1", seq=1):
            pass
        slow.between = lambda: None
        joined[0].read(0.2)
        tell(store, claim, 2, "a")

        assert [event for event in joined[0].read(SILENCE / 2) if isinstance(event, Delta)] == [Delta(0, "a")]
    hub.close()


# -- on a real server, whose connections can be cut


@pytest.fixture
def real(redis_server: EmbeddedRedis) -> Iterator[RunStore]:
    store = RunStore(connect(redis_server.url), lease=30.0)
    yield store
    store.client.close()


@pytest.fixture
def far(real: RunStore) -> Iterator[Hub]:
    """A hub on the real server."""
    one = Hub(real)
    until(lambda: hears(real, one))
    yield one
    one.close()
    until(lambda: not hears(real, one))


def streamed(store: RunStore, hub: Hub, count: int, meanwhile: Callable[[int], None]) -> list[Event]:
    """What a follower gets of a stream of numbers, while something is done at each of them."""
    with hub.follow("r1", seq=1) as follower, ThreadPoolExecutor(1) as pool:
        claim = begun(store, hub.channel)
        read = pool.submit(whole, follower)
        writer = LogWriter(store)
        tape = writer.open("r1", claim.fence, seq=claim.seq, scope=Scope())
        tape.write(Opened(0, Text()))
        for n in range(count):
            tape.write(Delta(0, f"{n} "))
            meanwhile(n)
        left = tape.take()
        events = (*left, Closed(0), Finished("end"))
        store.commit(claim, Outcome(next=END, state=b"{}", events=events, answered=True), tape.seq + 1)
        writer.close()
        return read.result(60)


@pytest.mark.slow
def test_a_subscription_cut_again_and_again_loses_nothing(real: RunStore, far: Hub) -> None:
    def cut(n: int) -> None:
        if n % 500 == 250:
            real.client.client_kill_filter(_type="pubsub")
        if n % 25 == 0:
            threading.Event().wait(0.004)  # a model's pace, so that the stream lasts as long as the cuts

    events = streamed(real, far, 4000, cut)

    assert collect(events).text == "".join(f"{n} " for n in range(4000))


@pytest.mark.slow
def test_a_subscriber_that_is_too_slow_for_the_servers_buffer_loses_nothing(real: RunStore, far: Hub) -> None:
    def flood(n: int) -> None:
        if n % 1000 == 500:
            real.client.publish(far.channel, b"nobody 1 " + b"x" * 200_000)
        if n % 25 == 0:
            threading.Event().wait(0.004)

    real.client.config_set("client-output-buffer-limit", "pubsub 16kb 8kb 1")
    try:
        events = streamed(real, far, 3000, flood)
    finally:
        real.client.config_set("client-output-buffer-limit", "pubsub 64mb 16mb 60")

    assert collect(events).text == "".join(f"{n} " for n in range(3000))
    assert real.client.info("stats")["client_output_buffer_limit_disconnections"] >= 1


@pytest.mark.slow
def test_one_whom_the_run_has_forgotten_finds_out_by_the_silence(real: RunStore, far: Hub) -> None:
    with far.follow("r1", seq=1) as follower:
        claim = begun(real, far.channel)
        real.unfollow("r1", far.channel)
        tell(real, claim, 2, "a")

        assert follower.read(SILENCE + 1) == [Delta(0, "a")]


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True])
def test_two_hundred_short_answers_at_once_are_all_whole(redis_server: EmbeddedRedis, fails: bool) -> None:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise ValueError

    flow = Flow(fail) if fails else Flow(model=FixedModel("ABC"))
    house = House(Brain("b", flow), connect(redis_server.url))
    try:
        with ThreadPoolExecutor(200) as pool:
            answers = list(pool.map(lambda n: house.events("go", f"run-{n}"), range(200)))
    finally:
        house.close()

    if fails:
        assert [type(events[-1]) for events in answers] == [Failed] * 200
    else:
        assert [collect(events).text for events in answers] == ["ABC"] * 200
    house.store.client.close()


@pytest.mark.slow
def test_a_cut_subscription_cancels_no_run_as_abandoned_for_good(real: RunStore, far: Hub) -> None:
    with far.follow("r1", seq=1) as follower:
        claim = begun(real, far.channel)
        real.client.client_kill_filter(_type="pubsub")
        tell(real, claim, 2, "a")
        until(lambda: hears(real, far))

        assert texts(follower, 1) == ["a"]
        assert not real.stop("r1", if_abandoned=True)


@pytest.mark.slow
def test_a_server_that_is_restarted_in_mid_stream_loses_nothing(
    redis_server: EmbeddedRedis, real: RunStore, far: Hub
) -> None:
    def restart(n: int) -> None:
        if n == 500:
            redis_server.stop()
            redis_server.start()
        if n % 25 == 0:
            threading.Event().wait(0.004)

    with redis.Redis.from_url(redis_server.url) as control:
        events = streamed(real, far, 1000, restart)
        control.close()

    assert collect(events).text == "".join(f"{n} " for n in range(1000))
