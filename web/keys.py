"""Who may ask: the keys of this deployment, compared as digests and in constant time."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

from flask import request
from werkzeug.datastructures import Headers

from bigbrain.errors import Unauthorized

OPEN = frozenset({"/healthz"})
"""What load balancers ask without a key."""


class Keys:
    """The keys of which a client must send one."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = tuple(sha256(key.encode()).digest() for key in keys)

    def check(self) -> None:
        """Lets the current request in. Raises `Unauthorized` when it has no key or an unknown one."""
        if request.path not in OPEN and not self.admits(request.headers):
            raise Unauthorized("the API key is missing or unknown; send it as `Authorization: Bearer …` or `x-api-key`")

    def admits(self, headers: Headers) -> bool:
        """Whether a request with these headers has a key.

        Claude Code sends both headers when it has two keys, so either may be the right one.
        """
        scheme, _, bearer = headers.get("Authorization", "").partition(" ")
        offered = [headers.get("x-api-key", ""), bearer.strip() if scheme.lower() == "bearer" else ""]
        # WSGI hands headers over as Latin-1, whatever bytes they were
        digests = [sha256(key.encode("latin-1", "replace")).digest() for key in offered]
        # a sum, not `any`: every key is compared, so that the time tells nothing
        return sum(hmac.compare_digest(digest, known) for digest in digests for known in self._digests) > 0
