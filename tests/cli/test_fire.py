"""`bigbrain fire`: any trigger by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bigbrain.cli import main

pytestmark = pytest.mark.slow

SOURCE = """
from bigbrain import Brain, Every, Flow, Turn, Webhook, agent

@agent
def door(turn, chat):
    who = turn.payload(dict)
    if who and who.get("visitor") == "nobody":
        raise ValueError("nobody is there")
    turn.reply(f"{who['visitor'] if who else 'Somebody'} is at the door, {turn.metadata(dict) or 'it seems'}.")

brain = Brain("doors")
brain.add_trigger(Every("0 7 * * *", retries=1) >> Flow(door).named("morning"), seed_payload={"visitor": "The sun"})
brain.add_trigger(Webhook("doorbell", unsigned=True, retries=0) >> Flow(door))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("doors", None)


def fire(here: Path, *args: str) -> Result:
    (here / "doors.py").write_text(SOURCE)
    return CliRunner().invoke(main, ["fire", "doors", *args], env={"BIG_BRAIN_DATA": str(here / "data")})


def test_a_schedule_is_fired_by_hand_with_its_own_payload(here: Path) -> None:
    result = fire(here, "morning")

    assert (result.exit_code, result.output) == (0, "The sun is at the door, it seems.\n")


def test_a_webhook_is_fired_with_a_payload_from_a_file(here: Path) -> None:
    (here / "sam.json").write_text('{"visitor": "Sam"}')

    result = fire(here, "doorbell", "--payload", f"@{here / 'sam.json'}", "--metadata", '{"sure": "0.93"}')

    assert (result.exit_code, result.output) == (0, "Sam is at the door, {'sure': '0.93'}.\n")


def test_a_body_that_fails_is_told_with_its_own_words_after_its_retries(here: Path) -> None:
    result = fire(here, "morning", "--payload", '{"visitor": "nobody"}')

    assert result.exit_code == 2
    assert "nobody is there" in result.output


def test_a_trigger_that_is_not_there_and_a_payload_that_is_no_json_are_told_with_the_remedy(here: Path) -> None:
    unknown, broken = fire(here, "evening"), fire(here, "morning", "--payload", "{")

    assert "no trigger `evening`; there are `morning`, `doorbell`" in unknown.output
    assert "`--payload` is no JSON" in broken.output
    assert (unknown.exit_code, broken.exit_code) == (2, 2)
