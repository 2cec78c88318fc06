"""A short storm; a long one is `python -m tests.chaos --blows 1000`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.storm import EXPECTED, storm
from tests.stack.deployment import deployed
from tests.upstream import Upstream

pytestmark = pytest.mark.slow


def test_clients_get_their_answers_exactly_whatever_is_killed(tmp_path: Path) -> None:
    arguments = ("up", "tests.brains", "--port", "0", "--web", "2", "--workers", "2")
    with Upstream() as upstream, deployed(*arguments, data=tmp_path, UPSTREAM=upstream.url) as stack:
        report = storm(stack, blows=5, clients=6, seed=4)

    assert report.wrong == [], report.lines()
    assert set(report.answers) == set(EXPECTED)
    assert report.blows.total() == 5
