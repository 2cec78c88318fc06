"""Behind a real nginx with its default settings, under a path, and over connections that are kept."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import anthropic
import httpx2
import openai
import pytest

from tests.stack.deployment import Deployment
from tests.stack.nginx import proxied
from tests.web.site import BOTH
from tests.web.sockets import send

pytestmark = pytest.mark.slow

HI = [{"role": "user", "content": "hi"}]
PLACES = ["", "/brain", "/modern"]


@pytest.fixture(scope="module")
def front(stack: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with proxied(stack.url, Path(tmp_path_factory.mktemp("nginx"))) as url:
        yield url


def body(model: str, *, stream: bool = True) -> dict[str, object]:
    return {"model": model, "max_tokens": 99, "messages": HI, "stream": stream}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("path", BOTH)
def test_a_stream_comes_word_by_word_and_is_not_compressed(front: str, place: str, path: str) -> None:
    with (
        httpx2.Client(timeout=30) as client,
        client.stream(
            "POST", f"{front}{place}{path}", json=body("tokens:30@10"), headers={"Accept-Encoding": "gzip"}
        ) as got,
    ):
        moments = [time.monotonic() for chunk in got.iter_bytes() if b'"w' in chunk or b"w1" in chunk]

    assert "content-encoding" not in got.headers
    assert got.headers["content-type"].startswith("text/event-stream")
    assert len(moments) >= 10, "nginx gathered the stream"
    assert moments[-1] - moments[0] > 1.0


@pytest.mark.parametrize("place", PLACES)
def test_both_sdks_work_through_it(front: str, place: str) -> None:
    with (
        openai.OpenAI(base_url=f"{front}{place}/v1", api_key="k", max_retries=0) as chat,
        anthropic.Anthropic(base_url=f"{front}{place}", api_key="k", max_retries=0) as claude,
    ):
        whole = chat.chat.completions.create(model="text:hello world", messages=HI)
        with claude.messages.stream(model="text:hello world", max_tokens=99, messages=HI) as stream:
            text = "".join(stream.text_stream)
        models = [one.id for one in chat.models.list()]

    assert whole.choices[0].message.content == text == "hello world"
    assert "relay" in models


@pytest.mark.parametrize("path", BOTH)
def test_errors_keep_their_shape_and_their_headers(front: str, path: str) -> None:
    response = httpx2.post(f"{front}{path}", json={**body("status:429:retry-after=3"), "stream": False}, timeout=30)

    assert response.status_code == 429
    assert response.headers["retry-after"] == "3"
    assert response.json()["error"]["type"] == "rate_limit_error"


def read_stream(connection: object) -> bytes:
    told = b""
    while not told.endswith(b"\r\n0\r\n\r\n"):
        piece = connection.recv(65536)  # type: ignore[attr-defined]
        assert piece, told
        told += piece
    return told


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("through", [False, True])
def test_conformance_44_a_connection_serves_the_next_request_after_a_whole_stream(
    stack: Deployment, front: str, path: str, through: bool
) -> None:
    raw = json.dumps(body("text:hello world")).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
    with send(front if through else stack.url, path, f"Content-Length: {len(raw)}", raw) as connection:
        for _ in range(3):
            told = read_stream(connection)
            assert told.startswith(b"HTTP/1.1 200")
            assert b"world" in told
            connection.sendall(head.encode() + raw)
        read_stream(connection)


@pytest.mark.parametrize("path", BOTH)
def test_conformance_44_a_client_that_leaves_in_mid_stream_harms_no_other_request(front: str, path: str) -> None:
    raw = json.dumps(body("tokens:200@20")).encode()
    for _ in range(5):
        with send(front, path, f"Content-Length: {len(raw)}", raw) as connection:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    with httpx2.Client(timeout=30) as client:
        answers = [client.post(f"{front}{path}", json=body("text:hello", stream=False)) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [200] * 5
    assert all("hello" in answer.text for answer in answers)


def test_bodies_over_a_megabyte_are_the_operators_to_allow(front: str) -> None:
    """nginx takes 1 MB unless told otherwise; what it says then is its own, and our clients survive it."""
    with (
        openai.OpenAI(base_url=f"{front}/v1", api_key="k", max_retries=0) as chat,
        pytest.raises(openai.APIStatusError) as got,
    ):
        chat.chat.completions.create(model="echo", messages=[{"role": "user", "content": "x" * 2_000_000}])

    assert got.value.status_code == 413


@pytest.mark.parametrize("place", PLACES)
def test_the_page_for_people_finds_its_files_under_any_path(front: str, place: str) -> None:
    page = f"{front}{place}/ui"
    html = httpx2.get(page).text
    files = re.findall(r'(?:href|src)="(ui/[^"]+)"', html)

    assert len(files) > 1
    assert {httpx2.get(urljoin(page, file)).status_code for file in files} == {200}
