"""What a run may know of the headers that came with a delivery: all but the secret ones."""

from __future__ import annotations

from collections.abc import Mapping

SECRET = frozenset({"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key"})
"""What lets somebody in, here or elsewhere: it is for the verifier, and must not reach records, models and traces."""


def metadata_of(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a delivery as its run carries them."""
    return {name: value for name, value in headers.items() if name not in SECRET}
