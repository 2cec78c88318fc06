"""A trigger that is reached in a run: what is put off, until when, and with what it is to go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

import msgspec
from msgspec.structs import replace as replace_struct

from bigbrain.compiling import Deferral
from bigbrain.engine.records import Deferred
from bigbrain.engine.zones import zone_name
from bigbrain.errors import TriggerError
from bigbrain.messages import Message, Request
from bigbrain.run import Run
from bigbrain.triggers.seeds import LINEAGE, carried_by, carrying
from bigbrain.triggers.specs import DEEPEST, Endpoint, Recurring, Single, Startup, read_moment
from bigbrain.turns import Turn

ABOUT = 200
"""Characters of what was asked that a schedule shows."""


def put_off(work: Deferral, run: Run, conversation: Sequence[Message]) -> tuple[Deferred, ...]:
    """What a trigger puts off here; nothing when a function of the turn says that it is not to happen.

    Raises `TriggerError` for the ninth trigger of a lineage, and for a function that gives no time.
    """
    request = later(run.request, tuple(conversation), work.id)
    if isinstance(work.trigger, Endpoint):
        return (Deferred(work.id, work.id, work.flow, "webhook", msgspec.json.encode(request)),)
    # the same for each attempt of this step, another one for each run that comes here
    place = sha256(f"{run.id}\0{run.path}".encode()).hexdigest()[:12]
    if isinstance(work.trigger, Single) and callable(work.trigger.when):
        turn = Turn(tuple(conversation), run=run, answer=None, last=False)
        at = work.trigger.when(turn)
        if at is None:
            return ()
        work = replace(work, trigger=replace(work.trigger, when=at))
    try:
        return (record(work, request, f"{work.id}:{place}"),)
    except ValueError as exc:
        raise TriggerError(f"trigger `{work.id}`: {exc}") from exc


def record(work: Deferral, request: Request, id: str) -> Deferred:
    """The record of what a trigger of a time starts. Raises `ValueError` when it says no time."""
    asked = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
    made = Deferred(id, work.id, work.flow, "boot", msgspec.json.encode(request), about=asked[:ABOUT])
    match work.trigger:
        case Recurring() as trigger:
            return replace_struct(
                made,
                kind="every",
                cron=trigger.expression,
                tz=zone_name(trigger.tz),
                catch_up=trigger.catch_up,
                overlap=trigger.overlapping,
            )
        case Single(when=when, tz=tz) if not callable(when):
            at = read_moment(when, tz)
            if isinstance(at, timedelta):
                return replace_struct(made, kind="once", after=_ms(at.total_seconds()))
            return replace_struct(made, kind="once", at=_ms(at.timestamp()))
        case Startup():
            return made
        case _:
            raise ValueError(f"`{work.id}` has no time of its own")


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
    return carrying(replace_struct(request, messages=said, stream=False), {LINEAGE: lineage})


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
