"""Faults that public bug reports tell of, of brokers, cancelling and leases: shown not to happen with real workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bigbrain.embedded import EmbeddedRedis
from bigbrain.messages import Request, user
from tests.engine.acting import until
from tests.workers.processes import Worker
from tests.workers.test_tasks import Office

pytestmark = pytest.mark.slow

Start = Callable[..., Worker]

SERVED = '''
import os
import time
from pathlib import Path

from bigbrain import Brain, FixedModel, Flow, agent
from bigbrain.errors import ModelBroke
from workers import app

HERE = Path(__file__).parent

# what is given to a worker and not acknowledged in a second goes to another one, as celery sweeps it
app.conf.broker_transport_options = {
    "visibility_timeout": 1, "unacked_restore_interval": 1, "unacked_restore_throttle": 1
}


def mark(name):
    """Tells the test that we are here, by process."""
    with (HERE / name).open("a") as file:
        file.write(f"{os.getpid()}\\n")


class Model:
    """Marks that it was asked."""

    def ask(self, request, scope):
        scope.check()
        mark("asked")
        yield from FixedModel("done").ask(request, scope)


@agent
def slow(turn, chat):
    mark("slow")
    for _ in range(3000):
        if (HERE / "go").exists():
            break
        turn.check()
        time.sleep(0.01)
    turn.reply(chat.ask("what?"))


@agent
def lasts(turn, chat):
    mark("lasts")
    time.sleep(7)
    turn.reply("lasted")


@agent
def breaks(turn, chat):
    mark("breaks")
    raise ModelBroke


@agent
def after(turn, chat):
    mark("after")


brain = Brain("slow", Flow(slow, model=Model()).named("slow").durable() >> Flow(after))
brain.add_flow(Flow(slow, model=Model()) >> Flow(after), name="plain")
brain.add_flow(Flow(lasts).named("lasts").durable(), name="lasts")
brain.add_flow(Flow(breaks).named("breaks").durable(retries=2), name="breaks")
'''


@pytest.fixture
def office(redis_server: EmbeddedRedis, tmp_path: Path) -> Iterator[Office]:
    one = Office(redis_server.url, tmp_path, SERVED)
    yield one
    one.close()


def begin(office: Office, flow: str, run_id: str = "r") -> None:
    """Starts a run and leaves it alone."""
    with office.reception.receive(Request(model=flow, messages=(user("go"),)), run_id, 5.0):
        pass


def kill(worker: Worker) -> None:
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.process.wait(10)


def test_b11_a_step_longer_than_any_timeout_of_the_broker_runs_once(office: Office, worker: Start) -> None:
    for _ in range(2):
        worker("io", SERVED)
    office.answer("lasts", "r", seconds=30)

    assert office.record("r").status == "done"
    assert len(office.marks("lasts")) == 1


def test_b11_a_wait_for_the_next_attempt_is_no_message_that_comes_back(office: Office, worker: Start) -> None:
    for _ in range(2):
        worker("io", SERVED)
    office.answer("breaks", "r", seconds=30)

    # one second, then two, each longer than what the broker believes in
    assert office.record("r").error["code"] == "model_broke"
    assert len(office.marks("breaks")) == 3


def test_b12_a_cancel_before_any_worker_lives_holds_and_may_be_repeated(office: Office, worker: Start) -> None:
    begin(office, "slow")
    first, again = office.store.stop("r"), office.store.stop("r")
    office.let_go()
    worker("io", SERVED)
    office.answer("slow", "another", seconds=30)

    assert (first, again) == (True, False)
    assert office.record("r").status == "cancelled"
    assert len(office.marks("slow")) == 1


def test_b12_a_cancel_of_a_step_whose_worker_has_died_holds_when_another_one_starts(
    office: Office, worker: Start
) -> None:
    one = worker("io", SERVED)
    begin(office, "slow")
    until(lambda: office.marks("slow"))
    kill(one)
    office.store.stop("r")
    office.store.stop("r")
    office.let_go()
    worker("io", SERVED)

    assert office.record("r").status == "cancelled"
    assert (len(office.marks("slow")), office.marks("asked"), office.marks("after")) == (1, [], [])


def test_b12_a_cancel_while_a_run_waits_for_its_next_attempt_holds_across_a_restart(
    office: Office, worker: Start
) -> None:
    one = worker("io", SERVED)
    begin(office, "breaks")
    until(lambda: (record := office.store.record("r")) and record.attempt > 1)
    office.store.stop("r")
    kill(one)
    worker("io", SERVED)
    office.let_go()
    # whatever were still to come of the first run would come before the end of this one
    office.answer("breaks", "another", seconds=30)

    assert office.record("r").status == "cancelled"
    assert len(office.marks("breaks")) == 1 + 3


def test_b36_a_worker_that_was_frozen_asks_no_model_and_changes_nothing_when_it_goes_on(
    office: Office, worker: Start
) -> None:
    frozen = worker("io", SERVED)
    begin(office, "slow")
    until(lambda: office.marks("slow") == [frozen.process.pid])
    os.kill(frozen.process.pid, signal.SIGSTOP)
    try:
        other = worker("io", SERVED)
        until(lambda: office.marks("slow") == [frozen.process.pid, other.process.pid], 30)
        office.let_go()
        record = office.record("r")
    finally:
        os.kill(frozen.process.pid, signal.SIGCONT)
    # it takes part again, so everything that it had left to do is done
    for _ in range(8):
        office.answer("plain", f"p{_}", seconds=30)
    later = office.record("r")

    assert record.status == "done"
    assert office.marks("asked").count(frozen.process.pid) == office.marks("slow").count(frozen.process.pid) - 1
    assert (later.steps, later.seq, later.fence) == (record.steps, record.seq, record.fence)
    assert office.marks("after").count(other.process.pid) + office.marks("after").count(frozen.process.pid) == 9
