"""The seam between a brain and whatever answers for a model."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Protocol

from bigbrain.events import Event, Opened, Started
from bigbrain.messages import Request
from bigbrain.scope import Scope


class Asks(Protocol):
    """Something that can be asked."""

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        """Ask, and give the answer's events in legal order as they come, `Finished` last.

        request: the conversation, tools and shape of the answer; its knobs do not count.
        scope: whoever cancels it ends the call within milliseconds.
        The call is made when the first event is asked for, and is retried only as long as
        nothing of its answer was given. Closing the generator ends the call at once.

        Raises `ModelError`, never gives `Failed`; and the scope's error once it is cancelled.
        """


def settled(events: Iterator[Event]) -> Iterator[Event]:
    """The same events; those that only announce an answer come together with the first that brings some of it."""
    held: list[Event] = []
    for event in events:
        if isinstance(event, (Started, Opened)) and len(held) < 2:
            held.append(event)
            continue
        yield from held
        yield event
        yield from events
        return
