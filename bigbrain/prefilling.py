"""Has a model go on with an answer that it is given the beginning of (prefill).

The beginning goes to the model as the last message, as its own; its answer begins after it. What comes out is the
whole answer, beginning and all, so that whoever reads it cannot tell how it came about.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

from msgspec.structs import replace

from bigbrain.events import Closed, Delta, Event, Finished, Opened
from bigbrain.messages import Request, Text, assistant
from bigbrain.models.asks import Asks
from bigbrain.models.connection import Connection
from bigbrain.scope import Scope


class Prefilled:
    """A model, asked for the rest of an answer; gives all of it."""

    def __init__(self, model: Connection, beginning: str) -> None:
        # a provider may refuse white space at the end, and a model seldom goes on well after it
        self._beginning = beginning.rstrip()
        wanted = model.model.prefill
        further = {} if isinstance(wanted, bool) else wanted
        self._model = Connection(model.model.having(extra={**model.model.extra, **further}), model.at)
        self.model = model.model

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        """Asks the model; see `Asks.ask`."""
        longer = replace(request, messages=(*request.messages, assistant(self._beginning)))
        with closing(self._model.ask(longer, scope)) as rest:
            yield from self._whole(rest)

    def _whole(self, rest: Generator[Event]) -> Generator[Event]:
        shift, begun = 0, False
        for event in rest:
            if begun:
                yield _moved(event, shift)
                continue
            match event:
                case Opened(index, Text()):
                    begun = True
                    yield event
                    yield Delta(index, self._beginning)
                case Opened() | Finished():
                    # it goes on with a call, or with nothing
                    begun, shift = True, 1
                    yield from (Opened(0, Text()), Delta(0, self._beginning), Closed(0))
                    yield _moved(event, shift)
                case _:
                    yield event


def prefilled(model: Asks, request: Request, beginning: str) -> Asks:
    """Who is to be asked for an answer that begins so: the model itself where it cannot go on with one."""
    last = request.messages[-1].role if request.messages else ""
    if (
        not beginning.strip()
        or last == "assistant"
        or not isinstance(model, Connection)
        or model.model.prefill is False
    ):
        return model
    return Prefilled(model, beginning)


def _moved(event: Event, by: int) -> Event:
    return replace(event, index=event.index + by) if isinstance(event, Opened | Delta | Closed) else event
