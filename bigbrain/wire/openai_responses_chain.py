"""What the Responses API lets a server store, and a request name: earlier answers, and items of them.

A request that names an earlier response goes on from it: that one's conversation, without its
instructions, and its answer stand before the messages of the new request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from bigbrain.messages import JSON, Message, Request, Response
from bigbrain.wire.fields import wrong
from bigbrain.wire.openai_content import NAME, own
from bigbrain.wire.openai_responses_items import REFERENCE

Lookup: TypeAlias = Callable[[str], JSON]
"""The item of an id; None when there is none."""


def in_background(request: Request) -> bool:
    """Whether the answer is wanted later."""
    return own(request.extra).get("background") is True


def stored(request: Request) -> bool:
    """Whether the answer may be read again, by default it may."""
    return own(request.extra).get("store") is not False


def is_kept(request: Request) -> bool:
    """Whether a request on record is one of this protocol whose answer may be read again."""
    return own(request.extra).get("store") is True


def previous_of(request: Request) -> str:
    """The id of the response that the request goes on from, or ""."""
    found = own(request.extra).get("previous_response_id")
    return found if isinstance(found, str) else ""


def with_items(body: JSON, lookup: Lookup) -> JSON:
    """The body with the items themselves where it only names them, as far as they are known."""
    if not isinstance(body, dict) or not isinstance(body.get("input"), list):
        return body
    return {**body, "input": [_resolved(item, lookup) for item in body["input"]]}


def _resolved(item: JSON, lookup: Lookup) -> JSON:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return item
    # the type of a reference may be left out, and then nothing else stands in it
    if item.get("type") == REFERENCE or item.keys() == {"id"}:
        return lookup(item["id"]) or {**item, "type": REFERENCE}
    return item


def own_messages(request: Request) -> tuple[Message, ...]:
    """The conversation, without the instructions that were of this request alone."""
    first = request.messages[0] if request.messages else Message("user")
    marked = first.role == "system" and any(own(part.vendor).get("field") == "instructions" for part in first.parts)
    return request.messages[1:] if marked else request.messages


def chained(request: Request, before: Request, answer: Response) -> Request:
    """The request with what was asked and answered before.

    Raises `WireError` when it brings the result of a call that nobody made.
    """
    new = own_messages(request)
    instructions = request.messages[: len(request.messages) - len(new)]
    said = (answer.message,) if answer.parts else ()
    history = (*own_messages(before), *said)
    known = {call.id for message in (*history, *new) for call in message.calls}
    for result in (result for message in new for result in message.results):
        if result.call_id not in known:
            raise wrong("input", f"answers the call {result.call_id!r}, which the previous response did not make")
    return replace(request, messages=(*instructions, *history, *new))


def kept(request: Request) -> Request:
    """The request with its wish about storing said, so that its record tells whether it may be read."""
    return replace(request, extra={**request.extra, NAME: {**own(request.extra), "store": stored(request)}})
