"""A short soak; a long one is `python -m tests.soak --runs 10000`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.brains import EXPECTED
from tests.soak.soak import KEEP, WAITS, soak
from tests.stack.deployment import deployed

pytestmark = pytest.mark.slow


def test_runs_of_every_kind_are_right_and_leave_nothing_when_their_time_is_over(tmp_path: Path) -> None:
    arguments = ("up", "tests.soak.brains", "--port", "0", "--web", "2", "--workers", "1")
    with deployed(*arguments, data=tmp_path, BIG_BRAIN_KEEP=str(KEEP)) as stack:
        report = soak(stack, 300, whole=False)

    assert report.wrong == [], report.lines()
    assert set(report.answers) == {*EXPECTED, *WAITS}
    assert report.left == [], report.lines()
    assert report.clean, report.lines()
