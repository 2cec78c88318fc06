"""Thinking ⇄ the two fields in which chat completions carry it, though OpenAI's own do not.

`reasoning_content` (or `reasoning`) is its text, for people. A model that has signed or encrypted
what it thought wants it back unchanged, so that goes beside it in `reasoning_details`, an item for each part:
clients that send an assistant's message back as they got it send it along.
Source: DeepSeek API, "Reasoning model", for the first; OpenRouter, "Preserving reasoning", for the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bigbrain.messages import JSON, Part, Thinking, Vendor
from bigbrain.wire.openai_content import NAME, noted, own

ANTHROPIC = "anthropic"
SIGNED = "anthropic-claude-v1"
"""The format of what Anthropic signed or redacted."""
ENCRYPTED = "openai-responses-v1"
"""The format of what OpenAI encrypted."""


def read_thinking(text: JSON, field: str, details: JSON) -> Iterator[Thinking]:
    """The thinking of an assistant's message: its details where they are understood, else its text."""
    parts = tuple(_read_details(details))
    if parts:
        yield from parts
    elif text and isinstance(text, str):
        yield Thinking(text, noted(field=field))


def read_detail_notes(details: JSON) -> Vendor:
    """What the details of an answer say of the thinking beside them; it is for the server that told them as well."""
    found = next(_read_details(details), None)
    return {} if found is None else {**found.vendor, NAME: {**own(found.vendor), "details": True}}


def _read_details(details: JSON) -> Iterator[Thinking]:
    for item in details if isinstance(details, list) else ():
        match item:
            case {"format": "anthropic-claude-v1", "type": "reasoning.text", "signature": str() as signature}:
                text = item.get("text")
                yield Thinking(text if isinstance(text, str) else "", {ANTHROPIC: {"signature": signature}})
            case {"format": "anthropic-claude-v1", "type": "reasoning.encrypted", "data": str() as data} if data:
                yield Thinking(vendor={ANTHROPIC: {"redacted": data}})
            case {"format": "openai-responses-v1", "type": "reasoning.encrypted", "data": str() as data} if data:
                text = item.get("text")
                kept = noted(encrypted_content=data, id=item.get("id"))
                yield Thinking(text if isinstance(text, str) else "", kept)
            case _:
                pass


def write_details(parts: Iterable[Part]) -> list[JSON]:
    """The items for thinking that has to come back unchanged; none for what is only text."""
    thoughts = [part for part in parts if isinstance(part, Thinking)]
    found = [(index, _write_detail(part)) for index, part in enumerate(thoughts)]
    return [{**detail, "index": index} for index, detail in found if detail]


def write_last_detail(parts: Sequence[Part]) -> list[JSON]:
    """The item of the last part, with its place among all thinking."""
    detail = _write_detail(parts[-1])
    index = sum(isinstance(part, Thinking) for part in parts) - 1
    return [{**detail, "index": index}] if detail else []


def _write_detail(part: Part) -> dict[str, JSON]:
    if not isinstance(part, Thinking):
        return {}
    signed = part.vendor.get(ANTHROPIC)
    if isinstance(signed, dict) and "redacted" in signed:
        return {"type": "reasoning.encrypted", "data": signed["redacted"], "format": SIGNED}
    if isinstance(signed, dict) and signed.get("signature"):
        return {"type": "reasoning.text", "text": part.text, "signature": signed["signature"], "format": SIGNED}
    ours = own(part.vendor)
    if ours.get("encrypted_content"):
        detail = {"type": "reasoning.encrypted", "data": ours["encrypted_content"], "format": ENCRYPTED}
        return {**detail, **({"text": part.text} if part.text else {}), **({"id": ours["id"]} if "id" in ours else {})}
    return {}


def write_given_back(parts: Sequence[Part]) -> dict[str, JSON]:
    """The thoughts of a history, in the fields in which this dialect brought them: other servers refuse or misread them."""
    thought: dict[str, JSON] = {}
    for part in parts:
        field = own(part.vendor).get("field") if isinstance(part, Thinking) else None
        if isinstance(part, Thinking) and field in ("reasoning_content", "reasoning"):
            thought[field] = thought.get(field, "") + part.text
    detailed = [part for part in parts if isinstance(part, Thinking) and own(part.vendor).get("details")]
    return {**thought, "reasoning_details": write_details(detailed)} if detailed else thought
