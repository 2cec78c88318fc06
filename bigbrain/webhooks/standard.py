"""Standard Webhooks, from both ends: the headers that sign a body, and the verifier that reads them.

The signature covers the id, so a repetition is told by it. Only symmetric signatures (`v1`) are
made and read. The project's own Python library is not used: it takes the body for UTF-8, and
breaks with other errors than its own on a header that is badly written.
Source: Standard Webhooks specification 1.0.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field

from bigbrain.errors import BadSignature, WiringError
from bigbrain.webhooks.deliveries import Delivery, Proof
from bigbrain.webhooks.verifiers import fresh, signed_by_one

PREFIX = "whsec_"
NAMES = ("webhook", "svix")
"""What the names of the headers begin with; the second is how it was before there was a standard, and many senders still do."""


def key_of(secret: str) -> bytes:
    """The key that a secret stands for: `whsec_` and base64, or any other text as it is.

    Raises `WiringError` when what follows `whsec_` is no base64 or nothing.
    """
    if not secret.startswith(PREFIX):
        return secret.encode()
    text = secret.removeprefix(PREFIX).rstrip("=")
    try:
        # some senders leave the padding out
        key = base64.b64decode((text + "=" * (-len(text) % 4)).encode(), validate=True)
    except binascii.Error as exc:
        raise WiringError("the secret begins with `whsec_`, but what follows is no base64") from exc
    if not key:
        raise WiringError("the secret `whsec_` is empty: give the whole of it")
    return key


def signed(body: bytes, *, id: str, at: int, secret: str) -> dict[str, str]:
    """The headers that prove a body's origin.

    id: the same in every try. at: seconds since 1970. secret: as for `key_of`.
    """
    found = hmac.digest(key_of(secret), _content(id, str(at), body), "sha256")
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(found).decode()}",
    }


@dataclass(frozen=True)
class Standard:
    """The verifier."""

    keys: tuple[bytes, ...] = field(repr=False)

    def prove(self, delivery: Delivery, now: float) -> Proof:
        """The id of a delivery that was signed with one of the keys. Raises `BadSignature` for any other."""
        named = next((name for name in NAMES if delivery.header(f"{name}-id")), NAMES[0])
        id, at = delivery.header(f"{named}-id"), fresh(delivery.header(f"{named}-timestamp"), now)
        claims = _claims(delivery.header(f"{named}-signature"))
        if "." in id:
            # a dot parts the id from the time, so one inside it could be moved from one to the other
            raise BadSignature(f"the id in `{named}-id` has a dot")
        if not id or not signed_by_one(self.keys, _content(id, at, delivery.body), claims):
            raise BadSignature(f"the signature in `{named}-signature` is missing or does not match")
        return Proof(id, id)


def _content(id: str, at: str, body: bytes) -> bytes:
    return f"{id}.{at}.".encode("latin-1", "replace") + body


def _claims(header: str) -> Iterator[bytes]:
    for part in header.split():
        version, _, text = part.partition(",")
        if version == "v1":
            try:
                yield base64.b64decode(text.encode("latin-1", "replace"), validate=True)
            except binascii.Error:
                continue
