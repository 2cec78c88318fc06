"""The protocols that are spoken here, and which of them a request speaks when its route does not say."""

from __future__ import annotations

from dataclasses import dataclass

from werkzeug import Request

from bigbrain.wire import Dialect, anthropic, openai_chat


@dataclass(frozen=True)
class Protocol:
    """A dialect, its name in metrics and the prefix of the ids in its documents."""

    dialect: Dialect
    name: str
    prefix: str
    required: tuple[str, ...] = ()
    """Fields that its own server insists on, though a brain could do without."""


CHAT = Protocol(openai_chat, "openai_chat", "chatcmpl-")
MESSAGES = Protocol(anthropic, "anthropic", "msg_", required=("max_tokens",))


def protocol_of(request: Request) -> Protocol:
    """The protocol whose errors the sender of a request understands.

    The routes of one protocol are its own; elsewhere the header that all of
    Anthropic's clients send tells them from OpenAI's, who send nothing of the kind.
    """
    if request.path.startswith("/v1/messages"):
        return MESSAGES
    if request.path.startswith(("/v1/chat/", "/v1/responses", "/v1/runs")):
        return CHAT
    return MESSAGES if "anthropic-version" in request.headers else CHAT
