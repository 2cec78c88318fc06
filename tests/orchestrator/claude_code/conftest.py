"""The fake CLI, and a check that no test leaves a process of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.orchestrator.claude_code.cli import Cli, installed


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions are remembered in the home that a test gives, not in that of the one who runs it."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("CLAUDE_CODE_OAUTH_TOKEN", raising=False)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake CLI; the same one for all tests, so that it is asked for its options once."""
    return installed(tmp_path_factory.mktemp("bin"))


@pytest.fixture
def cli(program: Path, tmp_path: Path) -> Iterator[Cli]:
    """The fake CLI with a home of this test's own; nothing of it runs any more when the test is over."""
    (tmp_path / "sessions").mkdir()
    one = Cli(str(program), tmp_path)
    yield one
    assert one.left() == []


@pytest.fixture
def old_cli(tmp_path: Path) -> Iterator[Cli]:
    """One that offers as little as a test writes into `help.json` in its home."""
    (tmp_path / "sessions").mkdir()
    one = Cli(str(installed(tmp_path)), tmp_path)
    yield one
    assert one.left() == []
