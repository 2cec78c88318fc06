"""Telling somebody outside: a function, or a URL that gets a signed POST."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from time import time
from urllib.parse import urlsplit

import httpx2
import msgspec

from bigbrain.errors import WiringError
from bigbrain.scope import Scope
from bigbrain.webhooks.standard import key_of, signed

PAUSE = 0.5
"""Seconds before the second try; doubled before each further one."""
TIMEOUT = 10.0
"""Seconds that one POST may take."""


@dataclass(frozen=True)
class Notice:
    """Whom to tell and how often to try."""

    send: Callable[[str, str], None]
    """Tells a text under an id that stays the same when it is told again."""
    name: str
    """Whom people read of: a function's name, or a URL's host."""
    tries: int = 3

    @classmethod
    def to(cls, to: object, *, secret: str = "", tries: int = 3) -> Notice:
        """A notice to a function of the text or to a URL.

        secret: `whsec_…` or any text; signs each POST with the headers of Standard Webhooks.
        Raises `WiringError` for anything else, for a `whsec_` that is none, and when it is to be tried less than once.
        """
        if tries < 1:
            raise WiringError(f"`Notify(tries={tries})`: give 1 or more")
        if isinstance(to, str):
            if not to.startswith(("http://", "https://")):
                raise WiringError(f"`Notify({to!r})`: give a function, or a URL that begins with http:// or https://")
            if secret:
                key_of(secret)
            # the rest of an address may be a secret, and this name is told to whoever reads the trace
            return cls(_Post(to, secret), urlsplit(to).hostname or to, tries)
        if not callable(to) or inspect.iscoroutinefunction(to):
            raise WiringError(f"`Notify({to!r})`: give a plain function of the text, or a URL")
        function = to
        return cls(lambda text, _: function(text), getattr(to, "__name__", "notice"), tries)

    def tell(self, text: str, id: str, scope: Scope) -> None:
        """Tells it, again after a failure as often as allowed.

        id: the same for the same notice, so that the one who is told can drop a second one.
        Raises what the last try raised.
        """
        pause = PAUSE
        for left in reversed(range(self.tries)):
            scope.check()
            try:
                self.send(text, id)
                return
            except Exception:
                if not left:
                    raise
            scope.wait(pause)
            pause *= 2


@dataclass(frozen=True)
class _Post:
    url: str
    secret: str

    def __call__(self, text: str, id: str) -> None:
        body = msgspec.json.encode({"text": text})
        headers = {"content-type": "application/json"}
        if self.secret:
            headers |= signed(body, id=id, at=int(time()), secret=self.secret)
        httpx2.post(self.url, content=body, headers=headers, timeout=TIMEOUT).raise_for_status()
