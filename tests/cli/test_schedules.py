"""`bigbrain schedules` before a brain behind its web tier, and `bigbrain run` as a process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bigbrain import Brain, Chat, Every, Flow, Once, Turn, agent
from bigbrain.cli import main
from bigbrain.settings import Settings
from bigbrain.testing import Client, Clock
from tests.engine.acting import until
from tests.launched import Launched
from tests.web.site import listening
from web import create_app

START = datetime(2026, 6, 1, 12, tzinfo=UTC)


@agent
def work(turn: Turn, chat: Chat) -> None:
    turn.reply("worked")


@agent
def fail(turn: Turn, chat: Chat) -> None:
    raise ValueError("never")


@pytest.fixture
def site() -> Iterator[tuple[str, Client]]:
    brain = Brain("b")
    brain.add_trigger(Every("0 15 * * *", tz="Europe/Berlin") >> Flow(work).named("daily"))
    brain.add_trigger(Once(hours=1, retries=0) >> Flow(fail).named("soon"))
    with Client(brain, now=(clock := Clock(START)).now) as client:
        with listening(create_app(client.reception, settings=Settings())) as url:
            yield url, client
        assert clock.now()


def schedules(url: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["schedules", "--url", url, *words])


def test_schedules_are_listed_cancelled_and_run(site: tuple[str, Client]) -> None:
    url, client = site

    first = schedules(url, "list")
    ran = schedules(url, "run", "daily")
    client.fired("daily")
    cancelled = schedules(url, "cancel", "daily")
    after = schedules(url, "list")

    assert "every 0 15 * * * (Europe/Berlin)" in first.output
    assert "soon" in first.output
    assert "bigbrain runs follow daily:20260601T120000Z" in ran.output
    assert cancelled.output == "`daily` fires no more\n"
    assert "cancelled" in after.output


def test_a_page_tells_how_to_go_on(site: tuple[str, Client]) -> None:
    url, _ = site
    first = schedules(url, "list", "--limit", "1")
    rest = schedules(url, "list", "--limit", "1", "--after", first.output.split()[-1])

    assert "more with --after" in first.output
    assert "more with" not in rest.output


def test_what_failed_for_good_is_listed_and_taken_up_again(site: tuple[str, Client]) -> None:
    url, client = site
    schedules(url, "run", "soon")
    client.fired("soon")
    until(lambda: "soon" in schedules(url, "dead").output)
    run = schedules(url, "dead").output.splitlines()[1].split()[0]

    assert schedules(url, "retry", run).output == f"run {run} goes on\n"


def test_what_is_not_there_is_told(site: tuple[str, Client]) -> None:
    url, _ = site
    for words in (("cancel", "nothing"), ("run", "nothing"), ("retry", "nothing")):
        result = schedules(url, *words)
        assert result.exit_code == 2
        assert "`nothing`" in result.output


ALONE = """
from bigbrain import Brain, Every, Flow, agent

@agent
def tick(turn, chat):
    print(f"fired for {turn.due:%S}", flush=True)

brain = Brain("alone")
brain.add_trigger(Flow(tick).named("up"))
brain.add_trigger(Every("* * * * * *") >> Flow(tick).named("tick"))
"""


@pytest.mark.slow
def test_a_brain_runs_without_http_until_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(ALONE)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "BIG_BRAIN_DATA": str(tmp_path / "data")}
    one = Launched([sys.executable, "-m", "bigbrain", "run", "alone"], cwd=tmp_path, env=env)
    one.until(r"`alone` acts on its own")
    for _ in range(3):
        one.until(r"fired for \d\d")
    one.process.send_signal(signal.SIGINT)
    said = one.rest()

    assert "stopping" in said
    assert one.process.returncode == 0
