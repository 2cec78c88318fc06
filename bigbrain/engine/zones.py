"""Time zones: found by name, and what a local time means where clocks are set forward or back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def zone(tz: str | tzinfo) -> tzinfo:
    """A time zone by its name. Raises `ZoneInfoNotFoundError` or `ValueError` for one that is not known."""
    if isinstance(tz, str):
        return UTC if tz.upper() == "UTC" else ZoneInfo(tz)
    return tz


def zone_fault(tz: str | tzinfo) -> str:
    """What is wrong with a time zone, if anything."""
    try:
        zone(tz)
    # the standard library raises `IsADirectoryError` for `Europe`
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"there is no time zone `{tz}`; give a name such as `Europe/Berlin`, or `UTC`"
    return ""


def zone_name(tz: str | tzinfo) -> str:
    """The name of a time zone, for people."""
    return tz if isinstance(tz, str) else getattr(tz, "key", None) or str(tz)


def first_real(local: datetime) -> datetime:
    """A local time as it comes to pass: of two the first, instead of one that is left out the first moment after the gap."""
    first = local.replace(fold=0)
    if first.astimezone(UTC).astimezone(local.tzinfo).replace(tzinfo=None) == first.replace(tzinfo=None):
        return first
    before = first.astimezone(UTC).astimezone(local.tzinfo)
    gap = before.replace(tzinfo=None) - first.replace(tzinfo=None)
    # the offset before the gap, applied to its beginning
    return _end_of_gap(first, gap)


def _end_of_gap(inside: datetime, gap: timedelta) -> datetime:
    """The first moment after a gap in local time, `gap` long, in which `inside` lies."""
    low, high = inside.astimezone(UTC) - gap, inside.astimezone(UTC)
    zone = inside.tzinfo
    ahead = high.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        low, high = (low, middle) if middle.astimezone(zone).utcoffset() == ahead else (middle, high)
    return high.astimezone(zone).replace(microsecond=0)
