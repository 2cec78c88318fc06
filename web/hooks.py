"""`POST /v1/hooks/{id}`: somebody outside calls, and a run begins.

The raw bytes are verified before anything in them is looked at. A call whose run comes
to a `respond` is answered 200 with what that delivers; any other is answered 202 with the
run's id: at once when none can be reached, else as soon as that is certain. The run is on
record before its sender is answered, so it waits in Redis while no worker lives; it goes
on when its sender leaves.
"""

from __future__ import annotations

import logging
import time

import msgspec
from flask import Blueprint, Response, jsonify, request
from werkzeug.exceptions import UnsupportedMediaType

from bigbrain.calls import Calls, Hook
from bigbrain.engine.records import NewRun
from bigbrain.errors import RunCancelled, Unauthorized
from bigbrain.events import Event, Failed, collect
from bigbrain.identity import bare
from bigbrain.initiative import own_scope
from bigbrain.metrics import Meters
from bigbrain.reception import How, Reception
from bigbrain.settings import Settings
from bigbrain.states import RunState
from bigbrain.trace import Trail
from bigbrain.webhooks.deliveries import Delivery, Proof, flattened
from web import arrivals
from web.bodies import read_raw
from web.departures import Client
from web.failures import write_failure
from web.keys import Keys
from web.metrics import Exchange
from web.relay import Relay
from web.visits import Visits

logger = logging.getLogger(__name__)

LONGEST_WAIT = 55.0
"""Seconds that a sender waits for an answer before it is told where the run is: proxies cut a silent connection after 60."""


class Hooks:
    """Answers the calls of one brain's webhooks."""

    def __init__(
        self,
        reception: Reception,
        visits: Visits,
        settings: Settings,
        meters: Meters,
        keys: Keys | None,
        longest: float,
    ) -> None:
        """keys: of which a call must have one where nothing is signed; None when the deployment has none.

        longest: seconds that a sender may wait for an answer.
        """
        self._reception = reception
        self._calls = Calls(reception.program, reception.hub.store.client, own_scope(settings))
        self._visits = visits
        self._limits = settings.limits
        self._meters = meters
        self._keys = keys
        self._longest = longest

    def answer(self, id: str) -> Response:
        """The answer to the current request, a call of the endpoint `id`."""
        with Exchange(self._meters, "webhook", arrivals.accepted()) as exchange:
            hook = self._calls.find(id)
            delivery = self._read()
            now = time.time()
            run = self._calls.run(hook, delivery, self._prove(hook, delivery, now), now)
            arrivals.call(bare(run.id))
            if hook.replies:
                return self._wait(run, now, exchange)
            how, _ = self._reception.begin(run)
            self._tell(run, now, how)
            return _write_accepted(run)

    def _read(self) -> Delivery:
        coding = request.headers.get("Content-Encoding", "identity").strip().lower()
        if coding != "identity":
            raise UnsupportedMediaType(f"the body is encoded as `{coding[:100]}`; send it without `Content-Encoding`")
        body = read_raw(request, self._limits.max_body)
        return Delivery(body, flattened(request.headers), request.remote_addr or "")

    def _prove(self, hook: Hook, delivery: Delivery, now: float) -> Proof:
        if hook.verifier is not None:
            return hook.verifier.prove(delivery, now)
        if self._keys is not None and self._keys.admitted(request.headers) is None:
            raise Unauthorized("calls of this webhook are not signed, so they need an API key of this deployment")
        return Proof(arrivals.identity().id if arrivals.named() else "")

    def _wait(self, run: NewRun, now: float, exchange: Exchange) -> Response:
        client, until = Client(), time.monotonic() + self._longest
        with (
            self._visits.watch(client),
            self._reception.follow(run) as begun,
        ):
            self._tell(run, now, begun.how)
            if begun.how == "past":
                return _write_accepted(run)
            events: list[Event] = [begun.started]
            # a silence ends in time to tell the sender where its run is
            relay = Relay(begun.follower, client, self._longest, exchange.saw)
            while not relay.over and time.monotonic() < until:
                events += relay.read()
                if relay.left:
                    exchange.left()
                    return write_failure(Failed.of(RunCancelled()))
        if not relay.over:
            return _write_accepted(run)
        failed = events[-1]
        if isinstance(failed, Failed):
            logger.error("run %s: the webhook's run failed: %s", run.id, failed.code)
            return write_failure(failed)
        return self._write(run, events)

    def _write(self, run: NewRun, events: list[Event]) -> Response:
        """The answer of a run: what its stages delivered, or that it goes on without an answer."""
        record = self._reception.runs.store.record(run.id)
        if record is None or not msgspec.convert(record.state, RunState).responded:
            return _write_accepted(run)
        text = collect(events).text
        if request.accept_mimetypes.best_match(["text/plain", "application/json"]) == "application/json":
            return jsonify(id=bare(run.id), object="run", text=text)
        return Response(text, content_type="text/plain; charset=utf-8")

    def _tell(self, run: NewRun, now: float, how: How) -> None:
        if how == "started":
            trail = Trail(self._reception.program.tracers, run=run.id, flow=run.flow)
            # a worker may have begun by now, and nothing of a run comes before its start
            trail.tell_of(now, "run.start", model="", stream=False)


def routes(hooks: Hooks) -> Blueprint:
    """`/v1/hooks/{id}`; an id is one segment of the path."""
    blueprint = Blueprint("hooks", __name__)

    @blueprint.post("/v1/hooks/<id>")
    def hook(id: str) -> Response:
        return hooks.answer(id)

    return blueprint


def _write_accepted(run: NewRun) -> Response:
    response = jsonify(id=bare(run.id), object="run", status="accepted")
    response.status_code = 202
    return response
