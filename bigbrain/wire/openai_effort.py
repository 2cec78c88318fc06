"""How hard a model is to think, in the word that both of OpenAI's protocols have for it."""

from __future__ import annotations

from typing import TypeGuard, get_args

from bigbrain.messages import Effort, Think
from bigbrain.wire.fields import wrong


def _is_effort(word: str) -> TypeGuard[Effort]:
    return word in get_args(Effort)


def read_effort(word: str | None, field: str) -> Think | None:
    """The word of a request; None where it has none. Raises `WireError` naming `field` for any other word."""
    if word is None:
        return None
    if not _is_effort(word):
        raise wrong(field, f"is {word!r}; use one of {', '.join(get_args(Effort))}")
    return word
