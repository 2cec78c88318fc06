"""Asks a web server on this machine whether it is ready."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit


def is_ready(url: str, key: str = "", *, within: float = 2.0) -> bool:
    """Tell whether `GET /readyz` at the base `url` answers 200 `within` seconds; `key`: the client key, if any."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=within)
    try:
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {key}"} if key else {})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
