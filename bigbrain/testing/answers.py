"""What a client in a test gets: the whole answer, with how it came, or its failure."""

from __future__ import annotations

from dataclasses import dataclass

from bigbrain.events import Delta, Event, Failed, Opened, collect
from bigbrain.messages import Response, Stop, Text, ToolCall, Usage


@dataclass(frozen=True)
class Answer:
    """One answer as a client got it; `events` are in legal order, from `Started` on."""

    run_id: str
    events: tuple[Event, ...]

    @property
    def response(self) -> Response:
        """The answer as one value; of one that failed, what came before."""
        return collect(self.events)

    @property
    def text(self) -> str:
        """The whole text, all stages of it."""
        return self.response.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls that the client is to carry out."""
        return self.response.calls

    @property
    def stop(self) -> Stop | None:
        """Why the answer ended; None when it failed."""
        return self.response.stop

    @property
    def usage(self) -> Usage:
        """The tokens of all model calls that the answer took."""
        return self.response.usage

    @property
    def deltas(self) -> tuple[str, ...]:
        """The pieces of the text as they came; pieces that pile up on their way come as one, so how many there are is chance."""
        texts = {event.index for event in self.events if isinstance(event, Opened) and isinstance(event.part, Text)}
        return tuple(event.text for event in self.events if isinstance(event, Delta) and event.index in texts)

    @property
    def failed(self) -> Failed | None:
        """How the answer failed, if it did."""
        last = self.events[-1]
        return last if isinstance(last, Failed) else None


class AnswerFailed(Exception):
    """Raised when a client gets a failure instead of an answer, or in the midst of one.

    `failed` is what the client is told; the message says as well what only the run's record knows.
    """

    def __init__(self, failed: Failed, answer: Answer, detail: str) -> None:
        """answer: what came before. detail: the brain's own words about it, which no client sees."""
        super().__init__(f"`{failed.code}` ({failed.status}): {failed.message} [{detail}]")
        self.failed = failed
        self.answer = answer

    @property
    def code(self) -> str:
        """The machine word for what went wrong."""
        return self.failed.code

    @property
    def status(self) -> int:
        """The HTTP status that it comes with."""
        return self.failed.status
