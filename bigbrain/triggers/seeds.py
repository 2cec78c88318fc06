"""What a trigger hands on to the runs that it starts: the request, the conversation, the payload and what came beside it.

Payload and metadata are kept apart from each other and from the request's own fields. All of it is captured once: it
is part of the run's request on record, so every attempt and every firing reads the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from bigbrain.errors import WiringError
from bigbrain.messages import JSON, Message, Request, user
from bigbrain.turns import TRIGGER

LINEAGE = "lineage"
"""What the carried fields call the number of triggers that led to a run."""


def seed(
    request: Request | None, chat: str | Message | Sequence[Message], payload: object, metadata: object
) -> Request:
    """The request that every run of a trigger begins with. Raises `WiringError` for what JSON cannot say."""
    said = (user(chat),) if isinstance(chat, str) else (chat,) if isinstance(chat, Message) else tuple(chat)
    base = request or Request()
    return seed_again(replace(base, messages=(*base.messages, *said), stream=False), payload, metadata)


def seed_again(request: Request, payload: object, metadata: object) -> Request:
    """The request with another payload, or metadata, where one is given. Raises `WiringError` for what JSON cannot say."""
    carried = {"payload": payload, "metadata": metadata}
    return carrying(request, {name: _plain(name, value) for name, value in carried.items() if value is not None})


def carrying(request: Request, fields: dict[str, JSON]) -> Request:
    """The request with these fields for its run: `payload`, `metadata` and what triggers keep for themselves."""
    if not fields:
        return request
    return replace(request, extra={**request.extra, TRIGGER: {**carried_by(request), **fields}})


def carried_by(request: Request) -> dict[str, JSON]:
    """What a trigger handed on with this request."""
    return request.extra.get(TRIGGER, {})


def _plain(name: str, value: object) -> JSON:
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, msgspec.MsgspecError) as exc:
        raise WiringError(f"the {name} cannot be written as JSON: {exc}") from None
