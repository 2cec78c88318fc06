"""How many tokens a request would cost a brain, as far as that can be said before it has answered.

A transparent brain asks one model what it is asked, so the count of that model's server is the answer's, where
the server tells one. What any other brain will ask depends on what it does, and the count is an estimate of the request.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from msgspec.structs import replace

from bigbrain.compiling import Compiled, Solo
from bigbrain.errors import BrainError
from bigbrain.messages import Request, system
from bigbrain.models.connection import Connection
from bigbrain.models.counting import can_count, count_tokens
from bigbrain.wire import anthropic

logger = logging.getLogger(__name__)


class Count(NamedTuple):
    """A number of input tokens, and whether a model's server has counted them."""

    tokens: int
    exact: bool


def count(request: Request, flow: Compiled) -> Count:
    """The input tokens of a request to a flow; an estimate when the model's server does not answer."""
    solo = transparent(flow)
    if solo is not None and isinstance(solo.model, Connection) and can_count(solo.model):
        role = solo.agent.role if isinstance(solo.agent.role, str) else ""
        told = (system(role), *request.messages) if role else request.messages
        try:
            return Count(count_tokens(solo.model, replace(request, messages=told)), exact=True)
        except BrainError as exc:
            logger.warning("tokens are estimated, because the model's server did not count them: %s", exc)
    return Count(anthropic.count_tokens(request), exact=False)


def transparent(flow: Compiled) -> Solo | None:
    """The only agent of a flow, if all it does is to ask its model what it is asked and to pass the answer on."""
    steps = tuple(flow.plan.steps())
    work = flow.bindings[steps[0].path].work if len(steps) == 1 else None
    if isinstance(work, Solo) and work.agent.plain and not work.agent.tools and work.agent.schema is None:
        return work if isinstance(work.agent.role, str) else None
    return None
