"""Where requests are meant to go: base URLs that name the version once too often lead to the same place."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

DOUBLED = "/v1/v1/"


class OnceOnly:
    """WSGI middleware: `/v1/v1/…` is `/v1/…`, because some clients want their base URL with `/v1` and some without."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(DOUBLED):
            environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix("/v1")
        return self._app(environ, start_response)
