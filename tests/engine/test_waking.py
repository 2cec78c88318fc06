"""How soon it is found out what is lost: killed processes, taken messages, processes that end and say so."""

from __future__ import annotations

import json
from collections.abc import Iterator

import fakeredis
import pytest
from msgspec.structs import replace
from redis.client import PubSub

from bigbrain.engine.leases import Leases, hand_back
from bigbrain.engine.records import Claim, Outcome, Terms
from bigbrain.engine.store import LATE, LOOK, RunStore
from bigbrain.errors import RunInterrupted
from bigbrain.scope import Scope
from tests.engine.acting import new_run, until

FAR = 60.0
"""A lease that does not lapse while a test runs."""


@pytest.fixture
def patient(fake_server: fakeredis.FakeServer) -> RunStore:
    return RunStore(fakeredis.FakeRedis(server=fake_server, max_connections=100), lease=FAR, grace=FAR)


@pytest.fixture
def listener(patient: RunStore) -> Iterator[PubSub]:
    """A process `p` that is heard."""
    listening = patient.client.pubsub()
    listening.subscribe("bb:here:p")
    assert listening.get_message(timeout=1)
    yield listening
    listening.close()


def held(store: RunStore, run_id: str = "r1", *, process: str = "p", durable: bool = True) -> Claim:
    store.start(new_run(run_id, durable=durable))
    claim = store.claim(run_id, "0", 1, f"{process}:1")
    assert claim is not None
    return claim


def grow_late(store: RunStore, process: str = "p") -> None:
    """Lets so much time pass that the process should have renewed."""
    store.client.zincrby("bb:here", -1000 * (store.lease / 4 + LATE + 1), process)


def look_again(store: RunStore, process: str = "p") -> None:
    """Lets the time pass between two looks at a process that was not heard."""
    assert store.client.hincrby("bb:missing", process, int(-1000 * store.lease)) > 0


def message(run_id: str, *, again: bool = False) -> str:
    """A message of a step's, as it waits in a queue; again: of one that is run again."""
    headers = {"run": run_id, "task": "workers.tasks.step", **({"again": True} if again else {})}
    return json.dumps({"body": "", "headers": headers})


def test_the_step_of_a_killed_process_is_taken_up_long_before_its_lease_is_over(patient: RunStore) -> None:
    held(patient)
    grow_late(patient)

    assert patient.wake().steps == ()
    look_again(patient)

    assert patient.wake().steps == (("r1", "main", "0", 2),)
    assert patient.claim("r1", "0", 2, "other:1") is not None


def test_a_look_at_a_process_that_is_not_heard_is_soon_followed_by_another(patient: RunStore) -> None:
    held(patient)
    grow_late(patient)

    assert patient.wake().pause <= LOOK


def test_a_process_that_is_late_and_heard_keeps_its_steps(patient: RunStore, listener: PubSub) -> None:
    held(patient)
    grow_late(patient)

    for _ in range(3):
        assert patient.wake().steps == ()
    assert patient.client.hlen("bb:missing") == 0


def test_a_process_that_renews_and_is_not_heard_keeps_its_steps(patient: RunStore) -> None:
    claim = held(patient)
    grow_late(patient)
    patient.wake()
    look_again(patient)
    patient.renew([("r1", claim.fence)], "p")

    assert patient.wake().steps == ()
    grow_late(patient)
    # what was not heard before the renewal counts no more
    assert patient.wake().steps == ()


def test_a_process_that_cannot_be_heard_has_its_lease_to_the_end(patient: RunStore) -> None:
    held(patient, process="")

    assert patient.client.zcard("bb:here") == 0
    assert patient.wake().steps == ()


def test_only_the_steps_of_the_killed_process_are_taken_up(patient: RunStore, listener: PubSub) -> None:
    held(patient, "mine")
    held(patient, "gone", process="q")
    held(patient, "plain", process="q", durable=False)
    for process in ("p", "q"):
        grow_late(patient, process)
    patient.wake()
    look_again(patient, "q")

    assert [step[0] for step in patient.wake().steps] == ["gone"]
    assert patient.record("plain").status == "failed"
    assert patient.client.zrange("bb:here", 0, -1) == [b"p"]


def test_a_lost_attempt_is_on_record(patient: RunStore) -> None:
    held(patient)
    patient.client.zadd("bb:due", {"r1": 0})
    patient.wake()

    [lost] = patient.record("r1").steps
    took, ended = lost.pop("took"), lost.pop("ended")
    assert lost == {"path": "0", "attempt": 1, "result": "lost", "process": "p"}
    assert patient.record("r1").begun <= ended - took <= ended


def test_a_message_that_was_taken_and_not_claimed_is_sent_again_while_others_wait(patient: RunStore) -> None:
    patient.start(new_run("taken"))
    patient.start(new_run("waits"))
    patient.client.hincrby("bb:run:taken", "sent", -2000)
    patient.client.lpush("io", message("waits"))
    patient.client.zadd("bb:due", {"taken": 0, "waits": 0})

    assert patient.wake(["io"]).steps == (("taken", "main", "0", 1),)

    # its new message waits now, and the old date of the run is no reason to send another
    patient.client.lpush("io", message("taken"))
    patient.client.zadd("bb:due", {"taken": 0})
    assert patient.wake(["io"]).steps == ()


def test_a_message_that_went_before_others_and_was_not_claimed_is_sent_again_while_they_wait(patient: RunStore) -> None:
    for run_id in ("first", "second", "waits"):
        patient.start(new_run(run_id))
        if run_id != "waits":
            patient.client.hset(f"bb:run:{run_id}", "attempt", 2)
    patient.client.lpush("io", message("waits"))
    patient.client.rpush("io", message("first", again=True), message("second", again=True))
    patient.client.zadd("bb:due", {"first": 0, "second": 0, "waits": 0})
    assert patient.wake(["io"]).steps == ()

    # a worker takes one and dies
    patient.client.rpop("io")
    patient.client.zadd("bb:due", {"first": 0, "second": 0, "waits": 0})
    assert patient.wake(["io"]).steps == (("second", "main", "0", 2),)


@pytest.mark.parametrize("attempt", [1, 2])
def test_behind_more_than_can_be_looked_at_nothing_counts_as_taken(patient: RunStore, attempt: int) -> None:
    patient.start(new_run("waits"))
    patient.client.hset("bb:run:waits", mapping={"attempt": attempt, "sent": 0})
    patient.client.lpush("io", *(message(f"other{number}", again=True) for number in range(100)), message("waits"))
    patient.start(new_run("elsewhere"))
    patient.client.lpush("cpu", message("elsewhere"))
    patient.client.zadd("bb:due", {"waits": 0})

    assert patient.wake(["io", "cpu"]).steps == ()


@pytest.mark.parametrize(
    "strange",
    [
        "",
        "[",
        "null",
        "[1]",
        '{"headers": {"run": null, "again": true}}',
        '{"headers": 3}',
        '{"headers": {"run": "unknown"}}',
    ],
)
def test_a_strange_message_in_a_queue_costs_nobody_anything(patient: RunStore, strange: str) -> None:
    patient.start(new_run())
    patient.client.lpush("io", strange)
    patient.client.zadd("bb:due", {"r1": 0})

    assert patient.wake(["io"]).steps == ()


def test_the_next_look_is_due_with_the_next_run_and_in_a_second_at_most(patient: RunStore) -> None:
    assert patient.wake().pause == 1.0
    patient.start(new_run())
    assert patient.wake().pause == 1.0
    patient.client.zadd("bb:due", {"r1": patient.client.time()[0] * 1000 - 5000})
    patient.wake()
    patient.grace = 0.4
    patient.client.zadd("bb:due", {"r1": 0})
    assert 0 < patient.wake().pause <= 0.4


def test_a_run_whose_time_is_over_is_claimed_no_more_and_ended(patient: RunStore) -> None:
    claim = held(patient)
    patient.client.hset("bb:run:r1", "expires", 1)
    assert patient.commit(claim, Outcome(next="1", state=b"{}", durable=True), 2)

    assert patient.claim("r1", "1", 1, "p:2") is None
    assert patient.wake().steps == ()
    record = patient.record("r1")
    assert (record.status, record.error["code"]) == ("failed", "run_expired")


def test_how_long_a_run_may_last_is_measured_by_the_servers_clock(patient: RunStore) -> None:
    patient.start(replace(new_run(durable=True), terms=Terms(durable=True, ttl=50.0)))

    begun, expires = (int(value) for value in patient.client.hmget("bb:run:r1", "begun", "expires"))
    assert expires - begun == 50_000


def test_a_process_that_ends_hands_back_its_steps_at_once(patient: RunStore) -> None:
    leases = Leases(patient)
    assert leases.wait_present(5)
    patient.start(new_run("lasting", durable=True))
    patient.start(new_run("plain"))
    scopes = [Scope(), Scope()]
    claims = [patient.claim(run_id, "0", 1, leases.owner()) for run_id in ("lasting", "plain")]
    with leases.hold(claims[0], scopes[0]), leases.hold(claims[1], scopes[1]):
        assert leases.hand_back() == 2

        assert [type(scope.error) for scope in scopes] == [RunInterrupted] * 2
        assert patient.wake().steps == (("lasting", "main", "0", 2),)
        assert patient.record("plain").error["code"] == "run_interrupted"
        # a worker that ends in order is no reason to call a step poisoned
        assert patient.claim("lasting", "0", 2, "other:1").lapses == 0
        assert not patient.commit(claims[0], Outcome(next="1", state=b"{}"), 2)
    leases.close()


def test_a_process_hands_back_when_another_of_its_machine_asks_it_to(patient: RunStore) -> None:
    leases = Leases(patient)
    assert leases.wait_present(5)
    process = leases.owner().partition(":")[0]
    pid = int(process.split(".")[-2])
    patient.start(new_run(durable=True))
    scope = Scope()
    with leases.hold(patient.claim("r1", "0", 1, leases.owner()), scope):
        hand_back(patient.client, [pid + 1])
        hand_back(patient.client, [pid])
        until(lambda: scope.cancelled)
        until(lambda: patient.client.hget("bb:run:r1", "owner") == b"")

    leases.close()


@pytest.mark.parametrize("durable", [True, False])
def test_a_cancelled_run_whose_worker_is_lost_is_cancelled_and_not_failed(patient: RunStore, durable: bool) -> None:
    held(patient, durable=durable)
    assert patient.stop("r1")
    patient.client.zadd("bb:due", {"r1": 0})

    assert patient.wake().steps == ()
    record = patient.record("r1")
    assert (record.status, record.error["code"]) == ("cancelled", "run_cancelled")


@pytest.mark.parametrize("durable", [True, False])
def test_a_cancelled_run_whose_worker_ends_is_cancelled_and_not_failed(patient: RunStore, durable: bool) -> None:
    claim = held(patient, durable=durable)
    assert patient.stop("r1")
    patient.release([("r1", claim.fence)], "p")

    record = patient.record("r1")
    assert (record.status, record.error["code"]) == ("cancelled", "run_cancelled")


def test_after_the_server_was_away_everybody_gets_the_time_to_show_that_it_lives(patient: RunStore) -> None:
    claim, other = held(patient), held(patient, "r2", process="q")
    patient.wake()
    # nobody has looked for ten minutes, and all leases are over
    patient.client.set("bb:awake", int(patient.client.get("bb:awake")) - 600_000)
    for run_id in ("r1", "r2"):
        patient.client.zadd("bb:due", {run_id: 0})
        grow_late(patient, "p" if run_id == "r1" else "q")

    assert patient.wake().steps == ()
    assert patient.client.hlen("bb:missing") == 0
    # one of them does, in time
    assert patient.renew([("r1", claim.fence)], "p") == (set(), set())
    patient.client.delete("bb:quiet")
    patient.client.zadd("bb:due", {"r2": 0})

    assert [step[0] for step in patient.wake().steps] == ["r2"]
    assert patient.renew([("r2", other.fence)], "q") == ({"r2"}, set())


def lose(store: RunStore, run_id: str = "r1") -> None:
    """Has the lease of a run's step be over, and looks."""
    store.client.delete("bb:quiet")
    store.client.zadd("bb:due", {run_id: 0})
    store.wake()


def test_a_step_that_was_lost_because_the_server_was_away_is_no_poison(patient: RunStore) -> None:
    held(patient)
    for attempt in range(2, 7):
        patient.wake()
        patient.client.set("bb:awake", int(patient.client.get("bb:awake")) - 600_000)
        patient.wake()
        lose(patient)
        assert patient.claim("r1", "0", attempt, "p:1") is not None
    record = patient.record("r1")
    assert record is not None
    assert (record.status, record.lapses, record.attempt) == ("running", 0, 6)

    # from now on it is the step
    patient.client.set("bb:back", 0)
    for attempt in range(7, 9):
        lose(patient)
        assert patient.claim("r1", "0", attempt, "p:1") is not None
    lose(patient)
    assert patient.record("r1").status == "failed"  # type: ignore[union-attr]


def test_after_the_server_was_begun_anew_everybody_gets_the_time_to_show_that_it_lives(patient: RunStore) -> None:
    held(patient)
    patient.wake()
    patient.client.set("bb:server", "another")
    grow_late(patient)
    patient.client.zadd("bb:due", {"r1": 0})

    assert patient.wake().steps == ()
    assert patient.client.hlen("bb:missing") == 0
    assert patient.client.exists("bb:quiet")


def test_a_server_that_is_looked_at_all_the_time_gives_no_more_time(patient: RunStore) -> None:
    held(patient)
    patient.wake()
    patient.client.zadd("bb:due", {"r1": 0})

    assert [step[0] for step in patient.wake().steps] == ["r1"]
