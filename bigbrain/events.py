"""The life of one answer as six events, with the one fold that turns them into a `Response`.

The legal order, which `LEGAL` states as a table and `checked` enforces:

    Started → ( Opened → Delta* → Closed )* → Finished
    and Failed in the place of any event, as the last one

Parts are opened one after the other with indices 0, 1, 2 … and at most one is
open. A part opens as it is known then (a call with its id and name, a thinking
part that is all signature) with an empty text; each `Delta` adds to that text;
`Closed` adds what the dialect said at the part's end. An answer that is not
streamed is `collect(events)`; one that is stored streams by `replay(response)`.
There is no other path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from bigbrain.errors import BrainError
from bigbrain.messages import (
    Audio,
    File,
    Growing,
    Image,
    Part,
    Response,
    Stop,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    Vendor,
)


class Started(msgspec.Struct, frozen=True, tag="s", array_like=True):
    """The answer begins; `created` in seconds since 1970."""

    id: str
    model: str
    created: int = 0
    usage: Usage = Usage()


class Opened(msgspec.Struct, frozen=True, tag="o", array_like=True):
    """A part begins, its text still empty (parts that do not grow come whole)."""

    index: int
    part: Part


class Delta(msgspec.Struct, frozen=True, tag="d", array_like=True):
    """More text of the open part: never empty."""

    index: int
    text: str


class Closed(msgspec.Struct, frozen=True, tag="c", array_like=True):
    """The open part is complete; `vendor` is merged into the part's."""

    index: int
    vendor: Vendor = {}


class Finished(msgspec.Struct, frozen=True, tag="f", array_like=True):
    """The answer is complete."""

    stop: Stop
    usage: Usage = Usage()
    stop_sequence: str | None = None
    vendor: Vendor = {}


class Failed(msgspec.Struct, frozen=True, tag="x", array_like=True):
    """The answer broke off; `message` is safe for a client, `retry_after` in seconds."""

    code: str
    message: str
    status: int = 500
    retryable: bool = False
    retry_after: float | None = None
    param: str | None = None

    @classmethod
    def of(cls, error: BrainError) -> Failed:
        """The failure as a client may see it."""
        return cls(error.code, error.public, error.status, error.retryable, error.retry_after, error.param)


Event: TypeAlias = Started | Opened | Delta | Closed | Finished | Failed

LEGAL: dict[str, frozenset[type]] = {
    "new": frozenset({Started, Failed}),
    "between": frozenset({Opened, Finished, Failed}),
    "inside": frozenset({Delta, Closed, Failed}),
    "over": frozenset(),
}
"""State → the events that may come."""

AFTER: dict[type, str] = {
    Started: "between",
    Opened: "inside",
    Delta: "inside",
    Closed: "between",
    Finished: "over",
    Failed: "over",
}
"""Event → the state it leads to."""


def checked(events: Iterable[Event]) -> Iterator[Event]:
    """The same events, in an order known to be legal.

    Raises `ValueError` when one comes that may not, when an index is out of
    step, or when they end without `Finished` or `Failed`.
    """
    state, index = "new", -1
    for event in events:
        if type(event) not in LEGAL[state]:
            raise ValueError(f"{event!r} may not come in state `{state}`")
        if isinstance(event, Opened):
            index += 1
        if isinstance(event, (Opened, Delta, Closed)) and event.index != index:
            raise ValueError(f"{event!r} should have index {index}")
        state = AFTER[type(event)]
        yield event
    if state != "over":
        raise ValueError(f"the events end in state `{state}`")


def grown(part: Part, text: str) -> Growing:
    """The part with more text.

    Raises `TypeError` for a part that does not grow.
    """
    match part:
        case Text() | Thinking():
            return replace(part, text=part.text + text)
        case ToolCall():
            return replace(part, arguments=part.arguments + text)
        case Image() | File() | Audio() | ToolResult():
            raise TypeError(f"{type(part).__name__} does not grow")
        case _:
            assert_never(part)


def fold(so_far: Response, event: Event) -> Response:
    """The answer after one more event; `Failed` leaves it as it was."""
    match event:
        case Started():
            return replace(so_far, id=event.id, model=event.model, created=event.created, usage=event.usage)
        case Opened():
            return replace(so_far, parts=(*so_far.parts, event.part))
        case Delta():
            return replace(so_far, parts=(*so_far.parts[:-1], grown(so_far.parts[-1], event.text)))
        case Closed():
            if not event.vendor:
                return so_far
            part = so_far.parts[-1]
            return replace(so_far, parts=(*so_far.parts[:-1], replace(part, vendor={**part.vendor, **event.vendor})))
        case Finished():
            return replace(
                so_far,
                stop=event.stop,
                usage=event.usage,
                stop_sequence=event.stop_sequence,
                vendor={**so_far.vendor, **event.vendor},
            )
        case Failed():
            return so_far
        case _:
            assert_never(event)


def collect(events: Iterable[Event]) -> Response:
    """One whole answer from its events."""
    so_far = Response()
    for event in events:
        so_far = fold(so_far, event)
    return so_far


def replay_part(index: int, part: Part) -> Iterator[Event]:
    """The events of one part that is known whole."""
    match part:
        case Text() | Thinking():
            yield Opened(index, replace(part, text=""))
            if part.text:
                yield Delta(index, part.text)
        case ToolCall():
            yield Opened(index, replace(part, arguments=""))
            if part.arguments:
                yield Delta(index, part.arguments)
        case Image() | File() | Audio() | ToolResult():
            yield Opened(index, part)
        case _:
            assert_never(part)
    yield Closed(index)


def replay(response: Response) -> Iterator[Event]:
    """The events of an answer that is known whole: `collect(replay(r)) == r` for every complete `r`."""
    yield Started(response.id, response.model, response.created)
    for index, part in enumerate(response.parts):
        yield from replay_part(index, part)
    yield Finished(response.stop or "end", response.usage, response.stop_sequence, response.vendor)


class Blocks:
    """Opens and closes parts for a reader whose wire has only flat deltas.

    `key` names what a delta belongs to (`"text"`, a call's id …); a new key closes the open part.
    """

    def __init__(self) -> None:
        self.index = -1
        self.key: object = None

    def at(self, key: object, part: Part) -> Iterator[Event]:
        """Makes the part of `key` the open one; nothing when it is already."""
        if key != self.key:
            yield from self.close()
            self.index += 1
            self.key = key
            yield Opened(self.index, part)

    def close(self, vendor: Vendor | None = None) -> Iterator[Event]:
        """Closes the open part, if any."""
        if self.key is not None:
            self.key = None
            yield Closed(self.index, vendor or {})


_events = msgspec.json.Decoder(list[Event])


def write_events(events: Iterable[Event]) -> bytes:
    """Events as one line of JSON, as the run's log keeps them (about 20 bytes beside a delta's text)."""
    return msgspec.json.encode(list(events))


def read_events(line: bytes | str) -> list[Event]:
    """The events of one line of a run's log."""
    return _events.decode(line)
