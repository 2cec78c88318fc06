"""The one writer of a process: exact and in order, whatever Redis does, and no run harms another."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import fakeredis
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from bigbrain.embedded import EmbeddedRedis
from bigbrain.engine.records import LogId
from bigbrain.engine.server import connect
from bigbrain.engine.store import RunStore
from bigbrain.engine.writer import PENDING, LogWriter, Tape, merged
from bigbrain.errors import RunCancelled, RunError, RunInterrupted
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started, collect, read_events
from bigbrain.messages import Text
from bigbrain.scope import Scope
from tests.engine.acting import new_run, until


@pytest.fixture
def writer(store: RunStore) -> Iterator[LogWriter]:
    with writing(store) as one:
        yield one


@contextmanager
def writing(store: RunStore) -> Iterator[LogWriter]:
    one = LogWriter(store)
    try:
        yield one
    finally:
        one.close()


def tape(writer: LogWriter, store: RunStore, run_id: str = "r1", *, attempt: int = 1) -> Tape:
    """The tape of a run's first step, claimed."""
    if attempt == 1:
        store.start(new_run(run_id, durable=True))
    claim = store.claim(run_id, "0", attempt, f"{run_id}-{attempt}")
    assert claim is not None
    return writer.open(run_id, claim.fence, seq=claim.seq, scope=Scope())


def logged(store: RunStore, run_id: str = "r1") -> tuple[list[int], list[Event]]:
    _, entries = store.follow(run_id, "test", LogId(1)) or ("", [])
    return [entry.seq for entry, _ in entries], [event for _, line in entries for event in read_events(line)]


def text(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


def written(store: RunStore, one: Tape) -> list[Event]:
    """All events of a tape: those in the log, then those that a commit would write."""
    left = one.take()
    return [*logged(store, one.run_id)[1], *left]


def test_events_arrive_in_order_under_numbers_without_a_gap(writer: LogWriter, store: RunStore) -> None:
    one = tape(writer, store)
    one.write(Opened(0, Text()))
    for n in range(1000):
        one.write(Delta(0, f"{n} "))
    one.write(Closed(0))

    left = one.take()

    numbers, events = logged(store)
    assert text([*events, *left]) == "".join(f"{n} " for n in range(1000))
    assert numbers == list(range(2, len(numbers) + 2))
    assert one.seq == len(numbers) + 1


def test_an_event_after_a_pause_leaves_without_being_asked_for(writer: LogWriter, store: RunStore) -> None:
    one = tape(writer, store)
    for n in range(3):
        one.write(Delta(0, f"{n}"))
        until(lambda n=n: text(logged(store)[1]) == "012"[: n + 1])


def test_taking_while_a_write_is_in_flight_neither_loses_nor_doubles(writer: LogWriter, store: RunStore) -> None:
    taken: list[Event] = []
    one = tape(writer, store)
    for n in range(300):
        one.write(Delta(0, f"{n} "))
        left = one.take()
        if left:
            # as a commit does: what was taken is written under the number after the last one
            store.append([(one.run_id, one.fence, one.seq + 1, b'[["d",0,"%s"]]' % text(left).encode())])
            one.seq += 1
        taken += left

    assert text(logged(store)[1]) == "".join(f"{n} " for n in range(300))


def test_what_could_not_be_written_is_written_when_redis_is_back(
    writer: LogWriter, store: RunStore, fake_server: fakeredis.FakeServer
) -> None:
    one = tape(writer, store)
    fake_server.connected = False
    for n in range(50):
        one.write(Delta(0, f"{n} "))
    fake_server.connected = True
    left = one.take()

    assert text([*logged(store)[1], *left]) == "".join(f"{n} " for n in range(50))


class Forgetful(RunStore):
    """A store whose answers to every other write get lost."""

    calls = 0

    def append(self, batch: Sequence[tuple[str, int, int, bytes]]) -> tuple[set[str], set[str]]:
        answer = super().append(batch)
        self.calls += 1
        if self.calls % 2:
            raise redis.ConnectionError
        return answer


def test_a_write_whose_answer_got_lost_is_not_doubled(store: RunStore) -> None:
    with writing(Forgetful(store.client)) as writer:
        one = tape(writer, store)
        for n in range(50):
            one.write(Delta(0, f"{n} "))
        left = one.take()

    assert text([*logged(store)[1], *left]) == "".join(f"{n} " for n in range(50))


def test_a_step_that_lost_its_lease_is_told_and_writes_nothing(writer: LogWriter, store: RunStore) -> None:
    old, other = tape(writer, store), tape(writer, store, "other")
    store.client.hset("bb:run:r1", "lease", 0)
    store.client.zadd("bb:due", {"r1": 0})
    store.wake()
    tape(writer, store, attempt=2)

    old.write(Delta(0, "old"))
    until(lambda: old.scope.cancelled)

    with pytest.raises(RunInterrupted):
        old.write(Delta(0, "older"))
    assert logged(store) == ([], [])
    other.write(Delta(0, "fine"))
    assert text(written(store, other)) == "fine"


def test_a_lost_step_does_not_take_the_new_owner_in_the_same_process_with_it(
    writer: LogWriter, store: RunStore, fake_server: fakeredis.FakeServer
) -> None:
    old, blocker = tape(writer, store), tape(writer, store, "other")
    store.client.hset("bb:run:r1", "lease", 0)
    store.client.zadd("bb:due", {"r1": 0})
    store.wake()
    new = tape(writer, store, attempt=2)

    fake_server.connected = False
    blocker.write(Delta(0, "x"))
    until(lambda: blocker in writer._in_flight)
    old.write(Delta(0, "old"))
    new.write(Delta(0, "new"))
    fake_server.connected = True

    until(lambda: old.scope.cancelled or new.scope.cancelled)

    assert isinstance(old.scope.error, RunInterrupted)
    assert not new.scope.cancelled
    assert text(written(store, new)) == "new"


def test_a_run_that_is_to_stop_hears_so_with_its_next_write(writer: LogWriter, store: RunStore) -> None:
    one = tape(writer, store)
    store.stop("r1")
    one.write(Delta(0, "x"))

    until(lambda: isinstance(one.scope.error, RunCancelled))


def test_an_event_that_no_json_can_carry_fails_its_own_run_only(writer: LogWriter, store: RunStore) -> None:
    bad, good = tape(writer, store, "bad"), tape(writer, store, "good")
    bad.write(Closed(0, {"x": object()}))
    until(lambda: bad.scope.cancelled)

    good.write(Delta(0, "fine"))

    assert isinstance(bad.scope.error, RunError)
    assert text(written(store, good)) == "fine"


def test_a_run_whose_log_is_refused_fails_alone(
    writer: LogWriter, store: RunStore, fake_server: fakeredis.FakeServer
) -> None:
    good, bad, more = (tape(writer, store, name) for name in ("good", "bad", "more"))
    store.client.set("bb:run:bad:log", "not a stream")
    fake_server.connected = False
    good.write(Delta(0, "a"))
    until(lambda: good in writer._in_flight)
    for one in (good, bad, more):
        one.write(Delta(0, "b"))
    fake_server.connected = True
    until(lambda: bad.scope.cancelled)

    assert text(written(store, good)) == "ab"
    assert text(written(store, more)) == "b"
    assert not good.scope.cancelled
    assert not more.scope.cancelled


def ahead_of_redis(one: Tape, fake_server: fakeredis.FakeServer) -> tuple[threading.Thread, list[int], list[Exception]]:
    """A step that writes more than may be pending while Redis is away."""
    count, errors = [0], list[Exception]()

    def write() -> None:
        try:
            for _ in range(PENDING + 2000):
                one.write(Delta(0, "x"))
                count[0] += 1
        except Exception as exc:
            errors.append(exc)

    fake_server.connected = False
    one.write(Delta(0, "x"))
    until(lambda: one in one._writer._in_flight)
    thread = threading.Thread(target=write)
    thread.start()
    until(lambda: count[0] >= PENDING)
    return thread, count, errors


def test_a_step_far_ahead_of_redis_is_held_back_and_loses_nothing(
    writer: LogWriter, store: RunStore, fake_server: fakeredis.FakeServer
) -> None:
    one = tape(writer, store)
    thread, count, errors = ahead_of_redis(one, fake_server)
    thread.join(0.05)
    assert (thread.is_alive(), count) == (True, [PENDING])

    fake_server.connected = True
    thread.join(10)

    assert text(written(store, one)) == "x" * (PENDING + 2001)
    assert errors == []


def test_a_step_that_is_held_back_can_be_stopped(
    writer: LogWriter, store: RunStore, fake_server: fakeredis.FakeServer
) -> None:
    one = tape(writer, store)
    thread, _, errors = ahead_of_redis(one, fake_server)

    one.scope.cancel(RunCancelled())
    thread.join(10)

    assert [type(error) for error in errors] == [RunCancelled]
    fake_server.connected = True
    one.take()


def test_a_writer_that_ends_before_redis_is_back_lets_nobody_commit_a_gap(
    store: RunStore, fake_server: fakeredis.FakeServer
) -> None:
    writer = LogWriter(store)
    one = tape(writer, store)
    fake_server.connected = False
    one.write(Delta(0, "x"))
    until(lambda: one in writer._in_flight)

    writer.close()

    assert isinstance(one.scope.error, RunInterrupted)


def test_what_is_pending_when_a_writer_ends_is_left_to_the_step(store: RunStore) -> None:
    writer = LogWriter(store)
    one = tape(writer, store)
    writer.close()
    one.write(Delta(0, "late"))

    assert one.take() == (Delta(0, "late"),)


parts = st.lists(st.lists(st.text(min_size=1, max_size=3), max_size=4), max_size=4)


@given(parts)
def test_merging_changes_no_answer_and_leaves_no_neighbouring_deltas(texts: list[list[str]]) -> None:
    events: list[Event] = [Started("r", "m")]
    for index, pieces in enumerate(texts):
        events += [Opened(index, Text()), *(Delta(index, piece) for piece in pieces), Closed(index)]
    events.append(Finished("end"))

    out = merged(events)

    assert collect(out) == collect(events)
    assert not any(isinstance(a, Delta) and isinstance(b, Delta) for a, b in pairwise(out))


@pytest.mark.slow
def test_a_redis_that_is_killed_in_mid_stream_costs_no_token(redis_server: EmbeddedRedis) -> None:
    store = RunStore(connect(redis_server.url), lease=30.0)
    with writing(store) as writer, redis.Redis.from_url(redis_server.url) as control:
        one = tape(writer, store)
        for n in range(3000):
            one.write(Delta(0, f"{n} "))
            if n % 100 == 0:
                until(lambda seq=one.seq: one.seq > seq or not one._writer._pending)
            if n in (1000, 2000):
                pid = control.info("server")["process_id"]
                os.kill(int(pid), signal.SIGKILL)
                until(lambda: not redis_server.alive())
                redis_server.start()
        left = one.take()
        numbers, events = logged(store)

    assert text([*events, *left]) == "".join(f"{n} " for n in range(3000))
    assert numbers == list(range(2, len(numbers) + 2))
    store.client.close()
