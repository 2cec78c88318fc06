"""Every error as a response: JSON in the shape of the client's protocol, never HTML, never internal text."""

from __future__ import annotations

import logging

import msgspec
import redis
from flask import Response, request
from werkzeug.exceptions import HTTPException

from bigbrain.errors import BrainError
from bigbrain.events import Failed
from web.arrivals import run_id
from web.protocols import protocol_of

logger = logging.getLogger(__name__)

AWAY = Failed(
    "unavailable", "The brain cannot reach its store; try again.", status=503, retryable=True, retry_after=1.0
)
"""What a client reads while Redis is away."""


class UpgradeRequired(HTTPException):
    """Raised when a client asks for a WebSocket, which is not spoken here."""

    code = 426
    description = "WebSockets are not spoken here; send a POST request."


def write_failure(failed: Failed) -> Response:
    """A failure before the first byte as a response."""
    status, headers, body = protocol_of(request).dialect.write_error(failed, run_id())
    return Response(msgspec.json.encode(body), status, headers, content_type="application/json")


def write_exception(error: Exception) -> Response:
    """Whatever a view raised as a response: the one error handler of the web tier."""
    match error:
        case BrainError():
            if error.status >= 500:
                logger.error("run %s: %s", run_id(), error)
            return write_failure(Failed.of(error))
        case HTTPException():
            return _write_http(error)
        case redis.RedisError():
            logger.error("run %s: Redis: %s", run_id(), error)
            return write_failure(AWAY)
        case _:
            logger.error("run %s: %s %s failed", run_id(), request.method, request.path, exc_info=error)
            return write_failure(Failed.of(BrainError()))


def _write_http(error: HTTPException) -> Response:
    status = error.code or 500
    message = error.description or error.name
    if status == 404:
        message = f"there is no `{request.method} {request.path[:200]}` here"
    code = error.name.lower().replace(" ", "_")
    response = write_failure(Failed(code, message, status=status, retryable=status in (408, 503)))
    for name, value in error.get_headers():
        # a 405 has to say what is allowed; the type is that of the HTML page that we do not send
        if name.lower() != "content-type":
            response.headers[name] = value
    return response
