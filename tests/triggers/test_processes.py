"""Schedules in a real deployment: beats, workers and a Redis that is killed."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
import redis

from bigbrain.ring import read_ring
from tests.engine.acting import until
from tests.triggers.processes import EVERY_SECOND, beat, missing, noted, server, show, worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LATER = """
import os

import redis

from bigbrain import Brain, Flow, Once, agent, respond

there = redis.Redis.from_url(os.environ["BIG_BRAIN_REDIS_URL"])


@agent
def hello(turn, chat):
    turn.reply("hello")


@agent
def note(turn, chat):
    there.rpush("noted", f"{turn.due.timestamp():.0f} {turn.run_id}")


brain = Brain("later", Flow(hello) >> respond)
brain.add_trigger(Once(seconds=8) >> Flow(note).named("soon"))
"""


def test_each_instant_fires_once_through_a_stopped_beat_and_a_redis_that_is_killed(tmp_path: Path) -> None:
    # 500 of them, and 20 s: `python -m tests.triggers.processes 500`
    fired = show(24, tmp_path, stopped=4)

    assert len(fired) >= 24
    assert set(fired.values()) == {1}
    assert missing(fired) == []


def test_a_beat_alone_fires_and_the_work_waits_for_a_worker(tmp_path: Path) -> None:
    source = EVERY_SECOND.replace('catch_up="all"', 'catch_up="all", overlap="allow"')
    with server(tmp_path / "redis") as there, redis.Redis.from_url(there.url) as client:
        with worker(there.url, tmp_path, source):
            until(lambda: client.llen("noted") > 0, 60)
        client.delete("noted", "bb:trace")
        with beat(there.url, tmp_path):
            until(lambda: len(read_ring(client, kind="fired")) >= 4, 60)
        assert client.llen("noted") == 0
        with worker(there.url, tmp_path, source):
            until(lambda: client.llen("noted") >= 6, 60)
            rows = noted(client)

    assert missing(Counter(at for at, _ in rows)) == []
    assert len({run for _, run in rows}) == len({at for at, _ in rows})


def test_workers_that_are_killed_lose_no_instant_and_each_is_one_run(tmp_path: Path) -> None:
    with server(tmp_path / "redis") as there, redis.Redis.from_url(there.url) as client, beat(there.url, tmp_path):
        for killed in range(1, 4):
            with worker(there.url, tmp_path, EVERY_SECOND):
                until(lambda: client.llen("noted") >= killed * 3, 60)  # noqa: B023
        with worker(there.url, tmp_path, EVERY_SECOND):
            last = int(time.time())
            until(lambda: any(at >= last for at, _ in noted(client)), 60)
            rows = noted(client)

    runs = {at: {run for when, run in rows if when == at} for at, _ in rows}
    # a body whose worker was killed is done again, in the same run
    assert all(len(ids) == 1 for ids in runs.values())
    assert missing(Counter(at for at, _ in rows)) == []


def test_a_once_runs_once_with_two_workers_and_a_short_visibility_timeout(tmp_path: Path) -> None:
    # B11: as a message with an ETA it ran five times
    with server(tmp_path / "redis") as there, redis.Redis.from_url(there.url) as client:
        source = LATER + SHORT_VISIBILITY
        with worker(there.url, tmp_path, source), worker(there.url, tmp_path, source), beat(there.url, tmp_path):
            until(lambda: client.llen("noted") > 0, 60)
            # as long again as the timeout, for whoever would take it a second time
            time.sleep(7)
            fired = noted(client)
            unacknowledged = client.exists("unacked", "unacked_index")

    assert len(fired) == 1
    assert unacknowledged == 0


BOOT = """
import os

import redis

from bigbrain import Brain, Flow, agent

there = redis.Redis.from_url(os.environ["BIG_BRAIN_REDIS_URL"])


@agent
def note(turn, chat):
    there.rpush("noted", f"{turn.due.timestamp():.0f} {turn.run_id}")


brain = Brain("boot")
brain.add_trigger(Flow(note))
"""


def test_a_boot_task_runs_once_when_the_deployment_comes_up(tmp_path: Path) -> None:
    with server(tmp_path / "redis") as there, redis.Redis.from_url(there.url) as client:
        with worker(there.url, tmp_path, BOOT) as first:
            until(lambda: client.llen("noted") == 1, 60)
            with worker(there.url, tmp_path, BOOT) as second:
                first.terminate()
                first.wait()
                with worker(there.url, tmp_path, BOOT) as third:
                    until(lambda: client.zcard("bb:processes") == 2, 60)
                    joined = client.llen("noted")
                    third.terminate()
                    third.wait()
                second.terminate()
                second.wait()
        gone = client.zcard("bb:processes")
        with worker(there.url, tmp_path, BOOT):
            until(lambda: client.llen("noted") == 2, 60)

    assert joined == 1
    assert gone == 0


SHORT_VISIBILITY = """
from workers import app

app.conf.broker_transport_options = {
    **app.conf.broker_transport_options,
    "visibility_timeout": 5,
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
}
"""


def test_what_is_due_in_90_days_costs_a_worker_nothing(tmp_path: Path) -> None:
    with (
        server(tmp_path / "redis") as there,
        redis.Redis.from_url(there.url) as client,
        worker(there.url, tmp_path, LATER) as one,
    ):
        until(lambda: client.llen("noted") > 0, 60)
        process = psutil.Process(one.process.pid)
        before = process.memory_info().rss
        fill(client, 20_000)
        time.sleep(5)
        grown = process.memory_info().rss - before
        waiting = client.zcard("bb:schedules"), client.llen("io")

    # as messages with an ETA, each worker would hold all of them
    assert waiting == (20_000, 0)
    assert grown < 10_000_000


def fill(client: redis.Redis, count: int) -> None:
    """So many schedules that are due in 90 days, as runs would have put them off."""
    due = int(time.time() + 90 * 86_400) * 1000
    with client.pipeline(transaction=False) as pipe:
        for number in range(count):
            fields = {"kind": "once", "trigger": "later", "flow": "trigger:later", "request": "{}", "due": due}
            pipe.hset(f"bb:schedule:later:{number}", mapping=fields)
            pipe.zadd("bb:schedules", {f"later:{number}": due})
        pipe.execute()
