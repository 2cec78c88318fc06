"""What a delivery carries: its bytes, kept as they came, and the value that they are read as.

A run keeps the bytes once and reads them when it is asked, so that a handler may have
both: the bytes, and what they mean. How they are read depends on the type that the
sender names: a form is its fields, text is text, everything else is JSON where it is
JSON, and text where it is not. No bytes are no value.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import parse_qsl

import msgspec

from bigbrain.errors import SchemaError
from bigbrain.jsonvalue import JSON

BODY = "body"
"""The key under which a run carries the body that its webhook was called with."""

BOM = "\ufeff"
FORM = "application/x-www-form-urlencoded"
FIELDS = 10_000
"""Fields that a form may have; one with more is text."""


def write_body(body: bytes, content_type: str) -> dict[str, JSON]:
    """A body as a run keeps it, in JSON. content_type: the header of that name, "" when it was not sent."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        return {"type": kind, "text": body.decode()}
    except UnicodeDecodeError:
        return {"type": kind, "base64": base64.b64encode(body).decode()}


def read_bytes(kept: Mapping[str, JSON]) -> bytes:
    """The bytes of a body that a run keeps."""
    match kept:
        case {"text": str(text)}:
            return text.encode()
        case {"base64": str(text)}:
            return base64.b64decode(text)
        case _:
            raise ValueError(f"a body is kept as `text` or `base64`, not as {', '.join(kept)}")


def read_value(kept: Mapping[str, JSON]) -> JSON:
    """What the bytes of a body are read as: JSON, the fields of a form, a text; None when there are none.

    A field that a form has more than once is the list of its values.
    Raises `SchemaError` when the bytes are no text, so that only the bytes themselves can be had.
    """
    text = kept.get("text")
    if not isinstance(text, str):
        raise SchemaError("the payload is no text; read its bytes with `turn.payload(bytes)`")
    if not text:
        return None
    kind = str(kept.get("type", ""))
    if kind == FORM:
        return _read_form(text)
    return text if kind.startswith("text/") and kind != "text/json" else _read_json(text)


def payload(carried: Mapping[str, JSON]) -> JSON:
    """The payload among what a run carries: of a webhook, what its body is read as; None when there is none."""
    body = carried.get(BODY)
    return read_value(body) if body is not None else carried.get("payload")


def raw_payload(carried: Mapping[str, JSON]) -> bytes | None:
    """The same in bytes: a webhook's body as it came, any other payload as JSON; None when there is none."""
    body = carried.get(BODY)
    if body is not None:
        return read_bytes(body)
    return msgspec.json.encode(carried["payload"]) if "payload" in carried else None


def _read_form(text: str) -> JSON:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS, errors="replace")
    except ValueError:
        return text
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: found if len(found) > 1 else found[0] for name, found in values.items()}


def _read_json(text: str) -> JSON:
    try:
        found: JSON = msgspec.json.decode(text.removeprefix(BOM))
    except (msgspec.DecodeError, RecursionError):
        return text
    return found
