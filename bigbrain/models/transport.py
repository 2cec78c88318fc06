"""The HTTP connections below the SDKs' clients: a pool whose blocked reads a `Scope` can end.

The SDKs accept any `httpx2` transport. Ours is a plain `httpcore2` pool whose network
streams register their socket with the scope of the call that is being opened, when its
first byte is written. So a call can be cancelled from the moment it is sent, also while
its server has not answered at all; the SDKs alone show the socket only afterwards.
What can go wrong below is raised as `ModelTimeout` or `ModelBroke`.

Not covered: name lookup and the TLS handshake, which the connect timeout bounds.
"""

from __future__ import annotations

import socket
import ssl
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2

from bigbrain.errors import ModelBroke, ModelTimeout
from bigbrain.scope import Scope

CONNECT_TIMEOUT = 5.0
"""Seconds to reach a server; the SDKs' own figure."""
CONNECTIONS = 2000
IDLE_CONNECTIONS = 100
"""Kept for the next call; every call looks at all of them, so more would cost more than it saves."""
IDLE_SECONDS = 30.0
"""How long; providers close idle connections after about a minute."""
DRAIN_SECONDS = 0.05
"""How long an answer that is complete may take to end its body before its connection is given up."""
DRAIN_CHUNKS = 16
"""How many pieces of the body may still come then."""
SOCKET_OPTIONS = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
"""A model may think for minutes without a byte; routers on the way forget connections that seem dead."""

_SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class _Opening(threading.local):
    scope: Scope | None = None


_opening = _Opening()


@contextmanager
def opening(scope: Scope) -> Iterator[None]:
    """Let `scope` cancel the calls that this thread opens in the block."""
    _opening.scope = scope
    try:
        yield
    finally:
        _opening.scope = None


def _shut(sock: socket.socket) -> None:
    """Wakes a thread that reads from the socket, which `close` would not do."""
    with suppress(OSError):  # closed already
        # By the plain class: `SSLSocket.shutdown` would first drop the TLS state under the reader's feet.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


class Stream(httpcore2.NetworkStream):
    """One connection; from the first byte of a call until `release`, the call's scope can shut it down."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream
        self._release = _nothing
        self.hurry = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, DRAIN_SECONDS if self.hurry else timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._release is _nothing and _opening.scope is not None:
            self._release = _opening.scope.hold(partial(_shut, self.get_extra_info("socket")))
        self._stream.write(buffer, timeout)

    def release(self) -> None:
        """Put the connection out of the scope's reach."""
        self._release()
        self._release = _nothing
        self.hurry = False

    def close(self) -> None:
        self.release()
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> Stream:
        self.release()
        return Stream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _nothing() -> None: ...


class _Network(httpcore2.NetworkBackend):
    """The plain network with our streams."""

    def __init__(self) -> None:
        self._plain = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[_SocketOption] | None = None,
    ) -> Stream:
        return Stream(self._plain.connect_tcp(host, port, timeout, local_address, socket_options))


def _shown(url: httpx2.URL) -> str:
    """The address without what may be secret in it."""
    return f"{url.scheme}://{url.netloc.decode()}{url.path}"


@contextmanager
def _faults(url: httpx2.URL) -> Iterator[None]:
    try:
        yield
    except httpcore2.TimeoutException as exc:
        raise ModelTimeout(
            f"`{_shown(url)}` took too long ({type(exc).__name__}); raise the model's `timeout`"
        ) from exc
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError, OSError) as exc:
        raise ModelBroke(f"the connection to `{_shown(url)}` failed: {str(exc) or type(exc).__name__}") from exc
    except httpcore2.UnsupportedProtocol as exc:
        raise ModelBroke(f"`{_shown(url)}` is no HTTP address; set the model's `base_url`") from exc


class _Body(httpx2.SyncByteStream):
    """A response's bytes; closing gives the connection back, or ends it when the body is not complete."""

    def __init__(self, answer: httpcore2.Response, stream: Stream, url: httpx2.URL) -> None:
        self._answer = answer
        self._stream = stream
        self._url = url

    def __iter__(self) -> Iterator[bytes]:
        with _faults(self._url):
            yield from self._answer.iter_stream()

    def close(self) -> None:
        # First out of the scope's reach: another call may get the connection at once.
        self._stream.release()
        self._answer.close()


def _proxy(base_url: str) -> httpcore2.Proxy | None:
    """The proxy that the usual variables (`HTTPS_PROXY`, `NO_PROXY` …) name for this address."""
    parts = urlsplit(base_url)
    proxies = urllib.request.getproxies()
    url = proxies.get(parts.scheme) or proxies.get("all")
    if not url or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxy = httpx2.Proxy(url if "://" in url else f"http://{url}")
    return httpcore2.Proxy(str(proxy.url), auth=proxy.raw_auth)


@cache
def _trust() -> ssl.SSLContext:
    """The certificates to trust: 30 ms and some memory to load, so once in a process."""
    return httpx2.create_ssl_context()


class Transport(httpx2.BaseTransport):
    """A pool of connections to the server at `base_url`."""

    def __init__(self, base_url: str) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=_trust(),
            proxy=_proxy(base_url),
            max_connections=CONNECTIONS,
            max_keepalive_connections=IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=_Network(),
            socket_options=SOCKET_OPTIONS,
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        target = httpcore2.URL(
            scheme=url.raw_scheme,
            host=url.raw_host,
            port=url.port,
            target=url.raw_path,
        )
        asked = httpcore2.Request(
            method=request.method,
            url=target,
            headers=request.headers.raw,
            content=request.stream if isinstance(request.stream, httpx2.SyncByteStream) else None,
            extensions=request.extensions,
        )
        with _faults(url):
            answer = self._pool.handle_request(asked)
        body = _Body(answer, answer.extensions["network_stream"], url)
        return httpx2.Response(answer.status, headers=answer.headers, stream=body, extensions=answer.extensions)

    def close(self) -> None:
        self._pool.close()


def client(base_url: str) -> httpx2.Client:
    """The HTTP client that an SDK's client works with."""
    return httpx2.Client(transport=Transport(base_url), follow_redirects=True)


def timeouts(seconds: float) -> httpx2.Timeout:
    """The time limits of a call that may be silent for so many seconds at a time."""
    return httpx2.Timeout(seconds, connect=min(CONNECT_TIMEOUT, seconds))


def drain(response: httpx2.Response, chunks: Iterator[bytes]) -> None:
    """Read the little that may follow a complete answer, so that its connection can be used again."""
    stream = response.extensions["network_stream"]
    stream.hurry = True
    with suppress(ModelTimeout, ModelBroke):  # then it cannot
        for _ in islice(chunks, DRAIN_CHUNKS):
            pass
