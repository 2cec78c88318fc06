"""The CLI's `stream-json`: one JSON object a line, read into the text of a reply, its cost, its failure.

What was measured of version 2.1.332: `system`/`init` comes once the session is there;
`stream_event` holds one event of the model's own stream; `assistant` a whole block of
a message that counts; `result` comes last. An answer that breaks off is asked for again:
its pieces are followed by another message, and never by an `assistant` of their own. An
answer that meets the token limit is continued in a further message, and then `result`
holds that last message alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from bigbrain.errors import ModelBroke
from bigbrain.jsonvalue import JSON
from bigbrain.messages import Stop, Usage
from bigbrain.orchestrator.claude_code.retelling import Retelling
from bigbrain.wire.anthropic_answers import WireUsage, read_stop, read_usage

SHOWN = 200
"""Bytes of an unreadable line that its error repeats."""


class Reading:
    """What one run of the CLI has written so far; `told` hears the text, each character once."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self.begun = False
        """Whether the session was taken up; if not, nothing was asked of the model."""
        self.result: dict[str, JSON] | None = None
        """The last word."""
        self.fault = ""
        """The CLI's name for what went wrong, such as `authentication_failed`; "" when it gave none."""
        self._text = Retelling(told)
        self._half = ""
        self._message: str | None = None
        self._drafted = 0
        self._settled = ""
        self._stop: str | None = None
        self._kept = 0
        self._spent = Usage()
        self._spending = Usage()

    def line(self, raw: bytes) -> None:
        """Read one more line.

        Raises `ModelBroke` when it is not a JSON object, and when the answer is written anew otherwise than before.
        """
        if not raw.strip():
            return
        event = _decoded(raw)
        if event.get("parent_tool_use_id"):
            return  # a sub-agent's; it has no tools to start one, so this is not ours in any case
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                self.begun = True
            case "stream_event":
                self.begun = True
                self._frame(_fields(event.get("event")))
            case "assistant":
                self.begun = True
                self._block(event, _fields(event.get("message")))
            case "result":
                self._finish(event)

    @property
    def text(self) -> str:
        """The reply, over all messages in which it was continued.

        Raises `ModelBroke` when more was told than the reply holds in the end.
        """
        if not self._text.complete:
            raise ModelBroke("Claude Code began its answer anew, and made it shorter than what had been passed on")
        return self._text.text

    @property
    def stop(self) -> Stop:
        """Why the reply ended."""
        result = self.result or {}
        return read_stop(result.get("stop_reason") or self._stop, owing=False)

    @property
    def usage(self) -> Usage:
        """What it cost so far: as the last word says, before that what the messages said."""
        total = _usage((self.result or {}).get("usage"), Usage())
        return total if total.total else self._spent + self._spending

    def _frame(self, frame: dict[str, JSON]) -> None:
        delta = _fields(frame.get("delta"))
        match frame.get("type"):
            case "message_start":
                message = _fields(frame.get("message"))
                self._begin(str(message.get("id")))
                self._spending = _usage(message.get("usage"), Usage())
            case "content_block_delta" if delta.get("type") == "text_delta":
                self._write(str(delta.get("text", "")))
            case "message_delta":
                self._stop = delta.get("stop_reason")
                self._spending = _usage(frame.get("usage"), self._spending)

    def _block(self, event: dict[str, JSON], message: dict[str, JSON]) -> None:
        if event.get("is_api_error_message") or isinstance(event.get("error"), str):
            self.fault = str(event.get("error") or "")
            return
        if message.get("id") != self._message:
            self._begin(str(message.get("id")))
        content = message.get("content")
        for block in map(_fields, content if isinstance(content, list) else []):
            if block.get("type") == "text":
                self._settled += str(block.get("text", ""))
        # Its pieces have been here already, unless the CLI cannot give pieces or did not stream this time.
        self._write(self._settled[self._drafted :])

    def _finish(self, result: dict[str, JSON]) -> None:
        self.result = result
        if self._message is None and not result.get("is_error"):
            self._write(str(result.get("result") or ""))

    def _begin(self, message: str) -> None:
        """A message begins: it continues the one before if that met the token limit, else it stands in its place."""
        if self._stop == "max_tokens":
            self._kept = self._text.length
        self._text.again(self._kept)
        self._message, self._stop, self._settled, self._drafted, self._half = message, None, "", 0, ""
        self._spent, self._spending = self._spent + self._spending, Usage()

    def _write(self, piece: str) -> None:
        piece = self._half + piece
        # JavaScript cuts its texts between the halves of a character; half a one is none to Python.
        self._half = piece[-1] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        piece = piece[: len(piece) - len(self._half)].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        self._drafted += len(piece)
        if piece:
            self._text.write(piece)


def _decoded(raw: bytes) -> dict[str, JSON]:
    try:
        event: JSON = json.loads(raw)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        shown = raw[:SHOWN].decode("utf-8", "replace")
        raise ModelBroke(f"Claude Code wrote a line that is no JSON object: {shown!r}")
    return event


def _fields(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {}


def _usage(value: JSON, before: Usage) -> Usage:
    try:
        return read_usage(msgspec.convert(value, WireUsage | None), before)
    except msgspec.ValidationError:
        return before
