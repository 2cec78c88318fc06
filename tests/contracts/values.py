"""Random values in normal form, and random nonsense, of which contracts and their tests draw; random cuts of bytes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from bigbrain.messages import JSON, AnswerSchema, Image, Text, Usage

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)
"""Text that is not blank; half a surrogate pair is no text."""

names = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
counts = st.integers(0, 10_000)
plain_values = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=8)
"""Values that JSON knows, for garbage."""

texts = words.map(Text)
arguments = st.dictionaries(names, st.text(max_size=8) | st.integers(-9, 9), max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)
images = st.builds(
    Image, data=st.sampled_from(["aGk=", "AAAA"]), media_type=st.sampled_from(["image/png", "image/webp"])
)
usages = st.builds(Usage, counts, st.integers(100, 900), counts, st.just(0), st.integers(0, 100))
schemas = st.builds(
    AnswerSchema,
    name=names,
    schema=st.fixed_dictionaries({"type": st.just("object"), "required": st.lists(names, max_size=2)}),
    strict=st.sampled_from([None, True, False]),
)


def garbage(keys: Iterable[str]) -> st.SearchStrategy[Any]:
    """JSON that has the right keys with wrong things under them."""
    known = st.sampled_from(sorted(keys))
    return st.recursive(
        plain_values | known,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(known, inner, max_size=4),
        max_leaves=12,
    )


def spoilt(draw: st.DrawFn, value: JSON, wrong: st.SearchStrategy[Any]) -> JSON:
    """The value with something wrong somewhere in it."""
    if isinstance(value, dict) and value and draw(st.booleans() | st.just(True)):
        victim = draw(st.sampled_from(sorted(value)))
        return {**value, victim: spoilt(draw, value[victim], wrong)}
    if isinstance(value, list) and value and draw(st.booleans() | st.just(True)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], spoilt(draw, value[place], wrong), *value[place + 1 :]]
    return draw(wrong)


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The same bytes, as a network that cuts at these places delivers them."""
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(marks)]
