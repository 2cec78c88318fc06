"""Cron expressions: the instants that one names, by the rules of Debian's cron.

Five fields (minute, hour, day of month, month, day of week) or six (a second before them); `*`, lists, ranges,
steps, names of months and days, 0 and 7 for Sunday, `L` for the last day, `mon#2` for the second Monday;
`@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight` and `@hourly`.

* When both day fields are restricted, either may match; one that begins with `*` is not restricted, and both must.
* An expression whose minute or hour begins with `*` counts real time: where clocks are set back it goes on through the
  repeated hour, where they are set forward it has nothing in the hour that is left out.
* Any other one names times of day: in a repeated hour it fires the first time only, in a hour that is left out at
  the first moment after it.

The arithmetic is cronsim's; it gives times of day their rule only where there are five fields, so six get it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from itertools import takewhile

from cronsim import CronSim, CronSimError

from bigbrain.engine.zones import first_real

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class CronFault(ValueError):
    """Raised for an expression that is none, or that names no instant ever; says which field is wrong."""


class Cron:
    """The instants of one expression in one time zone; moments are seconds since 1970."""

    def __init__(self, expression: str, zone: tzinfo) -> None:
        """Raises `CronFault` when it is no expression, or can never come to pass."""
        self._zone = zone
        text = NICKNAMES.get(expression.strip().lower(), expression)
        fields = text.split()
        if len(fields) not in (5, 6):
            raise CronFault(
                f"it has {len(fields)} fields; give five (minute hour day month weekday), or six with seconds"
            )
        self._text = text
        # six fields that name times of day, which cronsim would count in real time
        starred = any(field.startswith("*") for field in fields[-5:-3])
        self._local = len(fields) == 6 and not starred
        try:
            next(CronSim(text, datetime(2000, 1, 1)))
        except CronSimError as exc:
            raise CronFault(str(exc)) from None
        except StopIteration:
            raise CronFault("no day fits it, ever") from None

    def after(self, moment: float) -> Iterator[float]:
        """The instants after `moment`, in order and without an end that anybody lives to see."""
        start = datetime.fromtimestamp(moment, self._zone)
        last = moment
        for found in CronSim(self._text, start.replace(tzinfo=None) if self._local else start):
            instant = (self._real(found) if self._local else found).timestamp()
            # within a repeated hour, a time of day may lie behind us already
            if instant > last:
                last = instant
                yield instant

    def between(self, first: float, last: float) -> Iterator[float]:
        """The instants after `first` up to and with `last`."""
        return takewhile(lambda instant: instant <= last, self.after(first))

    def _real(self, local: datetime) -> datetime:
        """A time of day as it comes to pass: the first of two, or the first moment after a gap that it lies in."""
        return first_real(local.replace(tzinfo=self._zone))
