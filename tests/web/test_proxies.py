"""Whom a request came from: what a trusted proxy says, and nobody else."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from werkzeug.test import create_environ, run_wsgi_app
from werkzeug.wrappers import Request, Response

from bigbrain.settings import Network
from web.proxies import Proxies

LOCAL = (ip_network("127.0.0.1"), ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def seen(peer: str, headers: dict[str, str], trusted: tuple[Network, ...] = LOCAL) -> tuple[str, str, dict[str, str]]:
    """What an application sees: the address, the scheme, the headers that tell of the way."""
    got: list[tuple[str, str, dict[str, str]]] = []

    @Request.application
    def app(request: Request) -> Response:
        way = {name: value for name, value in request.headers if "Forwarded" in name or name == "X-Real-Ip"}
        got.append((request.remote_addr or "", request.scheme, way))
        return Response("ok")

    environ = create_environ(headers=headers, environ_overrides={"REMOTE_ADDR": peer})
    run_wsgi_app(Proxies(app, trusted), environ)
    return got[0]


@pytest.mark.parametrize("peer", ["8.8.8.8", "11.0.0.1", "2001:db8::1", "", "unknown"])
def test_what_a_stranger_says_of_its_way_is_gone_before_anybody_reads_it(peer: str) -> None:
    headers = {
        "X-Forwarded-For": "1.1.1.1",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "bank.example",
        "Forwarded": "for=1.1.1.1",
        "X-Real-IP": "1.1.1.1",
    }

    assert seen(peer, headers) == (peer, "http", {})


def test_nobody_is_trusted_unless_it_is_said() -> None:
    assert seen("127.0.0.1", {"X-Forwarded-For": "1.1.1.1"}, ()) == ("127.0.0.1", "http", {})


@pytest.mark.parametrize(
    ("peer", "way", "client"),
    [
        ("127.0.0.1", "1.1.1.1", "1.1.1.1"),
        ("::ffff:127.0.0.1", "1.1.1.1", "1.1.1.1"),
        ("fd00::7", "2001:db8::1", "2001:db8::1"),
        ("127.0.0.1", "6.6.6.6, 1.1.1.1", "1.1.1.1"),
        ("127.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2", "1.1.1.1"),
        ("127.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("127.0.0.1", "1.1.1.1:4711", "1.1.1.1"),
        ("127.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
        ("127.0.0.1", "6.6.6.6, unknown", "127.0.0.1"),
        ("127.0.0.1", "[", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
    ],
)
def test_the_client_is_the_nearest_address_that_is_not_trusted(peer: str, way: str, client: str) -> None:
    assert seen(peer, {"X-Forwarded-For": way})[0] == client


@pytest.mark.parametrize(
    ("said", "scheme"),
    [("https", "https"), ("http, HTTPS", "https"), ("http", "http"), ("gopher", "http"), ("", "http")],
)
def test_the_scheme_is_what_the_nearest_proxy_says(said: str, scheme: str) -> None:
    assert seen("10.1.2.3", {"X-Forwarded-Proto": said})[1] == scheme
