"""Anthropic's Messages API as a dialect: the one module of it that others import.

Its parts, each one idea: `anthropic_content` (blocks ⇄ parts), `anthropic_read_request` and
`anthropic_write_request`, `anthropic_answers` (whole answers, and the frames of streamed ones),
`anthropic_stream` (frames → events), `anthropic_errors`.
"""

from __future__ import annotations

from bigbrain.messages import Request, Response
from bigbrain.wire.anthropic_answers import REASONS, STOPS, read_response, write_event, write_response
from bigbrain.wire.anthropic_content import NAME
from bigbrain.wire.anthropic_errors import read_error, write_error
from bigbrain.wire.anthropic_read_request import ThreadUnsupported, count_tokens, read_request
from bigbrain.wire.anthropic_stream import read_events
from bigbrain.wire.anthropic_write_request import write_request

HEARTBEAT = b'event: ping\ndata: {"type": "ping"}\n\n'
"""A frame that the protocol allows at any place after the first and all clients pass over."""


def write_heartbeat(so_far: Response, request: Request, sent: int) -> bytes:  # noqa: ARG001 - the same at any moment
    """A ping."""
    return HEARTBEAT


__all__ = [
    "HEARTBEAT",
    "NAME",
    "REASONS",
    "STOPS",
    "ThreadUnsupported",
    "count_tokens",
    "read_error",
    "read_events",
    "read_request",
    "read_response",
    "write_error",
    "write_event",
    "write_heartbeat",
    "write_request",
    "write_response",
]
