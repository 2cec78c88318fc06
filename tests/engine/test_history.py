"""The runs of the past and of now, for those who come back to them."""

from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace

from bigbrain.engine.history import History, Place
from bigbrain.engine.records import NewRun
from bigbrain.engine.store import RunStore
from bigbrain.events import Started
from tests.engine.acting import until


def new(run_id: str, *, scope: str = "s", fingerprint: str = "f") -> NewRun:
    return NewRun(run_id, "b", "p", "1", Started(run_id, "b", 1), b"{}", b"{}", scope=scope, fingerprint=fingerprint)


def test_a_run_stands_as_it_is_for_whoever_comes_back(store: RunStore) -> None:
    history = History(store.client)
    store.start(new("r"))
    queued = history.join("r", "f")
    claim = store.claim("r", "1", 1, "me")
    assert claim is not None
    store.stop("r")
    stopping = history.join("r", "f")

    assert queued is not None
    assert stopping is not None
    assert (queued.status, queued.over, queued.complete, queued.stopping) == ("queued", False, False, False)
    assert (queued.fingerprint, queued.first) == ("f", Started("r", "b", 1))
    assert (stopping.status, stopping.stopping) == ("running", True)
    assert history.join("unknown", "f") is None


@pytest.mark.parametrize(("fingerprint", "replayed"), [("f", 2), ("other", 0)])
def test_only_the_same_request_counts_as_a_replay(store: RunStore, fingerprint: str, replayed: int) -> None:
    history = History(store.client)
    store.start(new("r"))
    store.client.hset("bb:run:r", mapping={"status": "done", "answered": "1"})
    for _ in range(2):
        history.join("r", fingerprint)
    record = store.record("r")

    assert record is not None
    assert record.replayed == replayed


def test_a_scope_lists_its_own_runs_page_by_page(store: RunStore) -> None:
    history = History(store.client)
    for number in range(5):
        store.start(new(f"r{number}"))
    store.start(new("foreign", scope="t"))
    store.start(new("nobodys", scope=""))
    store.client.zadd("bb:runs:s", {f"r{number}": 1000 + number // 2 for number in range(5)})
    first = history.page("s", limit=3)
    second = history.page("s", limit=3, after=first.after)

    assert [row.id for row in first.rows] == ["r4", "r3", "r2"]
    assert first.after == Place(1001, "r2")
    assert [row.id for row in second.rows] == ["r1", "r0"]
    assert second.after is None


def test_a_run_is_waited_for_until_it_is_over_and_no_longer_than_allowed(store: RunStore) -> None:
    history = History(store.client)
    store.start(new("r"))
    early = history.wait_over("r", 0.05)
    waiting = threading.Thread(target=lambda: over.append(history.wait_over("r", 10)))
    over = list[bool]()
    waiting.start()
    store.stop("r")

    assert not early
    until(lambda: over == [True])
    assert history.wait_over("unknown", 0)
    waiting.join(10)


def test_the_index_forgets_a_run_once_its_record_is_gone_and_not_before(store: RunStore) -> None:
    store.start(new("gone"))
    store.start(new("there"))
    for run_id in ("gone", "there"):
        store.stop(run_id)
    store.wake()
    early = store.client.zcard("bb:runs:s")
    store.client.zadd("bb:kept", {"s gone": 1, "s there": 1})
    store.client.delete("bb:run:gone")
    store.wake()

    assert early == 2
    assert store.client.zrange("bb:runs:s", 0, -1) == [b"there"]
    assert store.client.zcard("bb:kept") == 0
    assert store.client.pttl("bb:runs:s") > 0


def test_a_run_is_forgotten_only_as_long_as_it_has_ended_then(store: RunStore) -> None:
    history = History(store.client)
    store.start(new("r"))
    running = history.forget("r", 0)
    store.stop("r")
    standing = history.join("r", "f")
    assert standing is not None
    wrong, right = history.forget("r", standing.ended - 1), history.forget("r", standing.ended)

    assert (running, wrong, right) == (False, False, True)
    assert (standing.code, standing.over) == ("run_cancelled", True)
    assert store.client.keys("bb:run:*") == []


def test_what_was_asked_and_said_is_told_until_it_is_hidden(store: RunStore) -> None:
    history = History(store.client)
    store.start(new("r"))
    told = history.told("r")
    history.hide("r")
    history.hide("unknown")

    assert told is not None
    assert (told.status, told.request, told.events, told.ended) == ("queued", b"{}", [Started("r", "b", 1)], 0)
    assert history.told("r") is None
    assert history.told("unknown") is None
    assert store.record("unknown") is None


def test_a_run_is_kept_as_long_as_it_asks_and_shortens_nobody_elses_time(store: RunStore) -> None:
    for run_id, kept in (("long", 9000.0), ("usual", 0.0), ("short", 5.0)):
        store.start(replace(new(run_id), kept=kept))
        store.stop(run_id)
    lifetimes = [store.client.pttl(f"bb:run:{run_id}") / 1000 for run_id in ("long", "usual", "short")]

    assert lifetimes == [pytest.approx(9000, abs=30), pytest.approx(store.kept, abs=30), pytest.approx(5, abs=5)]
    assert store.client.pttl("bb:kept") / 1000 == pytest.approx(18_000, abs=60)
