"""A trigger that is reached in a run: what is put off, until when, and with what it is to go on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from bigbrain.compiling import Deferral
from bigbrain.engine.records import Deferred
from bigbrain.engine.zones import zone_name
from bigbrain.errors import TriggerError
from bigbrain.messages import Message, Request
from bigbrain.run import Run
from bigbrain.triggers.seeds import carried_by, carrying
from bigbrain.triggers.specs import DEEPEST, Endpoint, Recurring, Single, Startup, read_moment
from bigbrain.turns import Turn

LINEAGE = "lineage"
"""What the carried fields call the number of triggers that led to a run."""


def put_off(work: Deferral, run: Run, conversation: Sequence[Message]) -> tuple[Deferred, ...]:
    """What a trigger puts off here; nothing when a function of the turn says that it is not to happen.

    Raises `TriggerError` for the ninth trigger of a lineage, and for a function that gives no time.
    """
    request = later(run.request, tuple(conversation), work.id)
    trigger = work.trigger
    match trigger:
        case Recurring():
            made = _deferred(work, run, request, "every")
            return (
                replace(
                    made,
                    cron=trigger.expression,
                    tz=zone_name(trigger.tz),
                    catch_up=trigger.catch_up,
                    overlap=trigger.overlapping,
                ),
            )
        case Single():
            at = _moment(work, trigger, run, conversation)
            if at is None:
                return ()
            made = _deferred(work, run, request, "once")
            if isinstance(at, timedelta):
                return (replace(made, after=_ms(at.total_seconds())),)
            return (replace(made, at=_ms(at.timestamp())),)
        case Endpoint():
            return (_deferred(work, run, request, "webhook"),)
        case Startup():
            raise TypeError("no flow of a chain is a `Startup`")


def later(request: Request, said: tuple[Message, ...], trigger: str) -> Request:
    """The request of a run that goes on from here: what the client asked and may do, what was said, what is carried.

    Raises `TriggerError` when too many triggers have led to one another.
    """
    lineage = carried_by(request).get(LINEAGE, 0) + 1
    if lineage > DEEPEST:
        raise TriggerError(
            f"trigger `{trigger}` is the {lineage}th of a chain of triggers that led to one another, and {DEEPEST} are"
            " allowed; a recurring job is an `Every`, which does not count its firings"
        )
    return carrying(replace(request, messages=said, stream=False), {LINEAGE: lineage})


def _deferred(work: Deferral, run: Run, request: Request, kind: str) -> Deferred:
    # the same for each attempt of this step, another one for each run that comes here
    place = sha256(f"{run.id}\0{run.path}".encode()).hexdigest()[:12]
    return msgspec.convert(
        {
            "id": work.id if kind == "webhook" else f"{work.id}:{place}",
            "trigger": work.id,
            "flow": work.flow,
            "kind": kind,
            "request": msgspec.json.encode(request),
        },
        Deferred,
    )


def _moment(work: Deferral, trigger: Single, run: Run, conversation: Sequence[Message]) -> datetime | timedelta | None:
    when = trigger.when
    at = when(Turn(tuple(conversation), run=run, answer=None, last=False)) if callable(when) else when
    if at is None:
        return None
    try:
        return read_moment(at, trigger.tz)
    except ValueError as exc:
        raise TriggerError(f"trigger `{work.id}`: {exc}") from exc


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
