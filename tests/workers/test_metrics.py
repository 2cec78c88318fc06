"""The port of a worker at which Prometheus reads."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

import pytest

from bigbrain.metrics import Meters
from bigbrain.trace import Trail
from tests.bench.targets import free_port
from tests.test_metrics import read
from workers.metrics import expose


@contextmanager
def exposed(place: str, meters: Meters) -> Iterator[None]:
    server = expose(place, meters)
    assert server is not None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("place", ["{}", "127.0.0.1:{}"])
def test_what_a_worker_counts_is_read_at_its_port(place: str) -> None:
    meters, port = Meters(), free_port()
    with exposed(place.format(port), meters):
        Trail((meters,)).tell("recovered", lost=1)
        with urlopen(f"http://127.0.0.1:{port}/metrics") as page:
            samples = read(page.read())

    assert samples["bigbrain_recoveries_total", ()] == 1


def test_a_port_that_is_taken_is_said_and_no_reason_to_end(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = f"127.0.0.1:{other.getsockname()[1]}"
        with caplog.at_level(logging.WARNING):
            assert expose(place, Meters()) is None

    assert place in caplog.text
