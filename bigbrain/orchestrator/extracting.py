"""Finds the actions in a model's reply: alone, in a fence, between sentences, several of them.

The rule: the objects that stand on their own in the reply, in order, from first to last; a
list counts as its elements. Those with an `action`, or with the `tool` of the older forms,
are the reply's actions; others (`{}` in the prose) are nothing. The search ends at the first
`finish` or `abort` when nothing came before it. JSON that is cut off is never completed.
"""

from __future__ import annotations

from collections.abc import Iterator

from bigbrain.errors import SchemaError
from bigbrain.messages import JSON
from bigbrain.schemas.texts import values_in

MOST = 50
"""Actions of one reply that are looked at."""


def extract_json(text: str) -> dict[str, JSON]:
    """The object in a model's reply: the first with an `action` or a `tool`, else the first that is not empty.

    Strict JSON is taken as it is; else the text is searched, and what can be read for sure (comments, single quotes,
    a comma before the end, line breaks in strings) is forgiven. Strings are tracked, so a fence, a brace or `//`
    inside one is just text. Raises `SchemaError` when there is none, when it is cut off, nested deeper than 100
    levels or longer than a million characters.

    >>> extract_json('Sure: {"action": "finish", "answer": "use {braces}"}')
    {'action': 'finish', 'answer': 'use {braces}'}
    """
    other: dict[str, JSON] | None = None
    for one in _objects(text):
        if is_action(one):
            return one
        other = other or one or None
    if other is None:
        raise SchemaError("the reply holds no JSON object but empty ones; reply with one that has an `action`")
    return other


def actions_in(text: str) -> Iterator[dict[str, JSON]]:
    """The actions of a reply as they stand there, one after the other.

    Raises `SchemaError` where the reply cannot be read any further.
    """
    found = 0
    for one in _objects(text):
        if is_action(one):
            found += 1
            if found > MOST:
                raise SchemaError(f"the reply has more than {MOST} actions; reply with one")
            yield one


def is_action(value: dict[str, JSON]) -> bool:
    """Whether an object is meant for us: it has an `action`, or the `tool` of the older forms."""
    return "action" in value or "tool" in value


def _objects(text: str, depth: int = 0) -> Iterator[dict[str, JSON]]:
    for value in values_in(text):
        match value:
            case dict():
                yield value
            case list():
                yield from (one for one in value if isinstance(one, dict))
            # the whole reply as the text of its JSON
            case str() if depth == 0:
                yield from _objects(value, 1)
            case _:
                pass
