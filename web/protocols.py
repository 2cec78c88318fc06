"""The protocols that are spoken here, and which of them a request speaks when its route does not say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from werkzeug import Request

from bigbrain.messages import Request as Asked
from bigbrain.wire import Dialect, anthropic, openai_chat, openai_responses


def _never(asked: Asked) -> bool:  # noqa: ARG001 - the same for every request
    return False


def _unsaid(asked: Asked) -> bool | None:  # noqa: ARG001 - the same for every request
    return None


@dataclass(frozen=True)
class Protocol:
    """A dialect, its name in metrics and the prefix of the ids in its documents."""

    dialect: Dialect
    name: str
    prefix: str
    required: tuple[str, ...] = ()
    """Fields that its own server insists on, though a brain could do without."""
    in_background: Callable[[Asked], bool] = _never
    """Whether a request is answered at once, and its answer asked for later."""
    stored: Callable[[Asked], bool | None] = _unsaid
    """Whether a request's answer can be read again by its id; None: the protocol has no such thing."""


CHAT = Protocol(openai_chat, "openai_chat", "chatcmpl-")
RESPONSES = Protocol(
    openai_responses,
    "openai_responses",
    "resp_",
    in_background=openai_responses.in_background,
    stored=openai_responses.stored,
)
MESSAGES = Protocol(anthropic, "anthropic", "msg_", required=("max_tokens",))


def protocol_of(request: Request) -> Protocol:
    """The protocol whose errors the sender of a request understands.

    The routes of one protocol are its own; elsewhere the header that all of
    Anthropic's clients send tells them from OpenAI's, who send nothing of the kind.
    """
    if request.path.startswith("/v1/messages"):
        return MESSAGES
    if request.path.startswith("/v1/responses"):
        return RESPONSES
    if request.path.startswith(("/v1/chat/", "/v1/runs")):
        return CHAT
    return MESSAGES if "anthropic-version" in request.headers else CHAT
