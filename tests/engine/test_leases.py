"""A step keeps its lease while it runs, and is stopped as soon as it may have lost it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import pairwise

import fakeredis
import pytest

from bigbrain.embedded import EmbeddedRedis
from bigbrain.engine.leases import Leases
from bigbrain.engine.records import Claim
from bigbrain.engine.server import connect
from bigbrain.engine.store import LEASE, RENEWAL, RunStore
from bigbrain.errors import RunCancelled, RunInterrupted
from bigbrain.scope import Scope
from tests.engine.acting import new_run, until


@pytest.fixture
def store(fake_server: fakeredis.FakeServer) -> RunStore:
    """Leases that are even shorter, because nobody here takes up what lapses."""
    return RunStore(fakeredis.FakeRedis(server=fake_server, max_connections=100), lease=0.2)


@pytest.fixture
def leases(store: RunStore) -> Iterator[Leases]:
    one = Leases(store)
    yield one
    one.close()


def claim(store: RunStore, run_id: str = "r1", attempt: int = 1) -> Claim:
    if attempt == 1:
        store.start(new_run(run_id, durable=True))
    one = store.claim(run_id, "0", attempt, f"{run_id}-{attempt}")
    assert one is not None
    return one


def lease(store: RunStore, run_id: str = "r1") -> int:
    return int(store.client.hget(f"bb:run:{run_id}", "lease"))


def now(store: RunStore) -> float:
    seconds, micros = store.client.time()
    return seconds * 1000 + micros / 1000


def renewed(store: RunStore, run_id: str = "r1") -> None:
    """Waits for the next renewal."""
    before = lease(store, run_id)
    until(lambda: lease(store, run_id) > before)


def lose(store: RunStore, run_id: str = "r1") -> None:
    """Somebody else takes the step up."""

    def taken() -> object:
        # a renewal may come between these, on a slow machine
        store.client.hset(f"bb:run:{run_id}", "lease", 0)
        store.client.zadd("bb:due", {run_id: 0})
        return store.wake().steps

    until(taken)
    claim(store, run_id, attempt=2)


def test_a_held_lease_is_renewed_again_and_again(leases: Leases, store: RunStore) -> None:
    one, scope = claim(store), Scope()
    with leases.hold(one, scope):
        for _ in range(3):
            renewed(store)

    assert not scope.cancelled


def test_a_step_whose_renewal_is_refused_is_stopped(leases: Leases, store: RunStore) -> None:
    one, scope, other, fine = claim(store), Scope(), claim(store, "other"), Scope()
    with leases.hold(one, scope), leases.hold(other, fine):
        lose(store)
        with pytest.raises(RunInterrupted):
            scope.wait(10)

    assert not fine.cancelled


def test_a_step_that_slept_through_its_lease_stops_at_its_next_look(store: RunStore) -> None:
    # nothing renews and nothing cancels here, as in the moment in which a frozen process goes on
    still = RunStore(store.client, lease=0.2)
    leases = Leases(still)
    leases.close()
    one, scope = claim(store), Scope()
    with leases.hold(one, scope):
        until(lambda: lease(store) < now(store))
        time.sleep(0.01)
        with pytest.raises(RunInterrupted, match="has run out"):
            scope.check()


def test_a_step_is_stopped_when_redis_is_away_for_longer_than_its_lease(
    leases: Leases, store: RunStore, fake_server: fakeredis.FakeServer
) -> None:
    one, scope = claim(store), Scope()
    with leases.hold(one, scope):
        begun = time.monotonic()
        fake_server.connected = False
        with pytest.raises(RunInterrupted):
            scope.wait(10)

    # not before the lease is over; a quarter of a lease after it at the latest, on a machine that is not busy
    assert store.lease * 0.9 < time.monotonic() - begun < store.lease * 5


def test_a_step_outlives_a_redis_that_is_away_for_less_than_its_lease(
    leases: Leases, store: RunStore, fake_server: fakeredis.FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    one, scope = claim(store), Scope()
    with leases.hold(one, scope):
        renewed(store)
        fake_server.connected = False
        until(lambda: "could not be renewed" in caplog.text)
        fake_server.connected = True
        renewed(store)

    assert not scope.cancelled


def test_a_server_that_is_back_hears_of_all_leases_at_once(
    fake_server: fakeredis.FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[float] = []

    class Patient(RunStore):
        def renew(self, held: Iterable[tuple[str, int]], process: str = "") -> tuple[set[str], set[str]]:
            tries.append(time.monotonic())
            return super().renew(held, process)

    patient = Patient(fakeredis.FakeRedis(server=fake_server, max_connections=100), lease=4.0)
    leases = Leases(patient)
    with leases.hold(claim(patient), Scope()):
        fake_server.connected = False
        until(lambda: len(tries) > 4)
        fake_server.connected = True
    leases.close()

    # a quarter of a lease lies between two renewals that succeed
    assert min(later - sooner for sooner, later in pairwise(tries)) < 0.5
    assert caplog.text.count("could not be renewed") == 1


def test_a_stopped_run_is_told_by_a_message_and_not_only_with_the_next_renewal(store: RunStore) -> None:
    patient = RunStore(store.client, lease=60.0)
    leases = Leases(patient)
    one, scope = claim(patient), Scope()
    until(lambda: store.client.pubsub_numsub("bb:stop")[0][1])
    with leases.hold(one, scope):
        patient.stop("r1")
        with pytest.raises(RunCancelled):
            scope.wait(10)
    leases.close()


def test_a_stopped_run_is_told_with_the_next_renewal_when_the_message_was_lost(leases: Leases, store: RunStore) -> None:
    one, scope = claim(store), Scope()
    with leases.hold(one, scope):
        store.client.hset("bb:run:r1", "stop", 1)
        with pytest.raises(RunCancelled):
            scope.wait(10)


def test_a_message_for_a_run_of_another_process_is_ignored(leases: Leases, store: RunStore) -> None:
    one, scope = claim(store), Scope()
    with leases.hold(one, scope):
        leases.stop("not here")

    assert not scope.cancelled


def test_what_is_released_is_renewed_no_more(leases: Leases, store: RunStore) -> None:
    one, other = claim(store), claim(store, "other")
    with pytest.raises(KeyError), leases.hold(one, Scope()):
        raise KeyError
    before = lease(store)

    with leases.hold(other, Scope()):
        renewed(store, "other")

    assert lease(store) == before
    assert len(leases) == 0


def test_a_step_claimed_anew_by_its_own_process_stops_the_one_that_overslept(leases: Leases, store: RunStore) -> None:
    old, new = Scope(), Scope()
    with leases.hold(claim(store), old):
        store.client.hset("bb:run:r1", "lease", 0)
        store.client.zadd("bb:due", {"r1": 0})
        assert store.wake().steps
        again = claim(store, attempt=2)
        with leases.hold(again, new):
            assert isinstance(old.error, RunInterrupted)
            renewed(store)
        assert len(leases) == 0

    assert not new.cancelled


def test_the_one_that_overslept_does_not_release_the_new_hold(leases: Leases, store: RunStore) -> None:
    old = leases.hold(claim(store), Scope())
    old.__enter__()
    lose(store)
    again = Claim("r1", "0", 2, 2, 1, "main", "f00d", b"{}", b"{}", ())
    with leases.hold(again, Scope()):
        old.__exit__(None, None, None)

        assert len(leases) == 1


def test_a_stop_function_that_raises_costs_no_other_step_its_lease(leases: Leases, store: RunStore) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    bad, scope = claim(store, "bad"), Scope()
    good, fine = claim(store), Scope()
    scope.hold(broken)
    with leases.hold(bad, scope), leases.hold(good, fine):
        lose(store, "bad")
        until(lambda: scope.cancelled)
        for _ in range(2):
            renewed(store)

    assert not fine.cancelled


@pytest.mark.slow
def test_a_stop_is_heard_after_the_listeners_connection_was_cut(redis_server: EmbeddedRedis) -> None:
    store = RunStore(connect(redis_server.url), lease=60.0)
    leases = Leases(store)

    def listens() -> bool:
        return store.client.pubsub_numsub("bb:stop")[0][1] == 1

    until(listens)
    [cut] = store.client.client_list(_type="pubsub")
    store.client.client_kill_filter(_id=cut["id"])
    until(lambda: listens() and store.client.client_list(_type="pubsub")[0]["id"] != cut["id"])
    one, scope = claim(store), Scope()
    with leases.hold(one, scope):
        store.stop("r1")
        with pytest.raises(RunCancelled):
            scope.wait(10)
    leases.close()
    until(lambda: not listens())
    store.client.close()


@pytest.mark.slow
def test_a_server_that_answers_late_renews_all_the_same(
    redis_server: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    hasty = RunStore(connect(redis_server.url, connections=2, retries=0, timeout=RENEWAL))
    leases = Leases(hasty)
    one, scope = claim(hasty), Scope()
    with leases.hold(one, scope):
        for _ in range(3):
            renewed(hasty)
            # a disk that is busy holds a server up as long
            hasty.client.client_pause(int(LEASE * 500))
    leases.close()

    assert not scope.cancelled
    assert "could not be renewed" not in caplog.text
    hasty.client.close()
