"""A server that is killed may have forgotten what it had said it kept: while its disk is busy it writes late.

What was forgotten is done again. Nobody goes on beside whoever does it, and nobody is left with half of the old and half of the new.
"""

from __future__ import annotations

import time

import fakeredis
import pytest

from bigbrain.engine.channels import Hub
from bigbrain.engine.marks import is_mark, kept_before
from bigbrain.engine.records import Claim, LogId, Outcome
from bigbrain.engine.store import RunStore
from bigbrain.errors import RunInterrupted
from bigbrain.events import Delta, Failed, write_events
from tests.engine.acting import new_run


def claimed(store: RunStore, owner: str = "owner", path: str = "0") -> Claim:
    claim = store.claim("r1", path, 1, owner)
    assert claim is not None
    return claim


def written(store: RunStore) -> dict[bytes, bytes]:
    """What the server has on its disk now."""
    return {key: store.client.dump(key) for key in store.client.scan_iter("*")}


def killed(store: RunStore, disk: dict[bytes, bytes]) -> None:
    """Lets the server be one that was killed and has come back with what it had on its disk."""
    store.client.flushdb()
    time.sleep(0.002)  # none is back in less
    for key, value in disk.items():
        store.client.restore(key, 0, value)


def begun(store: RunStore, *seqs: int) -> Claim:
    """A claimed step that has told something in entries of these numbers."""
    store.start(new_run(durable=True))
    claim = claimed(store)
    for seq in seqs:
        store.append([("r1", claim.fence, seq, write_events([Delta(0, f"{seq}")]))])
    return claim


def forget(store: RunStore, after: int, run_id: str = "r1") -> None:
    """Lets the server forget entries of a log, as one does that was killed before it had written them to its disk."""
    for entry, _ in store.client.xrange(f"bb:run:{run_id}:log", f"{after + 1}-0"):
        store.client.xdel(f"bb:run:{run_id}:log", entry)
    store.client.hset(f"bb:run:{run_id}", "seq", after)


def test_a_step_whose_server_forgot_what_it_told_is_done_again_and_leaves_no_hole(store: RunStore) -> None:
    claim = begun(store, 2, 3, 4)
    forget(store, after=2)

    assert store.append([("r1", claim.fence, 5, b'[["d",0,"5"]]')]) == ({"r1"}, set())
    # nothing more is taken from whoever went on as if nothing had happened
    assert store.append([("r1", claim.fence, 6, b'[["d",0,"6"]]')]) == ({"r1"}, set())
    assert not store.commit(claim, Outcome(next="1", state=b"{}"), 7)
    assert [step[:3] for step in store.wake().steps] == [("r1", "main", "0")]
    entries = (store.follow("r1", "web", LogId(1)) or ("", []))[1]
    assert [(entry.seq, is_mark(line)) for entry, line in entries] == [(5, True)]


def test_a_commit_to_a_server_that_forgot_what_was_told_does_not_count(store: RunStore) -> None:
    claim = begun(store, 2, 3)
    forget(store, after=2)

    assert not store.commit(claim, Outcome(next="1", state=b"{}"), 4)
    assert [step[:3] for step in store.wake().steps] == [("r1", "main", "0")]


def test_a_follower_that_has_what_the_server_forgot_hears_so(store: RunStore) -> None:
    begun(store, 2, 3)
    forget(store, after=2)

    status, [(entry, line)] = store.follow("r1", "web", LogId(3)) or ("", [])
    assert (status, entry.seq, is_mark(line)) == ("running", 3, True)
    assert [entry.seq for entry, _ in (store.follow("r1", "web", LogId(1)) or ("", []))[1]] == [2]


def test_who_holds_a_claim_that_the_server_forgot_writes_nothing_beside_the_next_one(store: RunStore) -> None:
    store.start(new_run(durable=True))
    disk = written(store)
    forgotten = claimed(store, "a")
    store.append([("r1", forgotten.fence, 2, b'[["d",0,"old"]]')])
    killed(store, disk)

    now = claimed(store, "b")
    assert store.append([("r1", forgotten.fence, 3, b'[["d",0,"old"]]')]) == ({"r1"}, set())
    assert store.append([("r1", now.fence, 2, b'[["d",0,"new"]]')]) == (set(), set())
    assert store.renew([("r1", forgotten.fence)]) == ({"r1"}, set())
    assert not store.commit(forgotten, Outcome(next="1", state=b"{}"), 3)


@pytest.mark.parametrize("more", [1, 2, 5])
def test_a_follower_hears_that_what_it_has_was_forgotten_though_the_log_has_as_much_again(
    store: RunStore, more: int
) -> None:
    store.start(new_run(durable=True))
    disk = written(store)
    forgotten = claimed(store, "a")
    for seq in (2, 3):
        store.append([("r1", forgotten.fence, seq, b'[["d",0,"old"]]')])
    killed(store, disk)
    now = claimed(store, "b")
    for seq in range(2, 3 + more):
        store.append([("r1", now.fence, seq, b'[["d",0,"new"]]')])

    _, [(entry, line)] = store.follow("r1", "web", LogId(3, forgotten.fence)) or ("", [])

    assert (entry.seq, kept_before(line)) == (3, 0)


def test_a_follower_whose_entry_was_taken_back_hears_from_where_on(store: RunStore) -> None:
    store.start(new_run(durable=True))
    first = claimed(store)
    store.append([("r1", first.fence, 2, b'[["d",0,"kept"]]')])
    assert store.commit(first, Outcome(next="1", state=b"{}", durable=True), 3)
    second = claimed(store, path="1")
    store.append([("r1", second.fence, 3, b'[["d",0,"old"]]')])
    store.rewind(second, 4)
    store.append([("r1", second.fence, 5, b'[["d",0,"new"]]')])

    _, entries = store.follow("r1", "web", LogId(3, second.fence)) or ("", [])

    assert [entry.seq for entry, _ in entries] == [4, 5]
    assert kept_before(entries[0][1]) == 2


def test_a_follower_that_could_not_ask_a_server_that_came_back_believes_no_news_until_it_has(
    store: RunStore, fake_server: fakeredis.FakeServer
) -> None:
    store.start(new_run(durable=True))
    disk = written(store)
    forgotten = claimed(store, "a")
    store.append([("r1", forgotten.fence, 2, write_events([Delta(0, "old")]))])
    hub = Hub(store)
    try:
        with hub.follow("r1", seq=1) as follower:
            assert follower.catch_up() == [Delta(0, "old")]
            fake_server.connected = False
            assert follower.catch_up() == []
            fake_server.connected = True
            killed(store, disk)
            now = claimed(store, "b")
            for seq in (2, 3):
                store.append([("r1", now.fence, seq, write_events([Delta(0, "new")]))])
            # what is told live has the number that is next, and goes on with something else than the follower has
            follower.post((LogId(3, now.fence), write_events([Delta(0, "new")])))

            assert follower.read(1.0) == [Failed.of(RunInterrupted())]
    finally:
        hub.close()
