"""Each atomic step of a run's life, one at a time."""

from __future__ import annotations

import threading

import msgspec
import pytest
from msgspec import structs

from bigbrain.engine.records import END, Claim, LogId, Message, NewRun, Outcome, Terms
from bigbrain.engine.store import RunStore
from bigbrain.events import Closed, Delta, Failed, Finished, Opened, Started, read_events, write_events
from bigbrain.messages import Text

HELLO = Started("r1", "m", 5)


def new_run(run_id: str = "r1", *, durable: bool = False) -> NewRun:
    return NewRun(
        id=run_id,
        flow="main",
        plan="f00d",
        cursor="0",
        first=HELLO,
        request=b"{}",
        state=b"{}",
        terms=Terms(durable=durable),
    )


def claimed(store: RunStore, run_id: str = "r1", path: str = "0", attempt: int = 1) -> Claim:
    claim = store.claim(run_id, path, attempt, f"owner-{threading.get_ident()}-{path}-{attempt}")
    assert claim is not None
    return claim


def lapse(store: RunStore, run_id: str = "r1") -> None:
    """Lets the moment pass at which somebody must look after the run."""
    store.client.zadd("bb:due", {run_id: 0})
    store.client.hset(f"bb:run:{run_id}", "lease", 0)


def test_a_run_that_starts_has_its_first_event_in_the_log(store: RunStore) -> None:
    assert store.start(new_run())

    status, entries = store.follow("r1", "web", LogId(0)) or ("", [])

    assert status == "queued"
    assert [(entry.seq, read_events(line)) for entry, line in entries] == [(1, [HELLO])]


def test_an_id_that_is_taken_starts_nothing(store: RunStore) -> None:
    assert store.start(new_run())
    assert not store.start(new_run())


def test_the_message_of_the_first_step_is_sent_with_the_start_and_with_no_other_run(store: RunStore) -> None:
    store.client.lpush("io", "before")

    assert store.start(new_run(), message=Message("io", b"first"))
    assert not store.start(new_run(), message=Message("io", b"another"))
    # workers take from the right
    assert store.client.lrange("io", 0, -1) == [b"first", b"before"]


def test_a_start_that_is_made_again_because_its_answer_got_lost_sends_one_message(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = store._start
    # what redis-py does when a connection breaks between the call and its answer
    monkeypatch.setattr(store, "_start", lambda args: script(args=args) and script(args=args))

    assert store.start(new_run(), message=Message("io", b"first"))
    assert store.client.lrange("io", 0, -1) == [b"first"]


def test_only_the_step_that_is_next_can_be_claimed(store: RunStore) -> None:
    store.start(new_run())

    assert store.claim("r1", "1", 1, "a") is None
    assert store.claim("r1", "0", 2, "a") is None
    assert store.claim("other", "0", 1, "a") is None
    assert store.claim("r1", "0", 1, "a") is not None


def test_a_claimed_step_cannot_be_claimed_by_another(store: RunStore) -> None:
    store.start(new_run())
    claimed(store)

    assert store.claim("r1", "0", 1, "somebody else") is None


def test_a_claim_asked_for_again_by_its_owner_is_the_same_claim(store: RunStore) -> None:
    store.start(new_run())

    first, again = claimed(store), claimed(store)

    assert first == again
    assert store.record("r1").fence == first.fence  # type: ignore[union-attr]


def test_a_commit_moves_the_cursor_and_keeps_what_the_step_made(store: RunStore) -> None:
    store.start(new_run())
    claim = claimed(store)

    assert store.commit(claim, Outcome(next="1", state=b'{"n":1}', messages=(b'"x"', b'"y"'), done={"path": "0"}), 2)

    following = claimed(store, path="1")
    assert (following.state, following.messages) == (b'{"n":1}', (b'"x"', b'"y"'))
    assert following.fence > claim.fence
    record = store.record("r1")
    assert record is not None
    (step,) = record.steps
    assert (record.cursor, record.status, step["path"]) == ("1", "running", "0")
    # when it was committed, by the server's clock
    assert record.begun <= step["ended"] <= record.begun + 60_000


def test_a_commit_repeated_because_its_answer_got_lost_counts_once(store: RunStore) -> None:
    store.start(new_run())
    claim = claimed(store)
    outcome = Outcome(next="1", state=b"{}", messages=(b'"x"',), events=(Opened(0, Text()),))

    assert store.commit(claim, outcome, 2)
    assert store.commit(claim, outcome, 2)

    assert claimed(store, path="1").messages == (b'"x"',)


def test_whoever_lost_the_step_commits_nothing(store: RunStore) -> None:
    store.start(new_run(durable=True))
    old = claimed(store)
    lapse(store)
    assert store.wake().steps == (("r1", "main", "0", 2),)
    new = claimed(store, attempt=2)

    assert not store.commit(old, Outcome(next="1", state=b'"old"'), 2)
    assert store.commit(new, Outcome(next="1", state=b'"new"'), 2)
    assert claimed(store, path="1").state == b'"new"'


def test_whoever_lost_the_step_writes_nothing_and_hears_so(store: RunStore) -> None:
    store.start(new_run(durable=True))
    old = claimed(store)
    lapse(store)
    store.wake()
    new = claimed(store, attempt=2)

    assert store.append([("r1", old.fence, 2, b'[["d",0,"old"]]')]) == ({"r1"}, set())
    assert store.append([("r1", new.fence, 2, b'[["d",0,"new"]]')]) == (set(), set())
    entries = (store.follow("r1", "web", LogId(1)) or ("", []))[1]
    assert [line for _, line in entries] == [b'[["d",0,"new"]]']


def test_a_batch_sent_twice_is_stored_once(store: RunStore) -> None:
    store.start(new_run())
    claim = claimed(store)
    batch = [("r1", claim.fence, 2, write_events([Opened(0, Text()), Delta(0, "a")]))]

    store.append(batch)
    store.append(batch)

    entries = (store.follow("r1", "web", LogId(1)) or ("", []))[1]
    assert [entry.seq for entry, _ in entries] == [2]


def test_a_refused_renewal_names_the_lost_step(store: RunStore) -> None:
    store.start(new_run())
    claim = claimed(store)

    assert store.renew([("r1", claim.fence)]) == (set(), set())
    assert store.renew([("r1", claim.fence + 1)]) == ({"r1"}, set())
    assert store.renew([("gone", 1)]) == ({"gone"}, set())


def test_a_renewed_lease_is_not_due(store: RunStore) -> None:
    store.start(new_run())
    claim = claimed(store)
    lapse(store)
    store.renew([("r1", claim.fence)])

    assert store.wake().steps == ()


def test_a_step_that_nobody_claimed_is_sent_again(store: RunStore) -> None:
    store.start(new_run())
    lapse(store)

    assert store.wake().steps == (("r1", "main", "0", 1),)
    assert store.wake().steps == ()


def test_a_step_whose_message_may_still_wait_is_not_sent_again(store: RunStore) -> None:
    store.start(new_run())
    store.client.lpush("io", "a message")
    lapse(store)

    assert store.wake(["io", "cpu"]).steps == ()


def test_a_queue_that_never_empties_hides_a_lost_step_for_a_while_only(store: RunStore) -> None:
    store.start(new_run())
    store.client.lpush("io", "a message")
    sent = []
    for _ in range(10):
        lapse(store)
        sent.append(store.wake(["io"]).steps)

    assert sent == [()] * 9 + [(("r1", "main", "0", 1),)]


def test_a_lost_run_without_a_durable_flow_fails_at_once_and_its_client_hears_it(store: RunStore) -> None:
    store.start(new_run())
    claimed(store)
    lapse(store)

    assert store.wake().steps == ()

    status, entries = store.follow("r1", "web", LogId(1)) or ("", [])
    [event] = [event for _, line in entries for event in read_events(line)]
    assert status == "failed"
    assert isinstance(event, Failed)
    assert (event.code, event.status, event.retryable) == ("run_interrupted", 503, True)


def test_a_lost_run_whose_answer_is_complete_fails_without_telling_the_client(store: RunStore) -> None:
    store.start(new_run())
    store.commit(claimed(store), Outcome(next="1", state=b"{}", events=(Finished("end"),), answered=True), 2)
    claimed(store, path="1")
    lapse(store)
    store.wake()

    status, entries = store.follow("r1", "web", LogId(1)) or ("", [])

    assert status == "failed"
    assert [event for _, line in entries for event in read_events(line)] == [Finished("end")]


def test_a_step_that_costs_three_workers_is_given_up(store: RunStore) -> None:
    store.start(new_run(durable=True))
    for attempt in (1, 2, 3):
        claimed(store, attempt=attempt)
        lapse(store)
        store.wake()

    record = store.record("r1")

    assert record is not None
    assert (record.status, record.error["code"]) == ("failed", "run_failed")


def test_a_run_that_is_over_is_looked_after_no_more_and_expires(store: RunStore) -> None:
    store.start(new_run())
    store.commit(claimed(store), Outcome(next=END, state=b"{}"), 2)

    assert store.finish("r1")
    assert not store.finish("r1")

    assert store.client.zscore("bb:due", "r1") is None
    left = [key for key in store.client.scan_iter("bb:*") if store.client.pttl(key) <= 0]
    assert left == []


def test_a_run_leaves_the_list_of_its_scope_only_after_its_record_is_gone(store: RunStore) -> None:
    store.start(structs.replace(new_run(), scope="s"))
    store.commit(claimed(store), Outcome(next=END, state=b"{}"), 2)
    store.finish("r1")

    # looked at in the very moment in which the record expires, it would still be there and then be listed for days
    left = store.client.pttl("bb:run:r1")
    seconds, micros = store.client.time()
    assert store.client.zscore("bb:kept", "s r1") >= seconds * 1000 + micros / 1000 + left + 500
    assert store.client.pttl("bb:kept") > left + 1000


def test_a_run_that_is_not_done_cannot_be_finished(store: RunStore) -> None:
    store.start(new_run())

    assert not store.finish("r1")


def test_stopping_an_unclaimed_run_ends_it(store: RunStore) -> None:
    store.start(new_run())

    assert store.stop("r1")

    record = store.record("r1")
    assert record is not None
    assert (record.status, record.error["code"]) == ("cancelled", "run_cancelled")
    assert store.claim("r1", "0", 1, "a") is None
    assert not store.stop("r1")


def test_stopping_a_claimed_step_is_told_with_its_next_write_and_renewal(store: RunStore) -> None:
    store.start(new_run())
    claim = claimed(store)

    assert store.stop("r1")

    assert store.renew([("r1", claim.fence)]) == (set(), {"r1"})
    assert store.append([("r1", claim.fence, 2, b"[]")]) == (set(), {"r1"})


@pytest.mark.parametrize("lasting", [False, True])
def test_an_abandoned_run_is_stopped_only_when_nothing_of_it_lasts(store: RunStore, lasting: bool) -> None:
    store.start(msgspec.structs.replace(new_run(), terms=Terms(lasting=lasting)))

    assert store.stop("r1", if_abandoned=True) is not lasting


def test_a_run_that_somebody_follows_is_not_abandoned(store: RunStore) -> None:
    store.start(new_run(), "web")

    assert not store.stop("r1", if_abandoned=True)
    store.unfollow("r1", "web")
    assert store.stop("r1", if_abandoned=True)


def test_an_unknown_run_has_no_record_and_no_log(store: RunStore) -> None:
    assert store.record("nothing") is None
    assert store.follow("nothing", "web", LogId(0)) is None


def test_a_follower_that_joins_late_reads_what_it_missed(store: RunStore) -> None:
    store.start(new_run())
    claim = claimed(store)
    store.append([("r1", claim.fence, 2, write_events([Opened(0, Text()), Delta(0, "ab")]))])
    store.commit(claim, Outcome(next=END, state=b"{}", events=(Closed(0), Finished("end"))), 3)

    _, entries = store.follow("r1", "late", LogId(2)) or ("", [])

    assert [read_events(line) for _, line in entries] == [[Closed(0), Finished("end")]]


def test_a_claim_tells_how_long_its_step_waited_since_it_was_due(store: RunStore) -> None:
    store.start(new_run())
    store.client.hincrby("bb:run:r1", "sent", -5000)
    claim = claimed(store)
    store.commit(claim, Outcome(next="1", state=b"{}"), 2)
    following = claimed(store, path="1")

    assert 5000 <= claim.waited < 10_000
    assert 0 <= following.waited < 5000
    assert (claim.lapses, following.lapses) == (0, 0)


def test_a_claim_tells_how_many_owners_its_step_has_lost(store: RunStore) -> None:
    store.start(new_run(durable=True))
    claimed(store)
    store.client.hincrby("bb:run:r1", "sent", -60_000)
    lapse(store)
    store.wake()
    claim = claimed(store, attempt=2)

    # the time of the owner that was lost is no waiting
    assert (claim.lapses, claim.waited < 5000) == (1, True)


def test_the_load_is_what_is_open_due_and_waiting(store: RunStore) -> None:
    for run_id in ("r1", "r2", "r3"):
        store.start(new_run(run_id))
    store.client.zadd("bb:due", {"r2": 0})
    store.client.lpush("io", "a", "b")

    assert store.load(("io", "cpu")) == (3, 1, (2, 0))
    assert store.load() == (3, 1, ())
