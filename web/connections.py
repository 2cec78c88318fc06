"""The connection under a request, which WSGI hides and each server shows in a way of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from socket import socket

from bigbrain.messages import JSON

NAMES = ("gunicorn.socket", "werkzeug.socket")


def connection_of(environ: Mapping[str, JSON]) -> socket | None:
    """The socket that a request came over; None when its server does not show it."""
    for name in NAMES:
        found = environ.get(name)
        if isinstance(found, socket):
            return found
    return None


@contextmanager
def impatient(connection: socket | None, seconds: float) -> Iterator[None]:
    """Lets reads fail with `TimeoutError` after so many seconds of silence while the block runs."""
    if connection is None:
        yield
        return
    before = connection.gettimeout()
    connection.settimeout(seconds)
    try:
        yield
    finally:
        connection.settimeout(before)
