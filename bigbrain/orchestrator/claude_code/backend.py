"""The backend: a session of the CLI, asked with what it has not been told yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from uuid import UUID

from bigbrain.errors import BrainError, ModelRefused, WiringError
from bigbrain.messages import Text, Usage
from bigbrain.orchestrator.backends import Conversation, Said
from bigbrain.orchestrator.cancellation import limited
from bigbrain.orchestrator.claude_code.environment import environment, state_folder
from bigbrain.orchestrator.claude_code.failures import said, secret, silent
from bigbrain.orchestrator.claude_code.offers import Offers, offers
from bigbrain.orchestrator.claude_code.process import Command, Process
from bigbrain.orchestrator.claude_code.reading import Reading
from bigbrain.orchestrator.claude_code.sessions import Session, empty_folder, hold
from bigbrain.scope import Scope


@dataclass(frozen=True)
class ClaudeCode:
    """A session of the local Claude Code CLI, which answers as a model and can do nothing else.

    The CLI keeps the conversation, so a second task on the same session knows the first, in whatever process it runs.
    Raises `WiringError` when a value cannot be meant.
    """

    session_id: str
    """A UUID; a session that is not there yet is begun with it."""
    cli_path: str = "claude"
    """The program: a name to be found on `PATH`, or a path."""
    _: KW_ONLY
    model: str | None = None
    """As the CLI spells it; None: the CLI's own choice."""
    api_key: str | None = field(default=None, repr=False)
    """A key for Anthropic; None: the CLI's own login. No key is taken from our environment."""
    server_url: str | None = None
    """Base URL of an Anthropic-compatible server, without its `/v1`; None: Anthropic itself."""
    max_tokens: int | None = None
    """Tokens of one message at most; the CLI continues an answer that is longer."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Further variables for the CLI, such as those of a cloud that serves the model."""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "session_id", str(UUID(self.session_id)))
        except (ValueError, AttributeError, TypeError) as exc:
            raise WiringError(
                f"`session_id` is {self.session_id!r}; the Claude Code backend needs a UUID, such as `str(uuid.uuid4())`"
            ) from exc
        if not self.cli_path:
            raise WiringError("`cli_path` is empty; name the Claude Code CLI, such as `claude`")

    @property
    def name(self) -> str:
        """What traces call it."""
        return self.model or "claude-code"

    def ask(
        self,
        conversation: Conversation,
        *,
        told: Callable[[str], None],
        spent: Callable[[Usage], None],
        scope: Scope,
        deadline: float,
    ) -> Said:
        """See `Backend.ask`. Calls on one session wait for each other; what waits longest is not always next."""
        env = environment(api_key=self.api_key, server_url=self.server_url, max_tokens=self.max_tokens, more=self.env)
        state = state_folder(env)
        try:
            with limited(scope, deadline) as own:
                cwd = empty_folder(state)
                cli = offers(self.cli_path, env, cwd, own)
                with hold(state, self.session_id, own) as session:
                    return _Call(self, cli, env, cwd, session, own).said(conversation, told, spent)
        except BrainError as error:
            secret(error, self.api_key)
            raise


@dataclass(frozen=True)
class _Call:
    """One call of the CLI, by somebody who holds the session."""

    asked: ClaudeCode
    cli: Offers
    env: Mapping[str, str]
    cwd: Path
    session: Session
    scope: Scope

    def said(self, conversation: Conversation, told: Callable[[str], None], spent: Callable[[Usage], None]) -> Said:
        """The reply. Whether the session is there only the CLI knows for sure, so what it refuses is tried the other way."""
        ways = ("--resume", "--session-id") if self.session.known else ("--session-id", "--resume")
        runs = (self._run(way, conversation, told, spent) for way in ways)
        first = next(runs)
        run = first if first.reading.begun else next(runs)
        return (run if run.reading.begun else first).said()

    def _run(
        self, way: str, conversation: Conversation, told: Callable[[str], None], spent: Callable[[Usage], None]
    ) -> _Run:
        reading = Reading(told)
        session = (way, self.asked.session_id)
        arguments = self.cli.arguments(
            session=session, instructions=self.session.instructions(conversation.system), model=self.asked.model
        )
        text = prompt(conversation)
        try:
            with self.scope.guard(), self.session.scratch() as scratch:
                env = {**self.env, "TMPDIR": str(scratch)}
                command = Command(arguments, env, self.cwd, text, holds=(self.session.lock,))
                with Process(command) as process, self.scope.guard(process.stop):
                    self._read(process, reading)
            self.scope.check()
        finally:
            if reading.begun:
                spent(reading.usage)
        return _Run(reading, process.status, process.complaint, stopped=process.stopped)

    def _read(self, process: Process, reading: Reading) -> None:
        for line in process.lines():
            reading.line(line)
            if reading.begun:
                self.session.remember()
            if reading.result is not None:
                return


@dataclass(frozen=True)
class _Run:
    """What came of one run of the CLI."""

    reading: Reading
    status: int | None
    complaint: str
    stopped: bool

    def said(self) -> Said:
        """The reply. Raises `ModelError` when it is none."""
        result = self.reading.result
        if result is not None and result.get("is_error"):
            raise said(result, self.reading.fault)
        # One that had said its last word and then had to be stopped has answered nevertheless.
        if result is None or (self.status != 0 and not self.stopped):
            raise silent(self.status, self.complaint)
        return Said(self.reading.text, self.reading.stop)


def prompt(conversation: Conversation) -> str:
    """What the CLI is told: all that it has not heard yet in this task, for the rest it remembers itself.

    Raises `ModelRefused` when that is more than text.
    """
    parts = [part for message in conversation.fresh for part in message.parts]
    if others := sorted({type(part).__name__.lower() for part in parts if not isinstance(part, Text)}):
        raise ModelRefused(
            f"Claude Code is told text only, and the prompt has a part of the kind `{'`, `'.join(others)}`"
        )
    text = "\n\n".join(message.text for message in conversation.fresh)
    # The CLI takes a prompt that begins with a stroke for one of its own commands.
    return f"Message:\n{text}" if text.lstrip().startswith("/") else text
