"""Webhooks of a whole deployment: nothing is lost and nothing runs twice, with workers killed or standing still.

The long form of the storm is `python -m tests.chaos.deliveries --count 1000 --kills 2`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from bigbrain.identity import bare
from tests.chaos.deliveries import WORKER, Report, send, storm
from tests.stack.deployment import Deployment, deployed, until
from tests.web.sockets import talk

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("told") / "lines"
    file.touch()
    return file


@pytest.fixture(scope="module")
def hooked(told: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    data = tmp_path_factory.mktemp("data")
    arguments = ("up", "tests.hooked", "--port", "0", "--web", "2", "--workers", "1")
    with deployed(*arguments, data=data, TOLD=str(told), BIG_BRAIN_MAX_BODY="4000", BIG_BRAIN_KEYS="k") as deployment:
        yield deployment


def head(body: bytes, id: str) -> str:
    """The header lines of a genuine delivery to `echo`."""
    digest = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    return f"X-Hub-Signature-256: sha256={digest}\r\nX-GitHub-Delivery: {id}\r\nConnection: close"


def chunked(raw: bytes) -> bytes:
    pieces = [raw[n : n + 1000] for n in range(0, len(raw), 1000)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def done(told: Path) -> set[str]:
    """The runs that have left a line."""
    return {bare(line) for line in told.read_text().splitlines()}


def test_bytes_headers_and_framing_come_through_gunicorn_as_they_were_sent(hooked: Deployment) -> None:
    body = b"\xff\x00{\r\n"
    lines = f"{head(body, 'g-1')}\r\nx-more: 1\r\nX-MORE: 2\r\nX-Forwarded-For: 6.6.6.6\r\nTransfer-Encoding: chunked"

    answer = talk(hooked.url, "/v1/hooks/echo", lines, chunked(body))

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert body.hex().encode() in answer
    assert b"'X-More': '1'" in answer
    assert b"Forwarded" not in answer


@pytest.mark.parametrize(("size", "status"), [(4000, 200), (4001, 413), (20_000, 413)])
@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_the_cap_holds_before_gunicorn_too(hooked: Deployment, size: int, status: int, framing: str) -> None:
    body = b'{"a":1}' + b" " * (size - 7)
    lines = head(body, f"g-{size}-{framing}")
    if framing == "chunked":
        answer = talk(hooked.url, "/v1/hooks/echo", f"{lines}\r\nTransfer-Encoding: chunked", chunked(body))
    else:
        answer = talk(hooked.url, "/v1/hooks/echo", f"{lines}\r\nContent-Length: {size}", body)

    assert answer.startswith(b"HTTP/1.1 %d " % status)


def test_a_forged_delivery_and_an_unknown_webhook_are_refused_in_json(hooked: Deployment) -> None:
    forged = httpx2.post(f"{hooked.url}/v1/hooks/work", content=b"{}")
    unknown = httpx2.post(f"{hooked.url}/v1/hooks/none", content=b"{}")
    got = httpx2.get(f"{hooked.url}/v1/hooks/work")

    assert [answer.status_code for answer in (forged, unknown, got)] == [401, 404, 405]
    assert all(answer.json()["error"]["message"] for answer in (forged, unknown, got))


def test_while_no_worker_moves_deliveries_are_taken_at_once_and_run_later(hooked: Deployment, told: Path) -> None:
    assert until(lambda: hooked.pids(WORKER), 30)
    pids = hooked.pids(WORKER)
    report = Report()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        asyncio.run(send(hooked.url, range(10_000, 10_100), report))
        took = time.monotonic() - begun
        executed = done(told)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    ids = set(report.ids)

    assert (len(ids), report.wrong, executed & ids) == (100, [], set())
    # all were taken while nothing ran; the bound is for a machine that is busy with something else
    assert took < 30
    assert until(lambda: ids <= done(told), 60)
    with hooked.redis() as client:
        assert until(lambda: client.zcard("bb:due") == 0, 60)


def test_every_delivery_is_one_run_though_the_worker_is_killed(hooked: Deployment, told: Path) -> None:
    report = storm(hooked, told, count=300, kills=2)

    assert report.wrong == [], report.lines()
    assert (len(report.ids), len(set(report.ids)), report.killed) == (300, 300, 2)
