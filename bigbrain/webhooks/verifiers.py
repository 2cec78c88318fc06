"""Who decides whether a delivery is genuine: the seam, and what all schemes share.

A verifier sees the raw bytes, before anything is parsed, and fails closed: what it
does not recognise is refused. Digests are compared in constant time, each with each,
so that the time tells nothing about the secret or which of several it was.
"""

from __future__ import annotations

import hmac
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bigbrain.errors import BadSignature, WiringError
from bigbrain.webhooks.deliveries import Delivery, Proof

WINDOW = 300.0
"""Seconds that a signed time may be from ours, into the past or the future."""


@runtime_checkable
class Verifier(Protocol):
    """A way to tell a genuine delivery."""

    def prove(self, delivery: Delivery, now: float) -> Proof:
        """What is certain of a genuine delivery. now: seconds since 1970. Raises `BadSignature` for any other."""


Own = Callable[[Delivery], bool | str]
"""An author's own check: whether a delivery is genuine, or its id when it is; `False` and "" refuse it."""


@dataclass(frozen=True)
class OwnCheck:
    """A verifier that asks an author's function."""

    check: Own

    def prove(self, delivery: Delivery, now: float) -> Proof:  # noqa: ARG002 - the seam's signature
        """The id that the function gives, if any. Raises `BadSignature` when it refuses, and what it raises itself."""
        found = self.check(delivery)
        if isinstance(found, str) and found:
            return Proof(found, found)
        if found is not True:
            raise BadSignature("the delivery is not genuine")
        return Proof()


def verifier_of(verify: object) -> Verifier:
    """The verifier that an author means: one of ours, or a function of the delivery.

    Raises `WiringError` for anything else.
    """
    if isinstance(verify, Verifier):
        return verify
    if getattr(verify, "__module__", "") == "bigbrain.webhooks.schemes":
        name = getattr(verify, "__name__", "")
        raise WiringError(f"`verify={name}` has no secret: write `verify={name}(secret)`")
    if not callable(verify) or inspect.iscoroutinefunction(verify):
        raise WiringError(
            f"`verify={verify!r}` cannot verify: give one of `bigbrain.webhooks`, such as `stripe_signature(secret)`, "
            "or a plain function of the delivery"
        )
    return OwnCheck(verify)


def secrets_of(name: str, secrets: Sequence[str]) -> tuple[str, ...]:
    """The secrets given to the scheme `name`, any of which may have signed.

    Raises `WiringError` when there is none or one is empty, because anybody could sign with that.
    """
    if not secrets or not all(secret.strip() for secret in secrets):
        raise WiringError(f"`{name}` has an empty secret or none: give the one that the sender signs with")
    return tuple(secrets)


def signed_by_one(keys: Iterable[bytes], content: bytes, claimed: Iterable[bytes], algorithm: str = "sha256") -> bool:
    """Whether one of the claimed digests is the HMAC of `content` under one of the keys."""
    digests = [hmac.digest(key, content, algorithm) for key in keys]
    claims = list(claimed)
    # a sum, not `any`: each is compared with each
    return sum(hmac.compare_digest(digest, claim) for digest in digests for claim in claims) > 0


def fresh(text: str, now: float) -> str:
    """A signed time, as it was written, that is near enough to ours. Raises `BadSignature` for any other."""
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise BadSignature("the delivery has no time, or one that is no whole number of seconds since 1970")
    if abs(now - int(text)) > WINDOW:
        raise BadSignature(f"the delivery's time is more than {WINDOW:.0f} s from ours; sign each try anew")
    return text


def unhex(text: str) -> bytes:
    """The bytes that hexadecimal digits stand for; none when they are no such digits."""
    try:
        return bytes.fromhex(text) if text.isascii() and text.isalnum() else b""
    except ValueError:
        return b""
