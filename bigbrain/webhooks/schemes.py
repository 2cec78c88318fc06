"""The ways in which senders sign, each as a function of the secrets that gives its verifier.

Give several secrets while one is being replaced: any of them may have signed. Each scheme
says which part of a delivery is its name in every try, and what tells a repetition.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from bigbrain.errors import BadSignature, WiringError
from bigbrain.webhooks.deliveries import Delivery, Proof, digest
from bigbrain.webhooks.standard import Standard, key_of
from bigbrain.webhooks.verifiers import Verifier, fresh, secrets_of, signed_by_one, unhex

Encoding = Literal["hex", "base64"]


def standard_webhooks(*secrets: str) -> Verifier:
    """Verifies as Standard Webhooks says: what OpenAI, Anthropic, Svix and many more send, and our own `Notify`.

    secrets: `whsec_…`, or any other text as it is. The id in `webhook-id` is signed, and names the delivery.
    """
    return Standard(tuple(key_of(secret) for secret in secrets_of("standard_webhooks", secrets)))


def stripe_signature(*secrets: str) -> Verifier:
    """Verifies as Stripe signs, by `Stripe-Signature` and its time; secrets: `whsec_…`, as the dashboard shows them.

    The event's `id` names the delivery; Stripe signs each further try anew.
    Source: Stripe documentation, "Verify webhook signatures manually".
    """
    return _Stripe(_keys("stripe_signature", secrets))


def github_signature(*secrets: str) -> Verifier:
    """Verifies as GitHub signs, by `X-Hub-Signature-256`.

    `X-GitHub-Delivery` names the delivery, but is not signed, and nor is a time: a body that came before is the same
    delivery whatever it is called now. Source: GitHub documentation, "Validating webhook deliveries".
    """
    keys = _keys("github_signature", secrets)
    return _Plain(keys, header="X-Hub-Signature-256", prefix="sha256=", id_header="X-GitHub-Delivery")


def slack_signature(*secrets: str) -> Verifier:
    """Verifies as Slack signs, by `X-Slack-Signature` and `X-Slack-Request-Timestamp`; secrets: the signing secret.

    An event's `event_id` names the delivery; a command or an interaction has none, and Slack sends it only once.
    Source: Slack documentation, "Verifying requests from Slack".
    """
    return _Slack(_keys("slack_signature", secrets))


def plain_hmac(
    *secrets: str,
    header: str = "X-Signature",
    prefix: str = "",
    algorithm: str = "sha256",
    encoding: Encoding = "hex",
    id_header: str = "Idempotency-Key",
    timestamp_header: str = "",
    repeats: bool = False,
) -> Verifier:
    """Verifies an HMAC of the body that stands in a header, after `prefix`.

    id_header: where the delivery's id stands. timestamp_header: where a time stands that is signed as well, as
    `time.body`; it must then be near ours. repeats: a body that came before counts again, so that whoever has seen
    one can send it again, too; without it, the same bytes are the same delivery.
    Raises `WiringError` when a secret is empty, and for an algorithm that cannot be used.
    """
    keys = _keys("plain_hmac", secrets)
    if algorithm not in hashlib.algorithms_guaranteed or algorithm.startswith("shake") or algorithm == "md5":
        raise WiringError(f"`plain_hmac(algorithm={algorithm!r})` cannot be used: give `sha256`, `sha512` or `sha1`")
    if encoding not in ("hex", "base64"):
        raise WiringError(f"`plain_hmac(encoding={encoding!r})`: give `hex` or `base64`")
    return _Plain(keys, header, prefix, algorithm, encoding, id_header, timestamp_header, repeats)


def _keys(name: str, secrets: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(secret.encode() for secret in secrets_of(name, secrets))


@dataclass(frozen=True)
class _Stripe:
    keys: tuple[bytes, ...] = field(repr=False)

    def prove(self, delivery: Delivery, now: float) -> Proof:
        parts = [part.strip().partition("=") for part in delivery.header("Stripe-Signature").split(",")]
        at = fresh(next((value for name, _, value in parts if name == "t"), ""), now)
        content = f"{at}.".encode() + delivery.body
        if not signed_by_one(self.keys, content, (unhex(value) for name, _, value in parts if name == "v1")):
            raise BadSignature("the signature in `Stripe-Signature` is missing or does not match")
        id = _field(delivery.body, "id")
        return Proof(id, id or digest(content))


@dataclass(frozen=True)
class _Slack:
    keys: tuple[bytes, ...] = field(repr=False)

    def prove(self, delivery: Delivery, now: float) -> Proof:
        at = fresh(delivery.header("X-Slack-Request-Timestamp"), now)
        content = f"v0:{at}:".encode() + delivery.body
        if not signed_by_one(self.keys, content, _after("v0=", delivery.header("X-Slack-Signature"), "hex")):
            raise BadSignature("the signature in `X-Slack-Signature` is missing or does not match")
        id = _field(delivery.body, "event_id")
        return Proof(id, id or digest(content))


@dataclass(frozen=True)
class _Plain:
    keys: tuple[bytes, ...] = field(repr=False)
    header: str
    prefix: str = ""
    algorithm: str = "sha256"
    encoding: Encoding = "hex"
    id_header: str = ""
    timestamp_header: str = ""
    repeats: bool = False

    def prove(self, delivery: Delivery, now: float) -> Proof:
        content = delivery.body
        if self.timestamp_header:
            content = f"{fresh(delivery.header(self.timestamp_header), now)}.".encode() + content
        claims = _after(self.prefix, delivery.header(self.header), self.encoding)
        if not signed_by_one(self.keys, content, claims, self.algorithm):
            raise BadSignature(f"the signature in `{self.header}` is missing or does not match")
        return Proof(delivery.header(self.id_header), "" if self.repeats else digest(content))


def _after(prefix: str, header: str, encoding: Encoding) -> Iterator[bytes]:
    """The digest that stands in a header after its prefix; none when it is not written so."""
    if not header.startswith(prefix):
        return
    text = header.removeprefix(prefix).strip()
    if encoding == "hex":
        yield unhex(text)
        return
    try:
        yield base64.b64decode(text.encode("latin-1", "replace"), validate=True)
    except binascii.Error:
        return


def _field(body: bytes, name: str) -> str:
    """The text of a field of a body that is a JSON object; "" when there is none."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return ""
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""
