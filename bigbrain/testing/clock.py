"""A clock that a test sets."""

from __future__ import annotations

import threading
from datetime import datetime


class Clock:
    """The time, which passes only when a test says so; for any number of threads.

    >>> from datetime import UTC
    >>> clock = Clock(datetime(2026, 3, 1, tzinfo=UTC))
    >>> clock.advance(90)
    >>> clock.now() - datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    90.0
    """

    def __init__(self, start: datetime | float = 0.0) -> None:
        """start: a moment with its time zone, or seconds since 1970.

        Raises `ValueError` for a moment without a time zone: it would be another one on each machine.
        """
        self._lock = threading.Lock()
        self._now = _seconds(start)

    def now(self) -> float:
        """The time, in seconds since 1970."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Lets time pass; less than nothing sets the clock back, as happens to real ones."""
        with self._lock:
            self._now += seconds

    def set(self, moment: datetime | float) -> None:
        """Makes it another time. Raises `ValueError` for a moment without a time zone."""
        with self._lock:
            self._now = _seconds(moment)


def _seconds(moment: datetime | float) -> float:
    if not isinstance(moment, datetime):
        return float(moment)
    if moment.tzinfo is None:
        raise ValueError(f"`{moment}` has no time zone: give it one, such as `tzinfo=UTC`")
    return moment.timestamp()
