"""HTTP by hand, for what no client library does."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

from bigbrain.messages import JSON


def send(url: str, path: str, head: str, raw: bytes) -> socket.socket:
    """An open connection over which a POST request was sent; `head`: header lines beyond the usual."""
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=10)
    lines = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{head}\r\n\r\n"
    connection.sendall(lines.encode() + raw)
    return connection


def send_json(url: str, path: str, body: JSON, more: bytes = b"") -> socket.socket:
    """An open connection over which a JSON body was sent, and `more` bytes behind it."""
    raw = json.dumps(body).encode()
    return send(url, path, f"Content-Length: {len(raw)}", raw + more)


def talk(url: str, path: str, head: str, raw: bytes, *, end: bool = False) -> bytes:
    """All that the server answers; end: close our sending half first."""
    with send(url, path, head, raw) as connection:
        if end:
            connection.shutdown(socket.SHUT_WR)
        pieces = []
        while piece := connection.recv(65536):
            pieces.append(piece)
        return b"".join(pieces)
