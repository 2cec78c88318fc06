"""The commands that end by themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bigbrain.cli import COMMANDS, main
from bigbrain.cli.versions import PACKAGES, own_version

ROOT = Path(__file__).parents[2]

BRAIN = """
from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.flows import Flow

@agent
def echo(turn, chat):
    turn.reply("You said: " + turn.last.text)

brain = Brain("parrot", Flow(echo))
empty = Brain("empty")
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    (tmp_path / "parrot_brain.py").write_text(BRAIN)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("parrot_brain", None)


def run(*words: str, **env: str) -> Result:
    return CliRunner().invoke(main, words, env=env)


def test_the_version_is_that_of_the_package() -> None:
    result = run("--version")

    assert result.output == f"bigbrain, version {own_version()}\n"
    assert own_version()[0].isdigit()


def test_help_names_every_command() -> None:
    result = run("--help")

    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.output for name in COMMANDS)


def test_an_unknown_command_is_told() -> None:
    result = run("fly")

    assert result.exit_code == 2
    assert "No such command 'fly'" in result.output


def test_python_m_bigbrain_is_the_same_command(here: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bigbrain", "--version"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert done.stdout == f"bigbrain, version {own_version()}\n"


def test_the_launcher_holds_no_sdk_and_no_server() -> None:
    heavy = {"openai", "anthropic", "flask", "celery", "gunicorn", "rich", "fakeredis"}
    code = f"import sys, bigbrain.cli.up; print(sorted({heavy} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert done.stdout == "[]\n", done.stderr


def test_check_prints_the_tree_of_a_brain_without_faults() -> None:
    result = run("check", "parrot_brain")

    assert result.exit_code == 0
    assert "agent echo" in result.output
    assert "✓ `parrot` has no faults" in result.output


def test_check_prints_every_fault() -> None:
    result = run("check", "parrot_brain:empty")

    assert result.exit_code == 1
    assert "✗ the brain has no flow" in result.output


def test_check_tells_what_keeps_a_brain_from_loading() -> None:
    result = run("check", "no_such_brain")

    assert result.exit_code == 1
    assert "✗ there is no module `no_such_brain`" in result.output


def test_check_can_be_read_by_programs() -> None:
    result = run("check", "parrot_brain", "--json")

    report = json.loads(result.output)
    assert report["name"] == "parrot"
    assert report["faults"] == []
    assert report["cpu"] is False


def test_check_takes_the_brain_of_the_environment() -> None:
    assert "agent echo" in run("check", BIG_BRAIN_APP="parrot_brain:brain").output


def test_a_bad_setting_is_one_message_and_exit_code_2() -> None:
    result = run("check", BIG_BRAIN_LOG="xml")

    assert result.exit_code == 2
    assert result.output == "Error: `BIG_BRAIN_LOG` is `xml`; write `text` or `json`\n"


@pytest.mark.parametrize("command", ["up", "serve"])
def test_without_keys_nobody_else_may_reach_the_brain(command: str) -> None:
    result = run(command, "parrot_brain", "--host", "0.0.0.0")

    assert result.exit_code == 2
    assert "set `BIG_BRAIN_KEYS`" in result.output


@pytest.mark.parametrize("command", ["up", "serve"])
def test_a_port_that_is_taken_is_told(command: str, taken_port: int) -> None:
    result = run(command, "parrot_brain", "--port", str(taken_port))

    assert result.exit_code == 2
    assert f"cannot listen on `127.0.0.1:{taken_port}`" in result.output


def test_doctor_shows_settings_without_secrets_and_every_version() -> None:
    result = run("doctor", BIG_BRAIN_API_KEY="canary-1", BIG_BRAIN_KEYS="canary-2,canary-3")

    assert result.exit_code == 0
    assert "canary" not in result.output
    assert "2 set" in result.output
    assert all(name in result.output for name in PACKAGES)


def test_doctor_says_that_redis_does_not_answer() -> None:
    result = run("doctor", BIG_BRAIN_REDIS_URL="redis://me:canary@127.0.0.1:1/0")

    assert result.exit_code == 1
    assert "does not answer" in result.output
    assert "canary" not in result.output


def test_doctor_knows_every_package_that_is_asked_for() -> None:
    setup = (ROOT / "setup.cfg").read_text()
    wanted = setup.partition("install_requires =")[2].partition("\n[")[0].split("\n")
    names = {line.split()[0].partition("[")[0] for line in wanted if line.strip()}

    assert names <= set(PACKAGES)


def test_new_writes_a_brain_that_has_no_faults(here: Path) -> None:
    result = run("new", "my-brain")
    assert result.exit_code == 0, result.output

    done = subprocess.run(
        [sys.executable, "-m", "bigbrain", "check", "brain"],
        cwd=here / "my-brain",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert "✓ `my-brain` has no faults" in done.stdout, done.stdout + done.stderr


def test_new_overwrites_nothing(here: Path) -> None:
    (here / "mine").mkdir()

    result = run("new", "mine")

    assert result.exit_code == 2
    assert "`mine` is here already" in result.output


@pytest.mark.parametrize("name", ["../up", "A", "1st", "", "a b", "-a"])
def test_new_wants_a_plain_name(name: str) -> None:
    result = run("new", "--", name)

    assert result.exit_code == 2
    assert "cannot name a brain" in result.output
