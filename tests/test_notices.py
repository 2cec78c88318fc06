"""Telling somebody outside: over real HTTP, signed, tried again, stopped with the run."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx2
import pytest

from bigbrain.errors import RunCancelled, WiringError
from bigbrain.notices import Notice
from bigbrain.scope import Scope
from bigbrain.webhooks import Delivery, standard_webhooks
from bigbrain.webhooks.deliveries import flattened
from bigbrain.webhooks.standard import signed


class Inbox(HTTPServer):
    """Keeps what it is told; refuses the first `failures` times."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.failures = failures
        self.got: list[tuple[dict[str, str], bytes]] = []


class Handler(BaseHTTPRequestHandler):
    server: Inbox

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(503 if len(self.server.got) <= self.server.failures else 204)
        self.end_headers()


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    server = Inbox()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url(inbox: Inbox) -> str:
    return f"http://127.0.0.1:{inbox.server_port}/hook"


def test_a_url_gets_the_text_signed_as_standard_webhooks_say(inbox: Inbox) -> None:
    Notice.to(url(inbox), secret="whsec_" + base64.b64encode(b"key").decode()).tell("hello", "n-1", Scope())

    [(headers, body)] = inbox.got
    told = f"n-1.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(b"key", told, hashlib.sha256).digest()).decode()
    assert json.loads(body) == {"text": "hello"}
    assert headers["webhook-id"] == "n-1"
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_the_signature_is_that_of_the_published_example() -> None:
    headers = signed(
        b'{"test": 2432232314}',
        id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        at=1614265330,
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )

    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_refusal_is_tried_again_under_the_same_id(inbox: Inbox) -> None:
    inbox.failures = 1

    Notice.to(url(inbox), secret="s").tell("hello", "n-1", Scope())

    assert [headers["webhook-id"] for headers, _ in inbox.got] == ["n-1", "n-1"]


def test_what_we_send_is_what_our_own_webhooks_let_in(inbox: Inbox) -> None:
    Notice.to(url(inbox), secret="shared").tell("hello", "n-1", Scope())

    [(headers, body)] = inbox.got
    proof = standard_webhooks("shared").prove(Delivery(body, flattened(headers.items())), time.time())
    assert proof.id == "n-1"


def test_the_last_refusal_is_raised(inbox: Inbox) -> None:
    inbox.failures = 9

    with pytest.raises(httpx2.HTTPStatusError):
        Notice.to(url(inbox), tries=2).tell("hello", "n-1", Scope())

    assert len(inbox.got) == 2


def test_a_cancelled_run_tells_nobody_any_more() -> None:
    told: list[str] = []
    scope = Scope()
    scope.cancel(RunCancelled())

    with pytest.raises(RunCancelled):
        Notice.to(told.append).tell("hello", "n-1", scope)

    assert told == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": 5},
        {"to": "mailto:x"},
        {"to": print, "tries": 0},
        {"to": "http://x", "secret": "whsec_"},
        {"to": "http://x", "secret": "whsec_?"},
    ],
)
def test_a_notice_that_cannot_be_meant_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(WiringError):
        Notice.to(**wrong)


async def _later(text: str) -> None:
    """Not plain."""


def test_an_async_function_is_refused_because_nobody_would_wait_for_it() -> None:
    with pytest.raises(WiringError, match="plain function"):
        Notice.to(_later)
