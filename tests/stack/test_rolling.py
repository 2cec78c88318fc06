"""A rolling restart: every web process and every worker is asked to end, one after the other, while clients stream."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.chaos.clients import DURABLE, EXPECTED, Client, Seen
from tests.stack.deployment import Deployment, deployed, until
from tests.upstream import Upstream

pytestmark = pytest.mark.slow


async def rolled(stack: Deployment, seen: Seen) -> None:
    """Restarts all while four clients ask for one answer after the other."""
    over = asyncio.Event()
    clients = [asyncio.create_task(Client(number, stack.openai, seen).run(over)) for number in range(4)]
    await asyncio.sleep(3)
    for mark in ("gunicorn", " -Q io"):
        # the first gunicorn is the master, which starts the others again
        for pid in sorted(stack.pids(mark))[mark == "gunicorn" :]:
            os.kill(pid, signal.SIGTERM)
            assert await asyncio.to_thread(until, lambda pid=pid: pid not in stack.processes(), 40)
            await asyncio.sleep(3)
    over.set()
    await asyncio.gather(*clients)


def test_a_rolling_restart_under_load_loses_nothing(tmp_path: Path) -> None:
    arguments = ("up", "tests.brains", "--port", "0", "--web", "2", "--workers", "2")
    seen = Seen()
    with Upstream() as upstream, deployed(*arguments, data=tmp_path, UPSTREAM=upstream.url) as stack:
        before = set(stack.pids("gunicorn")[1:]) | set(stack.pids(" -Q io"))
        asyncio.run(rolled(stack, seen))
        after = set(stack.pids("gunicorn")[1:]) | set(stack.pids(" -Q io"))

        assert not before & after
        assert len(after) == 4

    assert seen.wrong == []
    assert set(seen.answers) == set(EXPECTED) >= set(DURABLE)
    # not even those that are not durable: each process finishes what it has begun
    assert seen.again == {}


def test_an_answer_that_outlasts_its_web_process_is_ended_with_an_error_and_had_by_coming_back(tmp_path: Path) -> None:
    seen = Seen()
    arguments = ("up", "tests.brains", "--port", "0", "--web", "1", "--workers", "1")
    with (
        Upstream() as upstream,
        deployed(*arguments, data=tmp_path, UPSTREAM=upstream.url, BIG_BRAIN_DRAIN="1") as stack,
    ):
        client = Client(0, stack.openai, seen)

        async def asked() -> tuple[str, str]:
            stream = asyncio.create_task(client.ask_once("lasting", "r"))
            await asyncio.to_thread(until, lambda: seen.heard > 5, 20)
            os.kill(sorted(stack.pids("gunicorn"))[1], signal.SIGTERM)
            return await stream

        text, error = asyncio.run(asked())
        assert error == "server_ending"
        assert EXPECTED["lasting"].startswith(text)
        assert until(lambda: len(stack.pids("gunicorn")) == 2, 30)
        whole, error = asyncio.run(client.ask_once("lasting", "r"))
        assert (whole.strip(), error) == (EXPECTED["lasting"], "")
