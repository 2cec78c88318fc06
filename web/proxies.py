"""What stands before the web tier may say whom it speaks for; nobody else may.

As werkzeug's `ProxyFix`, which trusts the last so many values whoever sends them; here it is the
address that is trusted. From any other, what a request says of its own way is taken away before
anything reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, TypeAlias

from bigbrain.settings import Network

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

IPAddress: TypeAlias = IPv4Address | IPv6Address

FORWARDED = "HTTP_X_FORWARDED_"
OTHERS = ("HTTP_FORWARDED", "HTTP_X_REAL_IP")


class Proxies:
    """Around an application: gives it the client's address and scheme as trusted proxies tell them.

    `X-Forwarded-For` becomes `REMOTE_ADDR`: its last address that is not a trusted one itself.
    `X-Forwarded-Proto` becomes the scheme. Hosts, ports and prefixes are not taken over.
    """

    def __init__(self, app: WSGIApplication, trusted: Sequence[Network]) -> None:
        self._app = app
        self._trusted = tuple(trusted)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if self._trusts(_read(environ.get("REMOTE_ADDR", ""))):
            environ["REMOTE_ADDR"] = self._client(environ)
            scheme = environ.get("HTTP_X_FORWARDED_PROTO", "").rpartition(",")[2].strip().lower()
            if scheme in ("http", "https"):
                environ["wsgi.url_scheme"] = scheme
        else:
            for name in [name for name in environ if name.startswith(FORWARDED) or name in OTHERS]:
                del environ[name]
        return self._app(environ, start_response)

    def _client(self, environ: WSGIEnvironment) -> str:
        """The nearest address on the request's way that is not trusted, else the farthest that is known."""
        found = str(environ["REMOTE_ADDR"])
        for text in reversed(environ.get("HTTP_X_FORWARDED_FOR", "").split(",")):
            address = _read(text)
            if address is None:
                break
            found = str(address)
            if not self._trusts(address):
                break
        return found

    def _trusts(self, address: IPAddress | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)


def _read(text: str) -> IPAddress | None:
    """An address as proxies write it, with or without a port; None for anything else, such as a unix socket's."""
    text = text.strip()
    host = text[1 : text.index("]")] if text.startswith("[") and "]" in text else text
    if host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        found = ip_address(host)
    except ValueError:
        return None
    # a server that listens on both kinds of addresses shows those of the older one so
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
