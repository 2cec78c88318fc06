"""Errands: what chat interfaces ask behind their user's back, such as a title for the conversation.

They send such prompts to whatever model the user talks to, after every turn. To a brain that remembers, routes
or acts, each would be a turn that nobody took. So one that is recognised is answered by the brain's cheap model alone, as a
run of its own flow, `ERRAND`.

Recognised is, when no tools are offered and the last message, which is the user's, begins as

- Open WebUI's prompts do (title, tags, follow-ups, search queries, image prompts, autocompletion): with `### Task:`, and has
  their `<chat_history>`, or calls the model an autocompletion system;
- LibreChat's do: with its wish for a title of five words.

A brain may have another rule, `Brain(errands=…)`, or none, `Brain(errands=None)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from bigbrain.messages import Request

Rule: TypeAlias = Callable[[Request], bool]
"""Says of a request whether it is an errand."""

ERRAND = "~errand"
"""The flow of errands: not a name that a client can ask for."""

_OPEN_WEBUI = re.compile(r"### Task:\s.*(<chat_history>|You are an autocompletion system)", re.DOTALL)
_LIBRECHAT = re.compile(r"(please )?(provide|generate) a concise, 5-word-or-less title", re.IGNORECASE)


def is_errand(request: Request) -> bool:
    """Whether a request is one of the errands that this module names."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "user" or request.tools:
        return False
    text = last.text.lstrip()
    return bool(_OPEN_WEBUI.match(text) or _LIBRECHAT.match(text))
