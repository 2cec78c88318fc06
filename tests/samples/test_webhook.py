"""The sample of webhooks, called by the sender that it brings."""

from __future__ import annotations

import logging
import urllib.error
from collections.abc import Callable
from importlib import import_module

import pytest

from tests.web.site import listening, serving

sample = import_module("samples.webhook")
call: Callable[..., tuple[int, str]] = sample.call


def test_a_ring_is_answered_and_a_parcel_noted(caplog: pytest.LogCaptureFixture) -> None:
    with serving(sample.brain) as site, listening(site.app) as url:
        ring = call(f"{url}/v1/hooks/doorbell", {"visitor": "Sam"})
        status, accepted = call(f"{url}/v1/hooks/parcel", {"for": "Ann"})
        site.record(site.house.reception.history.page("open", limit=1).rows[0].id.removeprefix("open:"))

    assert ring == (200, "Sam is at the door.")
    assert (status, '"object":"run"' in accepted) == (202, True)
    assert ("samples.webhook", logging.WARNING, "a parcel for {'for': 'Ann'}") in caplog.record_tuples


def test_whoever_has_another_secret_is_not_let_in() -> None:
    with (
        serving(sample.brain) as site,
        listening(site.app) as url,
        pytest.raises(urllib.error.HTTPError, match="401"),
    ):
        call(f"{url}/v1/hooks/doorbell", {"visitor": "Sam"}, secret="whsec_Z3Vlc3NlZA==")
