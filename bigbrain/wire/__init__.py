"""Codecs: canonical values ⇄ one dialect's JSON; pure, and ignorant of which end of the wire they serve.

Each dialect is a module with the names of `Dialect`. N dialects need N modules:
nothing is ever translated from one dialect to another but through the values of
`bigbrain.messages` and `bigbrain.events`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from bigbrain.errors import ModelError
from bigbrain.events import Event, Failed
from bigbrain.messages import JSON, Request, Response


class Frame(NamedTuple):
    """One server-sent event: its `event:` name ("" when it has none) and its data, undecoded."""

    event: str
    data: bytes


class Dialect(Protocol):
    """What a dialect's module offers."""

    NAME: str
    """The key of this dialect in `vendor` and `extra`."""

    def read_request(self, body: JSON) -> Request:
        """A decoded request body as a value in normal form.

        Raises `WireError` with `param` set when a field is missing, ill-typed or impossible.
        """

    def write_request(self, request: Request) -> dict[str, JSON]:
        """The body that asks a server of this dialect."""

    def read_response(self, document: JSON) -> Response:
        """A whole answer. Raises `ModelBroke` when it is none."""

    def write_response(self, response: Response, request: Request) -> dict[str, JSON]:
        """A whole answer as a document; `request` is the question it answers."""

    def read_events(self, frames: Iterable[Frame]) -> Iterator[Event]:
        """A streamed answer as events in legal order, `Finished` last.

        Raises `ModelError` when an error frame comes, and `ModelBroke` when the frames
        end before their terminal one or are not what the dialect allows.
        """

    def write_event(self, event: Event, so_far: Response, request: Request, sent: int = 0) -> Iterator[bytes]:
        """The frames that tell a client of this event; `so_far` is the answer with the event folded in.

        sent: how many frames the client has had of this answer, for a dialect that numbers them.
        """

    def write_heartbeat(self, so_far: Response, request: Request, sent: int) -> bytes:
        """Bytes that keep a silent stream alive without meaning anything; they do not count as a frame."""

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """The error that a server's refusal means; `headers` with lower-case names."""

    def write_error(self, failed: Failed, run_id: str) -> tuple[int, dict[str, str], dict[str, JSON]]:
        """An error before the first byte: HTTP status, headers beyond the usual, body."""
