"""The ring in Redis and the thread that fills it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import fakeredis
import pytest

from bigbrain import ring as ring_module
from bigbrain.aside import Aside
from bigbrain.engine.store import RunStore
from bigbrain.ring import KEY, LONGEST, RedisRing, read_ring
from bigbrain.trace import TraceEvent, Trail
from tests.engine.acting import until


def event(kind: str = "respond", run: str = "r1", at: float = 1.0, **detail: object) -> TraceEvent:
    return TraceEvent(kind, run, at, "main", "0", 1, detail)


@contextmanager
def filling(store: RunStore, **options: float) -> Iterator[RedisRing]:
    ring = RedisRing(store.client, gather=0.001, pause=0.01, **options)
    try:
        yield ring
    finally:
        ring.close()


class Taking:
    """Takes batches, once it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.begun = threading.Event()
        self.events: list[TraceEvent] = []

    def __call__(self, events: Sequence[TraceEvent]) -> None:
        self.begun.set()
        self.may.wait(10)
        self.events += events


def test_what_is_told_is_read_back_with_its_process(store: RunStore) -> None:
    with filling(store) as ring:
        Trail((ring,), run="r1", flow="main", path="0", attempt=3).tell("select", id="x")

    [seen] = read_ring(store.client)
    assert (seen.kind, seen.run, seen.flow, seen.path, seen.attempt) == ("select", "r1", "main", "0", 3)
    assert seen.detail == {"id": "x"}
    assert seen.process.endswith(f":{os.getpid()}")


def test_the_end_of_a_process_loses_nothing_that_was_told_before(store: RunStore) -> None:
    ring = RedisRing(store.client, gather=60.0)
    for number in range(1200):
        ring.trace(event(n=number))
    ring.close()

    assert [seen.detail["n"] for seen in read_ring(store.client)] == list(range(1200))


def test_events_are_read_in_the_order_in_which_they_happened(store: RunStore) -> None:
    for at in (3.0, 1.0, 2.0):
        with filling(store) as ring:
            ring.trace(event(at=at))

    assert [seen.at for seen in read_ring(store.client)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"run": "r2"}, [1, 3]),
        ({"kind": "model"}, [0, 1]),
        ({"kind": "model.call"}, [1]),
        ({"kind": "mod"}, []),
        ({"run": "r2", "kind": "flow"}, [3]),
        ({"limit": 2}, [2, 3]),
        ({"run": "r1", "limit": 1}, [2]),
        ({"run": "nobody"}, []),
    ],
)
def test_readers_choose_by_run_and_kind_and_get_the_last_ones(
    store: RunStore, chosen: dict[str, object], expected: list[int]
) -> None:
    told = [("model.start", "r1"), ("model.call", "r2"), ("respond", "r1"), ("flow.end", "r2")]
    with filling(store) as ring:
        for number, (kind, run) in enumerate(told):
            ring.trace(event(kind, run, at=float(number), n=number))

    assert [seen.detail["n"] for seen in read_ring(store.client, **chosen)] == expected  # type: ignore[arg-type]


def test_the_ring_is_bounded_and_does_not_outlive_its_use(store: RunStore) -> None:
    with filling(store, size=100) as ring:
        for number in range(3000):
            ring.trace(event(n=number))

    assert store.client.xlen(KEY) < 1000
    assert read_ring(store.client)[-1].detail["n"] == 2999
    assert 0 < store.client.ttl(KEY) <= ring_module.KEPT


def test_an_event_that_is_too_long_or_no_json_is_told_without_its_details(store: RunStore) -> None:
    with filling(store) as ring:
        ring.trace(event(text="x" * LONGEST))
        ring.trace(event(thing=object()))
        ring.trace(event(fine=1))

    long, odd, fine = [seen.detail for seen in read_ring(store.client)]
    assert list(long) == list(odd) == ["left_out"]
    assert fine == {"fine": 1}


def test_what_another_version_has_written_is_passed_over(store: RunStore) -> None:
    store.client.xadd(KEY, {"e": b'{"kind": 7}'})
    with filling(store) as ring:
        ring.trace(event())

    assert len(read_ring(store.client)) == 1


def test_a_redis_that_is_away_for_a_while_costs_nothing(store: RunStore, fake_server: fakeredis.FakeServer) -> None:
    with filling(store) as ring:
        fake_server.connected = False
        for number in range(20):
            ring.trace(event(n=number))
            time.sleep(0.001)
        fake_server.connected = True
        until(lambda: len(read_ring(store.client)) == 20)

    assert [seen.detail["n"] for seen in read_ring(store.client)] == list(range(20))


def test_what_has_no_room_is_given_up_counted_and_told(store: RunStore) -> None:
    taking = Taking()
    aside = Aside(taking, room=10, gather=0.0)
    aside.trace(event())
    assert taking.begun.wait(10)
    for _ in range(30):
        aside.trace(event())

    assert aside.dropped == 21
    taking.may.set()
    aside.close()
    assert [one.kind for one in taking.events] == ["respond"] * 10 + ["trace.dropped"]
    assert taking.events[-1].detail == {"count": 21}
    assert aside.dropped == 0


def test_whoever_tells_never_waits_for_whoever_hears() -> None:
    taking = Taking()
    aside = Aside(taking, gather=0.0)
    trail = Trail((aside,))
    trail.tell("respond")
    assert taking.begun.wait(10)

    # whoever hears is held up until after this
    for _ in range(1000):
        trail.tell("respond")

    assert taking.events == []
    taking.may.set()
    aside.close()
    assert len(taking.events) == 1001


def test_a_tracer_that_is_slow_or_fails_is_heard_aside() -> None:
    class Odd:
        def __init__(self) -> None:
            self.heard: list[str] = []

        def trace(self, event: TraceEvent) -> None:
            if event.kind == "respond":
                raise RuntimeError("no")
            self.heard.append(event.kind)

    odd = Odd()
    aside = Aside.of(odd, gather=0.0)
    for kind in ("select", "respond", "cached"):
        aside.trace(event(kind))
    aside.close()

    assert odd.heard == ["select", "cached"]


def test_a_process_that_ends_does_not_wait_long_for_a_redis_that_is_away(
    store: RunStore, fake_server: fakeredis.FakeServer
) -> None:
    ring = RedisRing(store.client, gather=0.001)
    fake_server.connected = False
    ring.trace(event())
    began = time.monotonic()
    ring.close()
    took = time.monotonic() - began
    fake_server.connected = True

    assert took < 5


def test_what_comes_after_the_end_is_counted_and_starts_no_thread(store: RunStore) -> None:
    ring = RedisRing(store.client)
    ring.close()
    ring.trace(event())

    assert ring.dropped == 1
    assert [thread for thread in threading.enumerate() if thread.name == "trace ring"] == []


def test_nothing_is_started_before_something_happens(store: RunStore) -> None:
    with filling(store):
        assert [thread for thread in threading.enumerate() if thread.name == "trace ring"] == []


def in_child(act: Callable[[], None]) -> int:
    """The exit status of a forked child that does something."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_child_tells_its_own_events_and_none_of_its_parents() -> None:
    reading, writing = os.pipe()

    def write(events: Sequence[TraceEvent]) -> None:
        for one in events:
            os.write(writing, f"{one.detail['of']} {os.getppid() == parent}\n".encode())

    parent = os.getpid()
    aside = Aside(write, gather=30.0)
    aside.trace(event(of="parent"))

    def act() -> None:
        aside.trace(event(of="child"))
        aside.close()

    status = in_child(act)
    aside.close()
    os.close(writing)
    with os.fdopen(reading) as told:
        lines = told.read().splitlines()

    assert status == 0
    assert lines == ["child True", "parent False"]
