"""Senders of webhooks, each signing as its documentation says, with keys of our own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass

from bigbrain.webhooks import (
    Verifier,
    github_signature,
    plain_hmac,
    slack_signature,
    standard_webhooks,
    stripe_signature,
)

Sign = Callable[[bytes, int, str, str], dict[str, str]]
"""The headers of a body that is sent at a moment, under an id, signed with a secret."""


@dataclass(frozen=True)
class Sender:
    """One sender: how it signs, what verifies it, a body as it sends them, and whether it signs a time."""

    name: str
    sign: Sign
    verifier: Callable[..., Verifier]
    body: bytes
    timed: bool = True
    secret: str = "s3cret"
    other: str = "an0ther"

    def headers(self, at: int, *, body: bytes | None = None, id: str = "d-1", secret: str = "") -> dict[str, str]:
        """The headers of a delivery."""
        return self.sign(self.body if body is None else body, at, id, secret or self.secret)


def _hmac(secret: str, content: bytes) -> bytes:
    return hmac.new(secret.encode(), content, hashlib.sha256).digest()


def sign_standard(body: bytes, at: int, id: str, secret: str) -> dict[str, str]:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": id, "webhook-timestamp": str(at), "webhook-signature": signature}


def sign_stripe(body: bytes, at: int, id: str, secret: str) -> dict[str, str]:
    return {"Stripe-Signature": f"t={at},v1={_hmac(secret, f'{at}.'.encode() + body).hex()},v0={'0' * 64}"}


def sign_github(body: bytes, at: int, id: str, secret: str) -> dict[str, str]:
    return {
        "X-GitHub-Delivery": id,
        "X-GitHub-Event": "push",
        "X-Hub-Signature": f"sha1={hmac.new(secret.encode(), body, hashlib.sha1).hexdigest()}",
        "X-Hub-Signature-256": f"sha256={_hmac(secret, body).hex()}",
    }


def sign_slack(body: bytes, at: int, id: str, secret: str) -> dict[str, str]:
    digest = _hmac(secret, f"v0:{at}:".encode() + body).hex()
    return {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": f"v0={digest}"}


def sign_plain(body: bytes, at: int, id: str, secret: str) -> dict[str, str]:
    return {"X-Signature": _hmac(secret, body).hex(), "Idempotency-Key": id}


def sign_timed(body: bytes, at: int, id: str, secret: str) -> dict[str, str]:
    digest = _hmac(secret, f"{at}.".encode() + body)
    return {"X-Sig": f"sha256={base64.b64encode(digest).decode()}", "X-Time": str(at), "X-Delivery": id}


def timed_hmac(*secrets: str) -> Verifier:
    return plain_hmac(
        *secrets, header="X-Sig", prefix="sha256=", encoding="base64", id_header="X-Delivery", timestamp_header="X-Time"
    )


def _secret(number: int) -> str:
    return f"whsec_{base64.b64encode(bytes([number] * 24)).decode()}"


STANDARD = Sender(
    "standard webhooks",
    sign_standard,
    standard_webhooks,
    b'{"type":"user.created","data":{"id":"u_1"}}',
    secret=_secret(1),
    other=_secret(2),
)
STRIPE = Sender(
    "stripe",
    sign_stripe,
    stripe_signature,
    json.dumps(
        {"id": "evt_1", "object": "event", "type": "payment_intent.succeeded", "pending_webhooks": 1}, indent=2
    ).encode(),
    secret="whsec_test_1",
    other="whsec_test_2",
)
GITHUB = Sender("github", sign_github, github_signature, b'{"ref":"refs/heads/main","commits":[]}', timed=False)
SLACK = Sender(
    "slack", sign_slack, slack_signature, b'{"type":"event_callback","event_id":"Ev1","event":{"type":"message"}}'
)
PLAIN = Sender("plain hmac", sign_plain, plain_hmac, b'{"visitor":"Sam"}', timed=False)
TIMED = Sender("hmac with a time", sign_timed, timed_hmac, b'{"visitor":"Sam"}')

SENDERS = (STANDARD, STRIPE, GITHUB, SLACK, PLAIN, TIMED)
TIMED_SENDERS = tuple(sender for sender in SENDERS if sender.timed)
