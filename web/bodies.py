"""Reading a request's body: bounded before it is read, and a JSON object or an error that says why not.

The caps are checked here and not by Flask: its `MAX_CONTENT_LENGTH` cuts a chunked
body off at the cap and takes the part for the whole, because a server that has
undone the chunks tells no length.
"""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import IO, TYPE_CHECKING

import msgspec
from flask import Request, Response, after_this_request
from flask import request as request_context
from werkzeug.exceptions import RequestTimeout, UnsupportedMediaType

from bigbrain.errors import TooLarge, WireError
from bigbrain.messages import JSON
from bigbrain.settings import Limits
from web.connections import connection_of, impatient

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

PIECE = 256 * 1024
"""Bytes that are read at a time."""
PATIENCE = 30.0
"""Seconds of silence after which a sender that has not finished is given up."""
LINGER = 2.0
"""Seconds for which a sender whose body is refused may go on sending it."""
DRAINED = 8 * 1024 * 1024
"""Bytes of it that are read at most."""
BOM = b"\xef\xbb\xbf"
COUNTED = ("messages", "input")
"""The fields that hold a conversation."""


def read_body(request: Request, limits: Limits) -> dict[str, JSON]:
    """The object that a request's body holds.

    Raises `WireError` when it is none or nests too deep, `TooLarge` when it is over a cap,
    `UnsupportedMediaType` when it says that it is something else than plain JSON.
    """
    _check_type(request)
    raw = read_raw(request, limits.max_body)
    body = _read_json(raw, limits.max_depth)
    for name in COUNTED:
        _check_count(body, name, limits.max_messages, "max_messages")
    _check_count(body, "tools", limits.max_tools, "max_tools")
    return body


def read_raw(request: Request, cap: int) -> bytes:
    """The bytes of a request's body, exactly as sent.

    Raises `TooLarge` for more than `cap` of them however they are framed, `WireError` when they
    break off, `RequestTimeout` when the sender stops.
    """
    length = request.content_length
    if length is None and not request.environ.get("wsgi.input_terminated"):
        return b""
    if length is not None and length > cap:
        raise _over(cap)
    with impatient(connection_of(request.environ), PATIENCE):
        raw = _read_stream(request.environ["wsgi.input"], cap + 1 if length is None else length)
    if len(raw) > cap:
        raise _over(cap)
    if length is not None and len(raw) < length:
        raise WireError(f"the body breaks off after {len(raw)} of {length} bytes")
    return raw


def _read_stream(stream: IO[bytes], most: int) -> bytes:
    """The bytes of a stream up to its end, but never more than `most`."""
    pieces: list[bytes] = []
    left = most
    try:
        while left > 0 and (piece := stream.read(min(PIECE, left))):
            pieces.append(piece)
            left -= len(piece)
    except TimeoutError as exc:
        raise RequestTimeout(f"the body did not go on for {PATIENCE:.0f} s") from exc
    # what a server raises for chunks that break off or are none is its own affair: WSGI names nothing
    except Exception as exc:
        raise WireError("the body breaks off or is badly framed") from exc
    return b"".join(pieces)


def _over(cap: int) -> TooLarge:
    environ = request_context.environ

    @after_this_request
    def drained(response: Response) -> Response:
        response.call_on_close(lambda: _drain(environ))
        return response

    return TooLarge(f"the body is over {cap} bytes; send less, or raise `BIG_BRAIN_MAX_BODY`")


def _drain(environ: WSGIEnvironment) -> None:
    """Reads on for a while after a refusal was sent: closed with bytes unread, a connection is reset, and the sender reads none of it."""
    # whatever goes wrong here, the sender has been answered
    with suppress(Exception), impatient(connection_of(environ), LINGER):
        until, left = monotonic() + LINGER, min(int(environ.get("CONTENT_LENGTH") or DRAINED), DRAINED)
        while left > 0 and monotonic() < until and (piece := environ["wsgi.input"].read(min(PIECE, left))):
            left -= len(piece)


def _check_type(request: Request) -> None:
    """A body without a type is taken for JSON, because that is all it can be here."""
    kind = request.mimetype
    if kind and kind not in ("application/json", "text/json") and not kind.endswith("+json"):
        raise UnsupportedMediaType(f"the body is `{kind[:100]}`; send JSON with `Content-Type: application/json`")
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if coding != "identity":
        raise UnsupportedMediaType(f"the body is encoded as `{coding[:100]}`; send it without `Content-Encoding`")


def _read_json(raw: bytes, max_depth: int) -> dict[str, JSON]:
    text = raw.removeprefix(BOM)
    if not text.strip():
        raise WireError("the body is empty; send a JSON object")
    try:
        body: JSON = msgspec.json.decode(text)
    except RecursionError as exc:
        raise _too_deep(max_depth) from exc
    except msgspec.DecodeError as exc:
        raise WireError(f"the body is not JSON: {exc}") from exc
    if not isinstance(body, dict):
        raise WireError("the body is JSON, but not an object; send one like `{…}`")
    # a body with fewer brackets than levels cannot be too deep, and counting them costs next to nothing
    if text.count(b"{") + text.count(b"[") > max_depth and _is_deeper(body, max_depth):
        raise _too_deep(max_depth)
    return body


def _is_deeper(value: JSON, levels: int) -> bool:
    """Whether containers stand in each other more than so many levels deep; no recursion, whatever the depth."""
    level: list[JSON] = [value]
    for _ in range(levels):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _too_deep(max_depth: int) -> WireError:
    return WireError(f"the body nests deeper than {max_depth} levels; flatten it, or raise `BIG_BRAIN_MAX_DEPTH`")


def _check_count(body: dict[str, JSON], name: str, most: int, limit: str) -> None:
    items = body.get(name)
    if isinstance(items, list) and len(items) > most:
        remedy = f"send fewer, or raise `BIG_BRAIN_{limit.upper()}`"
        raise TooLarge(f"`{name}` has {len(items)} items, more than {most}; {remedy}", param=name)
