"""A short storm; a long one is `python -m tests.chaos --blows 1000`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.clients import EXPECTED
from tests.chaos.storm import storm
from tests.stack.deployment import deployed
from tests.upstream import Upstream

pytestmark = pytest.mark.slow


def test_clients_get_their_answers_exactly_whatever_is_killed(tmp_path: Path) -> None:
    arguments = ("up", "tests.brains", "--port", "0", "--web", "2", "--workers", "2")
    with (
        Upstream() as upstream,
        deployed(*arguments, data=tmp_path, UPSTREAM=upstream.url, BIG_BRAIN_DRAIN="3") as stack,
    ):
        report = storm(stack, blows=8, clients=6, seed=4, forgetful=True)

    assert report.seen.wrong == [], (report.lines(), report.log)
    assert report.log == []
    assert set(report.seen.answers) == set(EXPECTED)
    assert report.blows.given.total() == 8
