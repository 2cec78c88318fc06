"""`/v1/runs`: the runs of a key, as their client sees them: listed, shown, followed, stopped, taken up again.

A key sees its own runs only; any other run is not there. Following gives the entries of a run's log,
each under its id, so whoever says which one it read last gets exactly the others, from any process, or hears that
its own is not there any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import get_args

import msgspec
from flask import Blueprint, Response, jsonify, request
from msgspec.structs import asdict, replace

from bigbrain.engine.channels import Entry
from bigbrain.engine.history import Page, Place
from bigbrain.engine.records import LogId, RunRecord, RunRow, Status
from bigbrain.errors import NotFound, WireError
from bigbrain.events import Event, Failed, Started
from bigbrain.identity import Identity, bare, is_run_id
from bigbrain.messages import JSON
from bigbrain.outline import Node, tree_of
from bigbrain.progress import Attempt, Fault, attempts_of, spent_of
from bigbrain.reception import Reception
from bigbrain.savepoints import BILL
from web.arrivals import scope
from web.departures import Client
from web.failures import write_failure
from web.relay import STREAM_HEADERS, Relay, Stream
from web.visits import Visits

PAGE = 20
LONGEST_PAGE = 100
STOPPED_WITHIN = 10.0
"""Seconds that a run may take to stop before whoever wants it stopped is told that it has not yet."""

ENTRY = re.compile(r"[0-9]{1,15}(-[0-9]{1,15})?")
"""The id of an event, or its first part, its number in the log."""

STILL_STOPPING = Failed(
    "run_stopping", "The run was asked to stop and has not ended yet; ask again.", status=504, retryable=True
)


def routes(reception: Reception, visits: Visits, heartbeat: float) -> Blueprint:
    """All routes of `/v1/runs`. heartbeat: seconds of silence after which a stream of events says that it lives."""
    blueprint = Blueprint("runs", __name__)
    runs = _Runs(reception)

    @blueprint.get("/v1/runs")
    def listed() -> Response:
        return jsonify(runs.page())

    @blueprint.get("/v1/runs/<run_id>")
    def shown(run_id: str) -> Response:
        return runs.write(runs.record(run_id))

    @blueprint.get("/v1/runs/<run_id>/events")
    def events(run_id: str) -> Response:
        record, after = runs.told(run_id), _read_after()
        if (record.answered or record.ended is not None) and runs.at_end(record, after):
            return Response(b"", headers=STREAM_HEADERS)
        client = Client()
        with ExitStack() as stack:
            stack.enter_context(visits.open(record.id, client))
            follower = stack.enter_context(reception.hub.follow(record.id, *after))
            follower.post("again")
            tail = Tail(Relay(follower, client, heartbeat))
            return Response(
                Stream(tail, Entries(), b"", stack.pop_all().close), headers=STREAM_HEADERS, direct_passthrough=True
            )

    @blueprint.post("/v1/runs/<run_id>/cancel")
    def cancelled(run_id: str) -> Response:
        key = runs.record(run_id).id
        reception.runs.store.stop(key)
        if not reception.history.wait_over(key, STOPPED_WITHIN):
            return write_failure(STILL_STOPPING)
        return runs.write(runs.record(run_id))

    @blueprint.post("/v1/runs/<run_id>/retry")
    def retried(run_id: str) -> Response:
        record = runs.record(run_id)
        if not reception.runs.retry(record.id):
            said = f"the run is {record.status}; only one that failed or was cancelled can be taken up again"
            return write_failure(Failed("run_not_failed", said, status=409))
        return runs.write(runs.record(run_id))

    return blueprint


class _Runs:
    """The runs of the current request's key."""

    def __init__(self, reception: Reception) -> None:
        self._reception = reception

    def record(self, run_id: str) -> RunRecord:
        """One run. Raises `NotFound` when the key has no such run."""
        found = self._found(Identity(run_id, scope()).key) if is_run_id(run_id) else None
        if found is None:
            raise NotFound(f"there is no run `{run_id[:128]}`; `/v1/runs` lists those there are", param="run_id")
        return found

    def _found(self, key: str) -> RunRecord | None:
        return self._reception.runs.store.record(key, BILL)

    def write(self, record: RunRecord) -> Response:
        """A run with all its attempts, and as a tree."""
        program, attempts = self._reception.program, attempts_of(record)
        known = program.fingerprint(record.flow) == record.plan if program.compiled(record.flow) else False
        compiled = program.compiled(record.flow) if known else None
        members = list(self._members(record, attempts))
        tree = tree_of(compiled, [*attempts, *members], over=record.ended is not None)
        return _write(record, attempts, tree)

    def _members(self, record: RunRecord, attempts: Sequence[Attempt]) -> Iterator[Attempt]:
        """The attempts of the runs that the members of spread groups are, as long as these are on record."""
        groups = {one.path: one.members for one in attempts if one.members}
        if record.spread:
            groups[record.cursor] = record.spread
        for path, count in groups.items():
            for number in range(count):
                member = self._found(f"{record.id}.{path}.{number}")
                if member is not None:
                    of_member = attempts_of(member)
                    yield from of_member
                    yield from self._members(member, of_member)

    def told(self, run_id: str) -> RunRecord:
        """One run whose client may read what it says. Raises `NotFound` when the key has no such run."""
        record = self.record(run_id)
        if self._reception.history.hidden(record.id):
            raise NotFound(f"what the run `{run_id[:128]}` says was not to be stored, or was deleted", param="run_id")
        return record

    def at_end(self, record: RunRecord, after: LogId) -> bool:
        """Whether nothing comes after that entry of a run whose answer is complete."""
        return after.seq >= record.seq and (not after.fence or self._reception.runs.store.holds(record.id, after))

    def page(self) -> dict[str, JSON]:
        """The page of the list that the query asks for."""
        status = request.args.get("status", "")
        if status and status not in get_args(Status):
            raise WireError(f"`status` must be one of {', '.join(get_args(Status))}", param="status")
        flow, limit, after = request.args.get("flow", ""), _read_limit(), _read_place()
        page = self._reception.history.page(scope(), status=status, flow=flow, limit=limit, after=after)
        return _write_page(page)


class Tail:
    """The entries of a run's log on their way to one client."""

    def __init__(self, relay: Relay) -> None:
        self.run_id = relay.run_id
        self._relay = relay

    @property
    def over(self) -> bool:
        """Whether the answer's last event was read."""
        return self._relay.over

    @property
    def left(self) -> bool:
        """Whether the client has gone."""
        return self._relay.left

    def read(self) -> Sequence[Entry]:
        """The entries that came next; none after a silence and when the client has left."""
        return self._relay.read_entries()


class Entries:
    """Writes entries of a log as server-sent events: the entry's `id`, its events as a JSON array in `data`."""

    heartbeat = b": keep-alive\n\n"

    def write(self, told: Iterable[Entry]) -> bytes:
        """The frames of these entries, as one chunk."""
        return b"".join(b"id: %b\ndata: %b\n\n" % (bytes(entry), _write_events(events)) for entry, events in told)

    def write_failed(self, failed: Failed) -> bytes:
        """A frame without an id: what it tells is not in the log."""
        return b"data: %b\n\n" % _write_events([failed])


def _write_events(events: Iterable[Event]) -> bytes:
    return msgspec.json.encode([{"type": type(event).__name__.lower(), **asdict(_public(event))} for event in events])


def _public(event: Event) -> Event:
    return replace(event, id=bare(event.id)) if isinstance(event, Started) else event


def _write(record: RunRecord, attempts: Sequence[Attempt], tree: Sequence[Node]) -> Response:
    error, spent = record.error, spent_of(attempts)
    return jsonify(
        id=bare(record.id),
        object="run",
        status=record.status,
        flow=record.flow,
        begun=record.begun,
        ended=record.ended,
        cursor=record.cursor,
        attempt=record.attempt,
        answered=record.answered,
        replayed=record.replayed,
        usage={**msgspec.to_builtins(spent.usage), "calls": spent.calls},
        steps=[_write_attempt(one) for one in attempts],
        tree=msgspec.to_builtins(tree),
        error=_shown(msgspec.convert(error, Fault)) if isinstance(error, dict) else None,
        last_event=record.seq,
    )


def _write_attempt(one: Attempt) -> dict[str, JSON]:
    return {**msgspec.to_builtins(one), "error": _shown(one.error) if one.error else None}


def _shown(fault: Fault) -> dict[str, JSON]:
    # its `detail` is for the author, and stays in the record
    return {"code": fault.code, "message": fault.message}


def _write_page(page: Page) -> dict[str, JSON]:
    after = page.after
    return {
        "object": "list",
        "data": [_write_row(row) for row in page.rows],
        "has_more": after is not None,
        "after": f"{after.begun}-{bare(after.id)}" if after else None,
    }


def _write_row(row: RunRow) -> dict[str, JSON]:
    return {"object": "run", **asdict(replace(row, id=bare(row.id)))}


def _read_limit() -> int:
    text = request.args.get("limit", str(PAGE))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= LONGEST_PAGE):
        raise WireError(f"`limit` must be a whole number from 1 to {LONGEST_PAGE}", param="limit")
    return int(text)


def _read_place() -> Place | None:
    text = request.args.get("after", "")
    if not text:
        return None
    begun, _, last = text.partition("-")
    if not (begun.isascii() and begun.isdigit() and len(begun) <= 15 and is_run_id(last)):
        raise WireError("`after` must be the `after` of the page before", param="after")
    return Place(int(begun), Identity(last, scope()).key)


def _read_after() -> LogId:
    """The last entry that the client has; the header counts, because a browser that reconnects repeats the address."""
    text = request.headers.get("Last-Event-ID") or request.args.get("after", "0")
    if not ENTRY.fullmatch(text):
        raise WireError("`Last-Event-ID`, or `after`, must be the `id` of an event of this run", param="after")
    return LogId.read(text.encode())
