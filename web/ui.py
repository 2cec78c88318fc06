"""`/ui`: one page for people, who see the runs of their key on it, follow and stop them, and ask the brain something.

The page is files of this package, without a build step, and speaks to the routes that every client has. It is open to
all, because it holds nothing; the key is asked for on it and sent with what it asks. It loads nothing from elsewhere and no page
may frame it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from flask import Blueprint, Response, abort, request

FOLDER = Path(__file__).parent / "page"
PAGE = "index.html"
TYPES = {
    PAGE: "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "timeline.js": "text/javascript",
    "events.js": "text/javascript",
}
"""The files of the page, and what they are."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # a new version of bigbrain is there at the next visit
    "Cache-Control": "no-cache",
}

PATHS = frozenset({"/ui", *(f"/ui/{name}" for name in TYPES if name != PAGE)})
"""Where they are."""


def routes() -> Blueprint:
    """`/ui` and its files."""
    blueprint = Blueprint("ui", __name__)

    @blueprint.get("/ui")
    def ui() -> Response:
        """A page for people."""
        return _sent(PAGE)

    @blueprint.get("/ui/<name>")
    def ui_file(name: str) -> Response:
        """A file of that page."""
        return _sent(name) if f"/ui/{name}" in PATHS else abort(404)

    return blueprint


def _sent(name: str) -> Response:
    response = Response(_read(name), content_type=f"{TYPES[name]}; charset=utf-8", headers=HEADERS)
    response.add_etag()
    response.make_conditional(request)
    return response


@cache
def _read(name: str) -> bytes:
    return (FOLDER / name).read_bytes()
