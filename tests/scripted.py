"""A model that says what a test told it to, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Generator

from bigbrain.events import Event, replay
from bigbrain.messages import Part, Request, Response, Stop, Text, Thinking, ToolCall, Usage
from bigbrain.scope import Scope

COST = Usage(10, 2)
"""What each answer costs."""


def call(name: str, arguments: str = "{}", id: str = "c1") -> ToolCall:
    return ToolCall(id, name, arguments)


def says(*parts: Part | str, stop: Stop | None = None, usage: Usage = COST) -> Response:
    """An answer of these parts; a string is a text."""
    whole = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    calls = any(isinstance(part, ToolCall) for part in whole)
    return Response(parts=whole, stop=stop or ("calls" if calls else "end"), usage=usage)


class Script:
    """Answers with one response after the other, the last one for ever."""

    def __init__(self, *responses: Response | str) -> None:
        self.responses = [says(one) if isinstance(one, str) else one for one in responses]
        self.requests: list[Request] = []
        self.told: list[Event] = []

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        scope.check()
        self.requests.append(request)
        response = self.responses[min(len(self.requests), len(self.responses)) - 1]
        for event in replay(response):
            self.told.append(event)
            yield event

    @property
    def results(self) -> list[tuple[str, str, bool]]:
        """The results in the newest request's last message: id, text, whether it is an error."""
        return [(one.call_id, one.text, one.is_error) for one in self.requests[-1].messages[-1].results]


__all__ = ["COST", "Script", "Thinking", "call", "says"]
