"""What a trigger is: the values behind `Every`, `Once`, `Webhook` and a chain that runs when the brain comes up.

Nothing here is checked when it is made: a brain reports all faults of its wiring at once, so each
trigger tells its own with `faults`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Literal, TypeAlias, assert_never, get_args

from bigbrain.engine.cron import Cron, CronFault
from bigbrain.engine.zones import first_real, zone, zone_fault, zone_name
from bigbrain.errors import WiringError
from bigbrain.turns import Turn
from bigbrain.webhooks.verifiers import Verifier, verifier_of

CatchUp: TypeAlias = Literal["latest", "all", "none"]
"""Which of the instants that passed while nobody could fire are made up for."""

Overlap: TypeAlias = Literal["skip", "queue", "allow"]
"""What becomes of a firing while an earlier one of the same schedule is under way."""

Moment: TypeAlias = datetime | str | timedelta | float
"""A point in time, ISO 8601 text, or a span from now (a number: seconds)."""

When: TypeAlias = Moment | Callable[[Turn], Moment | None]
"""When something is to happen; a function of the turn may also say that it is not to."""

RETRIES = 3
"""How often a failed step of a triggered flow is run again by default."""

DEEPEST = 8
"""How many triggers may have led to one another; what reaches one more fails."""

_ID = re.compile(r"[A-Za-z0-9_:-](?:\.?[A-Za-z0-9_:-])*")
LONGEST_ID = 80


def is_trigger_id(text: str) -> bool:
    """Whether the ids of runs may begin with this one: letters, digits, `_`, `:`, `-` and single dots between them.

    `dead` is taken: it is what failed firings are listed under.
    """
    return len(text) <= LONGEST_ID and _ID.fullmatch(text) is not None and text != "dead"


@dataclass(frozen=True, kw_only=True)
class Recurring:
    """Fires at the instants of a cron expression; see `Every`."""

    expression: str
    tz: str | tzinfo
    id: str
    catch_up: CatchUp
    overlap: Overlap | None
    retries: int

    kind = "every"

    def faults(self) -> Iterator[str]:
        """What is wrong with it, a sentence each with the remedy."""
        yield from _retries_faults(self.retries)
        if self.catch_up not in get_args(CatchUp):
            yield f"`catch_up` is `{self.catch_up}`; give one of {', '.join(get_args(CatchUp))}"
        if self.overlap is not None and self.overlap not in get_args(Overlap):
            yield f"`overlap` is `{self.overlap}`; give one of {', '.join(get_args(Overlap))}"
        fault = zone_fault(self.tz)
        if fault:
            yield fault
            return
        try:
            self.cron()
        except CronFault as exc:
            yield f"the cron expression `{self.expression}` can never come to pass: {exc}"

    def cron(self) -> Cron:
        """Its instants. Raises `CronFault` when there are none."""
        return Cron(self.expression, zone(self.tz))

    @property
    def overlapping(self) -> Overlap:
        """What becomes of firings that overlap: those that are all to be made up for wait, others are left out."""
        return self.overlap or ("queue" if self.catch_up == "all" else "skip")


@dataclass(frozen=True, kw_only=True)
class Single:
    """Fires a single time; see `Once`."""

    when: When
    tz: str | tzinfo
    id: str
    retries: int

    kind = "once"

    def faults(self) -> Iterator[str]:
        """What is wrong with it, a sentence each with the remedy."""
        yield from _retries_faults(self.retries)
        fault = zone_fault(self.tz)
        if fault:
            yield fault
        elif not callable(self.when):
            try:
                read_moment(self.when, self.tz)
            except ValueError as exc:
                yield str(exc)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Fires for each call of `POST /v1/hooks/{id}`; see `Webhook`."""

    id: str
    verify: object = None
    unsigned: bool = False
    retries: int = RETRIES

    kind = "webhook"

    def faults(self) -> Iterator[str]:
        """What is wrong with it, a sentence each with the remedy."""
        yield from _retries_faults(self.retries)
        if self.verify is None and not self.unsigned:
            yield "nothing checks who calls it: give it `verify=…`, or say `unsigned=True` if anybody may"
        if self.verify is not None and self.unsigned:
            yield "it has both `verify` and `unsigned=True`: give one of them"
        elif self.verify is not None:
            try:
                verifier_of(self.verify)
            except WiringError as exc:
                yield from exc.faults

    @property
    def verifier(self) -> Verifier | None:
        """Who checks a call; None when anybody may call. Raises `WiringError` for what cannot check any."""
        return None if self.verify is None else verifier_of(self.verify)


@dataclass(frozen=True, kw_only=True)
class Startup:
    """Fires when the brain comes up: a chain that was added without a trigger at its head."""

    id: str = ""
    retries: int = RETRIES

    kind = "boot"

    def faults(self) -> Iterator[str]:
        """Nothing can be wrong with it."""
        return iter(())


Trigger: TypeAlias = Recurring | Single | Endpoint | Startup


def set_off_by(trigger: Trigger) -> str:
    """When a trigger fires, in words."""
    match trigger:
        case Recurring():
            return f"every `{trigger.expression}` in {zone_name(trigger.tz)}"
        case Single(when=when):
            return "once, when a function of the turn says" if callable(when) else f"once, {_said(when)}"
        case Endpoint():
            return f"at each call of /v1/hooks/{trigger.id}"
        case Startup():
            return "when the brain comes up"
        case _:
            assert_never(trigger)


def _said(moment: Moment) -> str:
    if isinstance(moment, timedelta):
        return f"{moment} later"
    return f"at {moment}"


def read_moment(moment: Moment, tz: str | tzinfo) -> datetime | timedelta:
    """A point in time with its zone, or a span from now. Raises `ValueError` for anything else.

    tz: the zone of a point in time that names none. Of a time of day that comes twice, where clocks are set back, the
    first is meant; instead of one that is left out the first moment after the gap is.
    """
    match moment:
        case timedelta():
            return moment
        case datetime():
            at = moment
        case str():
            try:
                at = datetime.fromisoformat(moment)
            except ValueError:
                raise ValueError(
                    f"`{moment}` is no time; write `2026-07-01T09:00`, with or without an offset"
                ) from None
        case int() | float() if not isinstance(moment, bool):
            return timedelta(seconds=moment)
        case _:
            raise ValueError(
                f"`{moment!r}` is no time; give a datetime, a text such as `2026-07-01T09:00`, or a timedelta"
            )
    return at if at.tzinfo is not None else first_real(at.replace(tzinfo=zone(tz)))


def _retries_faults(retries: int) -> Iterator[str]:
    if retries < 0:
        yield f"`retries` is {retries}; give 0 or more"
