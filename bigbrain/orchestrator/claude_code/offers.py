"""What an installed CLI offers, as its own `--help` says, and the command line of a call in those words."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bigbrain.orchestrator.claude_code.failures import unusable
from bigbrain.orchestrator.claude_code.process import Command, Process
from bigbrain.scope import Scope

NEEDED = ("--print", "--output-format", "--verbose", "--session-id", "--resume", "--system-prompt", "--tools")
CLOSING = ("--restricted", "--setting-sources")
"""One of these has to be there: they keep hooks, helpers and settings of the user out of the call."""

INSTALL = "install it (`npm install -g @anthropic-ai/claude-code`), or give its path as `cli_path`"

_OPTION = re.compile(r"^\s{1,8}(?:-\w, )?(--[a-z][a-z-]*)", re.MULTILINE)
_known: dict[tuple[str, int, int], Offers] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Offers:
    """A CLI at an absolute path, and its options."""

    path: str
    options: frozenset[str]

    def arguments(self, *, session: tuple[str, str], instructions: Path, model: str | None) -> tuple[str, ...]:
        """The command line of one call; `session` is `--session-id` or `--resume` and the id. The prompt is its input."""
        return tuple(self._arguments(session, instructions, model))

    def _arguments(self, session: tuple[str, str], instructions: Path, model: str | None) -> Iterator[str]:
        yield from (self.path, "--print", "--output-format", "stream-json", "--verbose")
        yield from session
        # A file, because everybody on this machine may read a command line, and one argument has 128 KiB at most.
        yield from ("--system-prompt-file", str(instructions))
        yield from ("--tools", "")
        yield from self._if_offered("--include-partial-messages")
        # Else a session keeps the instructions of its first call, whatever the agents are by now.
        yield from self._if_offered("--system-prompt-snapshot", "off")
        yield from self._if_offered("--restricted")
        if "--restricted" not in self.options:
            yield from self._if_offered("--setting-sources", "")
        yield from self._if_offered("--strict-mcp-config")
        yield from self._if_offered("--disable-slash-commands")
        if model:
            yield from ("--model", model)

    def _if_offered(self, option: str, *value: str) -> tuple[str, ...]:
        return (option, *value) if option in self.options else ()


def offers(cli: str, env: Mapping[str, str], cwd: Path, scope: Scope) -> Offers:
    """What the CLI named `cli` offers; it is asked once in the life of this process, and again when it was replaced.

    Raises `ModelBroke` when it is not there, or too old.
    """
    path = shutil.which(cli, path=env.get("PATH"))
    if path is None:
        raise unusable(f"there is no Claude Code CLI `{cli}`; {INSTALL}")
    path = str(Path(path).absolute())
    try:
        found = Path(path).stat()
    except OSError as error:
        raise unusable(f"`{path}` cannot be used: {error.strerror}; {INSTALL}") from error
    key = (os.path.realpath(path), found.st_mtime_ns, found.st_size)
    with _lock:
        known = _known.get(key)
    if known is None:
        known = Offers(path, _asked(path, env, cwd, scope))
        with _lock:
            _known[key] = known
    return known


def _asked(path: str, env: Mapping[str, str], cwd: Path, scope: Scope) -> frozenset[str]:
    with Process(Command((path, "--help"), env, cwd)) as process, scope.guard(process.stop):
        text = b"\n".join(process.lines()).decode("utf-8", "replace")
    scope.check()
    options = frozenset(_OPTION.findall(text))
    if process.status != 0:
        raise unusable(f"`{path} --help` ended with status {process.status}: {process.complaint or text[:500]}")
    missing = [option for option in NEEDED if option not in options]
    if not options.intersection(CLOSING):
        missing.append(" or ".join(CLOSING))
    if missing:
        raise unusable(f"`{path}` is too old, it does not offer `{'`, `'.join(missing)}`; update it (`claude update`)")
    return options
