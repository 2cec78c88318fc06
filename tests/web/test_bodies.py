"""What a body may be, and what is said of one that is not."""

from __future__ import annotations

import io
import json

import pytest
from werkzeug.test import TestResponse

from bigbrain.settings import Limits, Settings
from tests.web.site import BOTH, CHAT, MESSAGES, Site, asking, listening, saying, serving
from tests.web.sockets import talk

GOOD = json.dumps(asking()).encode()


def post(site: Site, path: str, raw: bytes, kind: str | None = "application/json", **headers: str) -> TestResponse:
    return site.client.post(path, data=raw, content_type=kind, headers=headers)


def is_refusal(path: str, response: TestResponse) -> bool:
    """Whether it is an error in the protocol's shape."""
    body = response.json
    whole = {"error"} if path == CHAT else {"type", "error", "request_id"}
    return set(body) == whole and isinstance(body["error"]["message"], str) and isinstance(body["error"]["type"], str)


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"  \n",
        b"null",
        b"[]",
        b'"x"',
        b"3",
        b"NaN",
        b'{"a":NaN}',
        b'{"a":1,}',
        b"{",
        b'{"a":"\xff"}',
        b'{"a":1e999}',
        b'{"a":1}{"b":2}',
        b"\xef\xbb\xbf",
        b"\x1f\x8b\x08",
    ],
)
def test_what_is_no_json_object_is_refused_in_the_protocols_words(path: str, raw: bytes) -> None:
    with serving(saying("x")) as site:
        response = post(site, path, raw)

    assert response.status_code == 400
    assert is_refusal(path, response)
    assert response.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(("path", "field"), [(CHAT, "messages"), (MESSAGES, "messages")])
def test_a_wrong_field_is_named(path: str, field: str) -> None:
    with serving(saying("x")) as site:
        response = site.client.post(path, json={"model": "b", "messages": 3})

    assert response.status_code == 400
    assert field in response.json["error"]["message"]
    if path == CHAT:
        assert response.json["error"]["param"] == field


def test_a_byte_order_mark_is_no_fault() -> None:
    with serving(saying("x")) as site:
        assert post(site, CHAT, b"\xef\xbb\xbf" + GOOD).status_code == 200


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (None, 200),
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("APPLICATION/JSON", 200),
        ("application/vnd.acme+json", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
    ],
)
@pytest.mark.parametrize("path", BOTH)
def test_the_type_of_a_body_is_json_or_is_not_said(path: str, kind: str | None, status: int) -> None:
    with serving(saying("x")) as site:
        response = post(site, path, GOOD, kind)

    assert response.status_code == status
    assert status == 200 or is_refusal(path, response)


@pytest.mark.parametrize(("coding", "status"), [("identity", 200), ("gzip", 415), ("zstd", 415)])
def test_a_body_comes_as_it_is(coding: str, status: int) -> None:
    with serving(saying("x")) as site:
        response = post(site, CHAT, GOOD, **{"Content-Encoding": coding})

    assert response.status_code == status
    assert status == 200 or f"`{coding}`" in response.json["error"]["message"]


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("depth", [65, 900, 100_000])
def test_a_body_that_nests_too_deep_is_refused(path: str, depth: int) -> None:
    raw = GOOD[:-1] + b', "x": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
    with serving(saying("x")) as site:
        response = post(site, path, raw)

    assert response.status_code == 400
    assert "64 levels" in response.json["error"]["message"]


def test_a_body_of_just_the_allowed_depth_is_taken() -> None:
    raw = GOOD[:-1] + b', "x": ' + b"[" * 63 + b"]" * 63 + b"}"
    with serving(saying("x")) as site:
        assert post(site, CHAT, raw).status_code == 200


def test_brackets_in_a_text_are_no_depth() -> None:
    with serving(saying("x")) as site:
        assert site.client.post(CHAT, json=asking("[" * 500)).status_code == 200


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("field", ["messages", "tools"])
def test_too_many_items_are_refused_by_name(path: str, field: str) -> None:
    limits = Limits(max_messages=2, max_tools=2)
    with serving(saying("x"), Settings(limits=limits)) as site:
        response = site.client.post(path, json=asking(**{field: [{}] * 3}))

    assert response.status_code == 413
    assert f"`{field}` has 3 items, more than 2" in response.json["error"]["message"]


@pytest.mark.parametrize("path", BOTH)
def test_a_body_over_the_cap_is_refused_before_it_is_read(path: str) -> None:
    class Unread(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise AssertionError("the body was read")

    with serving(saying("x"), Settings(limits=Limits(max_body=1000))) as site:
        sent = {"wsgi.input": Unread(), "CONTENT_LENGTH": "1001", "CONTENT_TYPE": "application/json"}
        response = site.client.post(path, environ_overrides=sent)

    assert response.status_code == 413
    assert is_refusal(path, response)
    assert path == CHAT or response.json["error"]["type"] == "request_too_large"


def padded(size: int) -> bytes:
    return GOOD[:-1] + b" " * (size - len(GOOD)) + b"}"


def chunked(raw: bytes) -> bytes:
    pieces = [raw[n : n + 100] for n in range(0, len(raw), 100)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (padded(1000), 200),
        (padded(1001), 413),
        (GOOD + b" " * (1000 - len(GOOD)) + b',"tail":2}', 413),
        (padded(5000), 413),
    ],
    ids=["just the cap", "one byte more", "a valid prefix", "much more"],
)
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_the_cap_holds_however_a_body_is_framed(raw: bytes, status: int, framing: str) -> None:
    head = "Transfer-Encoding: chunked" if framing == "chunked" else f"Content-Length: {len(raw)}"
    limits = Limits(max_body=1000)
    with serving(saying("x"), Settings(limits=limits)) as site, listening(site.app) as url:
        answer = talk(url, CHAT, head, chunked(raw) if framing == "chunked" else raw)

        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert site.house.store.client.keys("bb:run:*:log") != [] or status == 413


@pytest.mark.parametrize(
    ("head", "raw"),
    [
        ("Content-Length: 500", b'{"model":'),
        ("Transfer-Encoding: chunked", b"5\r\nab"),
        ("Transfer-Encoding: chunked", b"zz\r\nab\r\n0\r\n\r\n"),
    ],
)
def test_a_body_that_breaks_off_is_refused(head: str, raw: bytes) -> None:
    with serving(saying("x")) as site, listening(site.app) as url:
        answer = talk(url, CHAT, head, raw, end=True)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"breaks off" in answer
