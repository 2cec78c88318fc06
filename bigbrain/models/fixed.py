"""A model that always gives the same answer, for demos and tests: no server, no key, no tokens spent."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import KW_ONLY, dataclass

from bigbrain.events import Delta, Event, Finished, Started, replay_part
from bigbrain.messages import Part, Request, Text, ToolCall
from bigbrain.scope import Scope

_WORDS = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")


@dataclass(frozen=True)
class FixedModel:
    """Answers with `text` and `calls`, or with `parts`; its usage is zero."""

    text: str = ""
    _: KW_ONLY
    calls: tuple[ToolCall, ...] = ()
    parts: tuple[Part, ...] = ()
    """The whole answer when it is more than a text and calls."""
    delay: float = 0.0
    """Seconds before each piece of text."""
    name: str = "fixed"

    @property
    def _parts(self) -> tuple[Part, ...]:
        return self.parts or (*((Text(self.text),) if self.text else ()), *self.calls)

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:  # noqa: ARG002 - the seam's signature
        """The fixed answer, a delta per word; `request` changes nothing."""
        scope.check()
        yield Started(f"fixed-{self.name}", self.name)
        for index, part in enumerate(self._parts):
            for event in replay_part(index, part):
                yield from self._pieces(event, scope)
        yield Finished("calls" if any(isinstance(part, ToolCall) for part in self._parts) else "end")

    def _pieces(self, event: Event, scope: Scope) -> Iterator[Event]:
        scope.check()
        if not isinstance(event, Delta):
            yield event
            return
        for word in _WORDS.findall(event.text):
            scope.wait(self.delay) if self.delay else scope.check()
            yield Delta(event.index, word)
