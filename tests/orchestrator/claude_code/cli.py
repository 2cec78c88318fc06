"""The fake CLI in a home of its own, and a way to ask the backend that needs little writing."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bigbrain.messages import Message, Usage, assistant, user
from bigbrain.orchestrator.backends import Conversation, Said
from bigbrain.orchestrator.claude_code import ClaudeCode
from bigbrain.scope import Scope

SESSION = "11111111-1111-4111-8111-111111111111"
FAKE = Path(__file__).with_name("fake_cli.py")


@dataclass
class Cli:
    """An installed CLI: `path` is the program, `home` its user's home."""

    path: str
    home: Path

    def script(self, *replies: dict[str, Any]) -> None:
        (self.home / "script.json").write_text(json.dumps(replies))

    @property
    def calls(self) -> list[dict[str, Any]]:
        file = self.home / "calls.jsonl"
        text = file.read_text() if file.exists() else ""
        # The last line may be half written.
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def backend(self, session: str = SESSION, **options: Any) -> ClaudeCode:
        env = {"HOME": str(self.home), **options.pop("env", {})}
        return ClaudeCode(session, options.pop("cli_path", self.path), env=env, **options)

    def left(self) -> list[str]:
        """The processes that still run in this home; none of them is given time to end."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("HOME") == str(self.home) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline()))
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
        return found


def installed(folder: Path) -> Path:
    """The fake CLI as a program in a folder."""
    path = folder / "claude"
    path.write_text(f"#!{sys.executable} -IS\n{FAKE.read_text()}")
    path.chmod(0o755)
    return path


@dataclass
class Heard:
    """What came of one question."""

    pieces: list[str] = field(default_factory=list)
    spent: list[Usage] = field(default_factory=list)
    said: Said | None = None

    @property
    def text(self) -> str:
        assert self.said is not None
        return self.said.text


def conversation(*texts: str, system: str = "the instructions") -> Conversation:
    """A task: the prompt, then in turn the model's replies and what came of them."""
    task: list[Message] = [assistant(text) if index % 2 else user(text) for index, text in enumerate(texts)]
    return Conversation(system, (user("an earlier question"), assistant("an earlier answer")), tuple(task))


def ask(
    backend: ClaudeCode, *texts: str, system: str = "the instructions", scope: Scope | None = None, within: float = 30.0
) -> Heard:
    heard = Heard()
    heard.said = backend.ask(
        conversation(*(texts or ("hello",)), system=system),
        told=heard.pieces.append,
        spent=heard.spent.append,
        scope=scope or Scope(),
        deadline=time.monotonic() + within,
    )
    return heard


def until(true: Any, within: float = 20.0) -> bool:
    """Waits until `true()` is; False when it never was."""
    end = time.monotonic() + within
    while not (done := true()) and time.monotonic() < end:
        time.sleep(0.005)
    return bool(done)


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def gone(pid: int) -> bool:
    """Whether a process that was killed is dead; between its last open file and its death there is a moment."""
    return until(lambda: not alive(pid), 20.0)
