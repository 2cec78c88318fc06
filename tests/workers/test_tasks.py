"""Runs carried by a real Celery through a real Redis, with real workers that end in every way."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from bigbrain.brain import Brain
from bigbrain.embedded import EmbeddedRedis
from bigbrain.engine.channels import Hub
from bigbrain.engine.records import NewRun, RunRecord
from bigbrain.engine.runs import Runs
from bigbrain.engine.server import connect
from bigbrain.engine.store import RunStore
from bigbrain.events import Event, Failed, Started, checked, collect
from bigbrain.messages import Request, user
from bigbrain.program import Program
from bigbrain.reception import Reception
from bigbrain.settings import Settings, broker_url
from tests.engine.acting import until
from tests.workers.processes import DidNotStart, Worker
from workers import app
from workers.chains import FINISH, STEP, CeleryQueue
from workers.process import Process

pytestmark = pytest.mark.slow

Start = Callable[..., Worker]

SERVED = '''
import multiprocessing
import os
import threading
from pathlib import Path

from bigbrain import Brain, Flow, agent, respond

HERE = Path(__file__).parent


def mark(name):
    """Tells the test that we are here, by process."""
    with (HERE / name).open("a") as file:
        file.write(f"{os.getpid()}\\n")


def wait_for(name):
    for _ in range(2000):
        if (HERE / name).exists():
            return
        threading.Event().wait(0.01)
    raise TimeoutError(name)


@agent
def one(turn, chat):
    mark("one")
    turn.reply(f"one by {os.getpid()}")


@agent
def two(turn, chat):
    mark("two")
    turn.reply("two")


@agent
def three(turn, chat):
    mark("three")


@agent
def slow(turn, chat):
    mark("slow")
    turn.reply(["begun"])
    wait_for("go")
    turn.reply("done")


@agent(cpu=True)
def crunch(turn, chat):
    child = multiprocessing.current_process().name
    mark("crunch")
    turn.reply(f"crunched by {child} {os.getpid()}")


@agent(cpu=True)
def slow_crunch(turn, chat):
    slow.act(turn, chat)


brain = Brain("chain", Flow(one) >> respond >> Flow(two) >> respond >> Flow(three))
brain.add_flow(Flow(slow) >> Flow(two), name="slow")
brain.add_flow(Flow(slow).named("kept").durable() >> respond, name="kept")
brain.add_flow(Flow(slow_crunch).named("kept-crunch").durable() >> respond, name="kept-cpu")
brain.add_flow(Flow(one) >> respond >> Flow(crunch) >> respond >> Flow(two) >> respond, name="cpu")
'''


class Office:
    """The half of a deployment that executes nothing: it sends runs and follows them."""

    def __init__(self, url: str, folder: Path, source: str = SERVED) -> None:
        app.conf.broker_url = broker_url(url)
        self.folder = folder
        self.store = RunStore(connect(url))
        self.queue = CeleryQueue(self.store.client)
        self.brain = brain_of(folder, source)
        self.program: Program = self.brain.program(Settings())
        self.runs = Runs(self.program, self.store, self.queue)
        self.hub = Hub(self.store)
        self.reception = Reception(self.brain, self.program, self.runs, self.hub)

    def answer(
        self, flow: str, run_id: str, meanwhile: Callable[[], None] = lambda: None, seconds: float = 20.0
    ) -> list[Event]:
        """All events of an answer, in legal order."""
        asked = Request(model=flow, messages=(user("go"),))
        with self.reception.receive(asked, run_id, 5.0) as (started, follower, _):
            events: list[Event] = [started]
            meanwhile()

            def over() -> bool:
                events.extend(follower.read(0.1))
                return follower.over

            until(over, seconds)
            return list(checked(events))

    def record(self, run_id: str) -> RunRecord:
        """A run's record once it is over."""

        def over() -> bool:
            record = self.store.record(run_id)
            return record is not None and record.status not in ("queued", "running")

        until(over, 20)
        record = self.store.record(run_id)
        assert record is not None
        return record

    def marks(self, name: str) -> list[int]:
        """The processes in which a step of the brain was executed."""
        path = self.folder / name
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def close(self) -> None:
        self.hub.close()
        until(lambda: not self.store.client.pubsub_numsub(self.hub.channel)[0][1])
        self.store.client.close()
        app.close()


def brain_of(folder: Path, source: str) -> Brain:
    scope: dict[str, object] = {"__file__": str(folder / "served.py"), "__name__": "served"}
    exec(compile(source, "served.py", "exec"), scope)
    brain = scope["brain"]
    assert isinstance(brain, Brain)
    return brain


@pytest.fixture
def office(redis_server: EmbeddedRedis, tmp_path: Path) -> Iterator[Office]:
    one = Office(redis_server.url, tmp_path)
    yield one
    one.close()


def test_a_run_of_several_flows_goes_through_one_chain_closed_by_finish(office: Office, worker: Start) -> None:
    one = worker("io", SERVED)
    events = office.answer("chain", "r1")
    record = office.record("r1")

    assert collect(events).text == f"one by {one.process.pid}\n\ntwo"
    assert [step["path"] for step in record.steps] == ["0", "2", "4"]
    assert (record.status, record.cursor, record.error) == ("done", "finish", None)
    assert [office.marks(name) for name in ("one", "two", "three")] == [[one.process.pid]] * 3


def test_a_message_holds_ids_only_and_tells_people_what_it_is(office: Office) -> None:
    with office.reception.receive(Request(messages=(user("a secret"),)), "r1", 5.0):
        pass

    [message] = office.store.client.lrange("io", 0, -1)
    headers = json.loads(message)["headers"]
    assert headers["argsrepr"] == "run r1, flow chain, agent one, step 0, attempt 1"
    assert b"secret" not in message
    assert len(message) < 4096
    assert headers["task"] == STEP


def test_a_step_that_is_run_again_goes_before_those_that_wait(office: Office) -> None:
    for run_id, attempt in (("a", 1), ("b", 1), ("c", 2)):
        office.queue.send(run_id, attempt, office.runs.plans.ahead("chain", "0")[0], closed=True)

    waiting = [json.loads(line)["headers"] for line in office.store.client.lrange("io", 0, -1)]
    # the last is the next to be taken
    assert [(one["run"], one.get("again")) for one in waiting] == [("b", None), ("a", None), ("c", True)]


def test_messages_that_are_stale_doubled_or_forged_do_nothing(office: Office, worker: Start) -> None:
    worker("io", SERVED)
    office.answer("chain", "r1")
    office.record("r1")
    before = office.store.record("r1")

    for args in (("r1", "0", 1), ("r1", "2", 1), ("r1", "finish", 1), ("r1", "9", 7), ("nobody", "0", 1)):
        app.send_task(STEP, args=args, queue="io")
    for run_id in ("r1", "nobody"):
        app.send_task(FINISH, args=(run_id,), queue="io")
    office.answer("chain", "r2")
    office.record("r2")

    assert office.store.record("r1") == before
    assert [len(office.marks(name)) for name in ("one", "two", "three")] == [2, 2, 2]


def test_a_chain_sent_many_times_is_executed_once(office: Office, worker: Start) -> None:
    def again() -> None:
        for _ in range(10):
            office.runs.send("r1", "chain", "0", 1)

    office.answer("chain", "r1", lambda: (again(), worker("io", SERVED)), 30)
    record = office.record("r1")
    until(lambda: office.store.client.llen("io") == 0)

    assert len(record.steps) == 3
    assert [len(office.marks(name)) for name in ("one", "two", "three")] == [1, 1, 1]


def test_a_chain_that_never_arrived_is_taken_up(office: Office, worker: Start) -> None:
    worker("io", SERVED)
    run = NewRun(
        id="r1",
        flow="chain",
        plan=office.program.fingerprint("chain"),
        cursor="0",
        first=Started("r1", "chain"),
        request=b'{"messages":[]}',
        state=b"{}",
    )
    office.store.start(run)

    assert office.record("r1").status == "done"


def test_a_worker_killed_in_mid_step_is_heard_of_by_its_client_within_eight_seconds(
    office: Office, worker: Start
) -> None:
    victim = worker("io", SERVED)

    def kill() -> None:
        until(lambda: office.marks("slow"))
        victim.kill()
        worker("io", SERVED)

    events = office.answer("slow", "r1", kill, 12)
    record = office.record("r1")

    assert isinstance(events[-1], Failed)
    assert (events[-1].code, events[-1].status, events[-1].retryable) == ("run_interrupted", 503, True)
    assert record.ended is not None
    assert record.ended - (record.begun) < 8000
    office.let_go()
    assert collect(office.answer("slow", "r2")).text == "two"


def test_a_worker_that_is_asked_to_end_finishes_its_step_and_another_goes_on(office: Office, worker: Start) -> None:
    first = worker("io", SERVED)

    def end() -> None:
        until(lambda: office.marks("slow"))
        first.terminate()
        second = worker("io", SERVED)
        office.let_go()
        assert first.wait() == 0
        # until it has noticed that it is to end, the first one may still take a message
        until(lambda: office.marks("two"))
        assert office.marks("two")[0] in (first.process.pid, second.process.pid)

    events = office.answer("slow", "r1", end, 30)

    assert collect(events).text == "two"
    assert office.marks("slow") == [first.process.pid]
    assert [step["attempt"] for step in office.record("r1").steps] == [1, 1]


@pytest.mark.parametrize(("flow", "queue", "pool"), [("kept", "io", "threads"), ("kept-cpu", "cpu", "prefork")])
def test_a_step_that_outlasts_the_end_of_its_worker_goes_on_in_another_at_once(
    office: Office, worker: Start, monkeypatch: pytest.MonkeyPatch, flow: str, queue: str, pool: str
) -> None:
    monkeypatch.setenv("BIG_BRAIN_DRAIN", "1")
    first = worker(queue, SERVED, pool=pool, concurrency=1)

    def end() -> None:
        until(lambda: office.marks("slow"))
        worker(queue, SERVED, pool=pool, concurrency=1)
        first.terminate()
        until(lambda: len(office.marks("slow")) == 2, 20)
        office.let_go()
        assert first.wait() == 0

    answer = collect(office.answer(flow, "r1", end, 30))
    steps = office.record("r1").steps

    assert answer.text == "begun\n\ndone"
    assert [(step["attempt"], step["result"]) for step in steps] == [(1, "lost"), (2, "done")]


def test_a_process_can_be_heard_before_its_first_step(
    redis_server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIG_BRAIN_APP", "samples.hello")
    monkeypatch.setenv("BIG_BRAIN_REDIS_URL", redis_server.url)
    process = Process()
    try:
        engine = process.engine()

        assert engine.leases.wait_present(0)
    finally:
        process.close()


@pytest.mark.parametrize(("queue", "pool"), [("io", "threads"), ("cpu", "prefork")])
def test_a_worker_asks_often_whether_its_broker_is_back_and_goes_on(
    office: Office, worker: Start, redis_server: EmbeddedRedis, queue: str, pool: str
) -> None:
    other = worker({"io": "cpu", "cpu": "io"}[queue], SERVED, pool={"io": "prefork", "cpu": "threads"}[queue])
    asking = worker(queue, SERVED, pool=pool, concurrency=1)
    pid = int(office.store.client.info("server")["process_id"])
    os.kill(pid, signal.SIGKILL)
    until(lambda: not redis_server.alive())
    # Celery's own way takes 72 seconds for as many
    until(lambda: asking.log.read_text().count("Cannot connect") > 8)
    redis_server.start()

    assert collect(office.answer("cpu", "r1")).text.endswith("two")
    assert other.process.poll() is None


def test_a_step_for_the_processor_runs_in_a_child_of_the_worker_for_those(office: Office, worker: Start) -> None:
    io, cpu = worker("io", SERVED), worker("cpu", SERVED, pool="prefork", concurrency=1)
    answer = collect(office.answer("cpu", "r1"))
    [child] = office.marks("crunch")

    assert answer.text.startswith(f"one by {io.process.pid}\n\ncrunched by ForkPoolWorker")
    assert answer.text.endswith(f"{child}\n\ntwo")
    assert child not in (io.process.pid, cpu.process.pid)


def test_a_child_that_was_killed_is_replaced_by_one_that_works(office: Office, worker: Start) -> None:
    worker("io", SERVED)
    worker("cpu", SERVED, pool="prefork", concurrency=1)
    office.answer("cpu", "r1")
    os.kill(office.marks("crunch")[0], signal.SIGKILL)
    office.answer("cpu", "r2", seconds=30)

    assert len(set(office.marks("crunch"))) == 2


def test_a_run_that_is_stopped_ends_its_step_and_runs_no_other(office: Office, worker: Start) -> None:
    worker("io", SERVED)

    def stop() -> None:
        until(lambda: office.marks("slow"))
        office.store.stop("r1")
        office.let_go()

    events = office.answer("slow", "r1", stop)

    assert isinstance(events[-1], Failed)
    assert events[-1].code == "run_cancelled"
    assert office.record("r1").status == "cancelled"
    assert office.marks("two") == []


def test_a_run_stopped_before_any_worker_lived_is_never_executed(office: Office, worker: Start) -> None:
    with office.reception.receive(Request(model="chain", messages=(user("go"),)), "r1", 5.0):
        office.store.stop("r1")
    worker("io", SERVED)
    office.answer("chain", "r2")

    assert office.record("r1").status == "cancelled"
    assert len(office.marks("one")) == 1


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_a_worker_of_a_faulty_brain_does_not_start_and_says_why(worker: Start, pool: str) -> None:
    with pytest.raises(DidNotStart, match="has no model: give one to the agent") as caught:
        worker("io", "from bigbrain import Brain, Flow\nbrain = Brain('b', Flow())\n", pool=pool)

    assert caught.value.status == 1


def test_two_hundred_runs_at_once_are_all_carried_out(office: Office, worker: Start) -> None:
    worker("io", SERVED)
    ids = [f"r{n}" for n in range(200)]
    for run_id in ids:
        with office.reception.receive(Request(model="chain", messages=(user("go"),)), run_id, 5.0):
            pass

    assert [office.record(run_id).status for run_id in ids] == ["done"] * 200
    assert len(office.marks("three")) == 200


def test_redis_has_only_what_expires_when_all_runs_are_over(
    office: Office, worker: Start, redis_server: EmbeddedRedis
) -> None:
    worker("io", SERVED)
    for n in range(5):
        office.answer("chain", f"r{n}")
        office.record(f"r{n}")

    with redis.Redis.from_url(redis_server.url) as client:
        lasting = [key for key in client.scan_iter("bb:*") if client.pttl(key) < 0]
        assert (lasting, client.llen("io"), client.hlen("unacked")) == ([], 0, 0)
