from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from bigbrain.testing import Clock


def test_time_passes_only_when_a_test_says_so() -> None:
    clock = Clock(100.0)
    assert clock.now() == 100.0

    clock.advance(2.5)
    assert clock.now() == 102.5

    clock.advance(-2.5)
    assert clock.now() == 100.0


def test_a_clock_is_set_to_a_moment_in_any_time_zone() -> None:
    clock = Clock()
    clock.set(datetime(2026, 7, 1, 21, tzinfo=ZoneInfo("Europe/Berlin")))

    assert clock.now() == datetime(2026, 7, 1, 19, tzinfo=UTC).timestamp()


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Clock(datetime(2026, 7, 1))
