"""One view for all protocols: a request becomes a run, its events become a document or a stream.

The HTTP status waits for the first event, so that what fails before it says anything
is a real error status that SDKs know how to retry. It does not wait for ever: a stream
whose brain thinks for `HEARTBEAT_EVERY` seconds begins all the same, and what fails
later is an error frame. An answer that is not streamed is `collect` of the same events;
it is sent when it is complete, and nothing before it, unless that takes long (`patient.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import msgspec
from flask import Response, request
from msgspec.structs import replace

from bigbrain.counting import Count
from bigbrain.errors import RunCancelled, WireError
from bigbrain.events import Delta, Event, Failed, Finished, Started, collect
from bigbrain.identity import Identity
from bigbrain.messages import JSON, Request
from bigbrain.metrics import Meters
from bigbrain.reception import Keeping, Reception
from bigbrain.retries import Mark, Retries, mark_of, patience_of
from bigbrain.settings import Limits
from bigbrain.trace import Tracer, Trail
from web.arrivals import accepted, adopt, identity, named, overhead_ms
from web.bodies import read_body
from web.departures import Client
from web.failures import write_failure
from web.metrics import Exchange
from web.patient import BEATS, Patient
from web.patient import HEADERS as PATIENT_HEADERS
from web.protocols import Protocol
from web.relay import HEARTBEAT_EVERY, STREAM_HEADERS, Frames, Relay, Stream
from web.visits import Visits

NAME_MAX = 200
"""Characters of a model's name that are traced: it is whatever the client wrote."""
BRIEF = 60.0
"""Seconds that an answer stays on record, unread, that its client does not want stored: for a request that comes again
because its answer was lost on the way."""
OVERHEAD = "X-Brain-Overhead-Ms"
"""Header: milliseconds from the request's arrival until its run was on its way to a worker, by the web process's clock."""


class Endpoints:
    """Answers requests of every protocol, with one brain behind."""

    def __init__(
        self,
        reception: Reception,
        limits: Limits,
        meters: Meters,
        *,
        tracers: Sequence[Tracer] = (),
        heartbeat: float = HEARTBEAT_EVERY,
        now: Callable[[], float] = time.time,
    ) -> None:
        """tracers: who hears that runs start. heartbeat: seconds of silence after which a stream says that it lives.

        now: seconds since 1970.
        """
        self.limits = limits
        self._meters = meters
        self._tracers = tracers
        self._heartbeat = heartbeat
        self._now = now
        self._reception = reception
        self._retries = Retries(reception.hub.store.client)
        self.visits = Visits(reception.hub.store, limits.max_streams)
        """The clients that follow runs here."""

    def answer(self, protocol: Protocol, read: Callable[[JSON], Request] | None = None) -> Response:
        """The answer to the current request, as its body asks for it: streamed, whole, or later.

        read: what makes a request of its body, when that is more than the dialect's part.
        """
        with ExitStack() as stack:
            exchange = stack.enter_context(Exchange(self._meters, protocol.name, accepted()))
            asked = _read(protocol, read_body(request, self.limits), read or protocol.dialect.read_request)
            exchange.stream = asked.stream
            if asked.max_tokens == 0:
                return self._warm_up(protocol, asked)
            started, relay = stack.enter_context(self._visit(protocol, asked, exchange))
            overhead = overhead_ms()
            first = replace(started, id=f"{protocol.prefix}{started.id}")
            if asked.stream:
                response = _stream(relay, Frames(protocol.dialect, asked), first, stack)
            elif protocol.in_background(asked):
                response = _write_document(protocol, [first], asked)
            else:
                response = self._document(relay, protocol, first, asked, stack)
            response.headers[OVERHEAD] = overhead
            return response

    def count(self, asked: Request) -> Count:
        """How many input tokens a request has."""
        return self._reception.program.count_tokens(self._reception.brain.route(asked.model), asked)

    def _warm_up(self, protocol: Protocol, asked: Request) -> Response:
        """The answer to a request for no token at all, with which clients of Anthropic fill its cache: a brain has none to fill."""
        id, model = f"{protocol.prefix}{identity().id}", self._reception.brain.route(asked.model)
        events: list[Event] = [Started(id, model, int(self._now())), Finished("length")]
        if asked.stream:
            return Response(Frames(protocol.dialect, asked).write(events), headers=STREAM_HEADERS)
        return _write_document(protocol, events, asked)

    @contextmanager
    def _visit(self, protocol: Protocol, asked: Request, exchange: Exchange) -> Iterator[tuple[Started, Relay]]:
        """The answer to the request, followed while the block runs: of a run of its own, or of one that it asks for again."""
        client, now = Client(), self._now()
        patience = 0.0 if named() else patience_of(lambda name: request.headers.get(name, ""))
        who, mark, again = self._identity(asked)
        keeping = self._keeping(protocol, asked)

        def saw(events: Sequence[Event]) -> None:
            exchange.saw(events)
            if events and isinstance(events[-1], Failed):
                self._retries.lost(who.key, who.scope, mark)

        try:
            with (
                self.visits.open(who.key, client, patience=patience),
                self._reception.receive(asked, who.key, now, scope=who.scope, again=again, keeping=keeping) as begun,
            ):
                if begun.how == "started":
                    trail = Trail(self._tracers, run=who.key, flow=self._reception.flow_of(asked))
                    # a worker may have begun by now, and nothing of a run comes before its start
                    trail.tell_of(now, "run.start", model=asked.model[:NAME_MAX], stream=asked.stream)
                relay = Relay(
                    begun.follower, client, self._heartbeat, saw, free=begun.how == "replayed", whole=not asked.stream
                )
                yield replace(begun.started, id=who.id), relay
        finally:
            if client.left:
                exchange.left()
                self._retries.lost(who.key, who.scope, mark)

    def _keeping(self, protocol: Protocol, asked: Request) -> Keeping:
        background = protocol.in_background(asked)
        match protocol.stored(asked):
            case None:
                return Keeping(background)
            case True:
                return Keeping(background, float(self.limits.stored_for))
            case False:
                return Keeping(background, BRIEF, hidden=True)

    def _identity(self, asked: Request) -> tuple[Identity, Mark | None, bool]:
        """Who the request's run is, what its retries would have in common with it, and whether it is one itself."""
        who = identity()
        if named():
            return who, None, False
        mark = mark_of(asked, self._reception.flow_of(asked), lambda name: request.headers.get(name, ""))
        earlier = self._retries.earlier(mark, who.scope, who.key)
        return (who, mark, False) if earlier is None else (adopt(earlier), mark, True)

    def _document(
        self, relay: Relay, protocol: Protocol, started: Started, asked: Request, stack: ExitStack
    ) -> Response:
        events: list[Event] = [started]
        until = time.monotonic() + BEATS * self._heartbeat
        while not relay.over:
            relay.gather(events)
            if relay.left:
                return _write_nobody()
            if time.monotonic() >= until and not relay.over:
                write = partial(_write, protocol, asked)
                body = Patient(relay, events, write, self._heartbeat, stack.pop_all().close)
                return Response(body, headers=PATIENT_HEADERS, direct_passthrough=True)
        last = events[-1]
        if isinstance(last, Failed):
            return write_failure(last)
        return _write_document(protocol, events, asked)


def _read(protocol: Protocol, body: dict[str, JSON], read: Callable[[JSON], Request]) -> Request:
    """The request in a body. Raises `WireError` when a field is missing or wrong."""
    asked = read(body)
    for name in protocol.required:
        if body.get(name) is None:
            raise WireError(f"`{name}` is missing; send it", param=name)
    return asked


def _stream(relay: Relay, frames: Frames, started: Started, stack: ExitStack) -> Response:
    events = relay.read()
    if relay.left:
        return _write_nobody()
    if (failed := _refusal(events)) is not None:
        return write_failure(failed)
    first = frames.write([started, *events]) if events else frames.write([started]) + frames.heartbeat
    body = Stream(relay, frames, first, stack.pop_all().close)
    # passed through as it is: Flask's own iterators would be called for every token
    return Response(body, headers=STREAM_HEADERS, direct_passthrough=True)


def _refusal(events: list[Event]) -> Failed | None:
    """The failure that these first events end with, if nothing was said before it."""
    last = events[-1] if events else None
    return last if isinstance(last, Failed) and not any(isinstance(event, Delta) for event in events) else None


def _write_document(protocol: Protocol, events: list[Event], asked: Request) -> Response:
    return Response(_write(protocol, asked, events), content_type="application/json")


def _write(protocol: Protocol, asked: Request, events: list[Event]) -> bytes:
    return msgspec.json.encode(protocol.dialect.write_response(collect(events), asked))


def _write_nobody() -> Response:
    """What a client that has left would be told: the server wants an answer, and its log shows this one."""
    return write_failure(Failed.of(RunCancelled()))
