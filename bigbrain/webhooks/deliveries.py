"""One delivery to a webhook as it came, and what is proved of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass(frozen=True)
class Delivery:
    """What somebody has sent to a webhook, before anything in it is believed."""

    body: bytes
    """The bytes exactly as they came."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Under their canonical names, such as `X-Github-Event`; see `flattened`."""
    address: str = ""
    """The sender's IP address: that of the connection, or what a trusted proxy says; "" when it is not known."""

    def header(self, name: str) -> str:
        """The value of a header, however its name is written; "" when it was not sent."""
        return self.headers.get(canonical(name), "")


@dataclass(frozen=True)
class Proof:
    """What is certain of a delivery that a verifier has let in."""

    id: str = ""
    """The delivery's name as its sender repeats it in every try; "" when there is none."""
    mark: str = ""
    """What no other delivery has and nobody can change without the secret, so that it tells a repetition even under
    another id; "" when there is nothing of the kind: then the same bytes may come again and count again."""


def canonical(name: str) -> str:
    """A header's name as it is written here: `x-sig-foo` is `X-Sig-Foo`."""
    return "-".join(part.capitalize() for part in name.split("-"))


def flattened(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """One value for each header, under its canonical name: the first, when it was sent more than once."""
    flat: dict[str, str] = {}
    for name, value in headers:
        flat.setdefault(canonical(name), value)
    return flat


def digest(*parts: bytes) -> str:
    """32 hex digits that stand for the bytes of the parts, one after the other."""
    return sha256(b"".join(parts)).hexdigest()[:32]
