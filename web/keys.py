"""Who may ask: the keys of this deployment, compared as digests and in constant time."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

from flask import g, request
from werkzeug.datastructures import Headers

from bigbrain.errors import Unauthorized
from bigbrain.identity import scope_of
from web import ui

OPEN = frozenset({"/healthz"}) | ui.PATHS
"""What load balancers ask without a key, and the page on which people give theirs."""
HOOKS = "/v1/hooks/"
"""What is called by those who prove themselves otherwise; the view asks for a key where they do not."""


class Keys:
    """The keys of which a client must send one."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = tuple(sha256(key.encode()).digest() for key in keys)

    def check(self) -> None:
        """Lets the current request in, and notes whose it is. Raises `Unauthorized` when it has no key or an unknown one."""
        if request.path in OPEN or request.path.startswith(HOOKS) or request.method == "OPTIONS":
            # a browser asks without a key whether it may ask with one
            return
        digest = self.admitted(request.headers)
        if digest is None:
            raise Unauthorized("the API key is missing or unknown; send it as `Authorization: Bearer …` or `x-api-key`")
        g.scope = scope_of(digest)

    def admitted(self, headers: Headers) -> bytes | None:
        """The digest of the key that lets a request with these headers in; None when it has none.

        Claude Code sends both headers when it has two keys, so either may be the right one.
        """
        scheme, _, bearer = headers.get("Authorization", "").partition(" ")
        offered = [headers.get("x-api-key", ""), bearer.strip() if scheme.lower() == "bearer" else ""]
        # WSGI hands headers over as Latin-1, whatever bytes they were
        digests = [sha256(key.encode("latin-1", "replace")).digest() for key in offered]
        # sums, not `any`: every key is compared, so that the time tells nothing
        found = [sum(hmac.compare_digest(digest, known) for known in self._digests) for digest in digests]
        return next((digest for digest, times in zip(digests, found, strict=True) if times), None)
