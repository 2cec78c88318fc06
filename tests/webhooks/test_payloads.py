"""What a body is kept as and read as; nothing that may be sent breaks it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigbrain.errors import SchemaError
from bigbrain.jsonvalue import JSON
from bigbrain.webhooks.metadata import metadata_of
from bigbrain.webhooks.payloads import FORM, read_bytes, read_value, write_body

JSON_TYPE = "application/json"


@given(st.binary(max_size=200), st.sampled_from(["", JSON_TYPE, FORM, "text/plain", "é;;"]))
@settings(max_examples=50)
def test_the_bytes_come_back_as_they_were_sent(body: bytes, kind: str) -> None:
    kept = json.loads(json.dumps(write_body(body, kind)))

    assert read_bytes(kept) == body


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"", None),
        (b"null", None),
        (b"[]", []),
        (b'"x"', "x"),
        (b"3", 3),
        (b'{"a":1}', {"a": 1}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{ "b":1.0,\t"a":"\\u00e9" , "b":2}', {"b": 2, "a": "é"}),
        (b'{"a":1}\r\n', {"a": 1}),
        (b"NaN", "NaN"),
        (b'{"a":1,}', '{"a":1,}'),
        (b"[" * 100_000, "[" * 100_000),
    ],
    ids=lambda value: repr(value)[:30],
)
@pytest.mark.parametrize(
    "kind", [JSON_TYPE, "application/json; charset=utf-8", "application/vnd.acme+json", "APPLICATION/JSON", ""]
)
def test_a_body_is_read_as_json_where_it_is_json_and_as_text_where_not(body: bytes, value: JSON, kind: str) -> None:
    assert read_value(write_body(body, kind)) == value


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"payload=%7B%22a%22%3A1%7D", {"payload": '{"a":1}'}),
        (b"a=1&b=&a=2", {"a": ["1", "2"], "b": ""}),
        (b"a=%FF", {"a": "\ufffd"}),
        (b"just words", {"just words": ""}),
        (b"", None),
        (b"a&" * 20_000, "a&" * 20_000),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_form_is_read_as_its_fields(body: bytes, value: JSON) -> None:
    assert read_value(write_body(body, f"{FORM}; charset=utf-8")) == value


def test_text_is_text_even_when_it_could_be_json() -> None:
    assert read_value(write_body(b"123", "text/plain; charset=utf-8")) == "123"
    assert read_value(write_body(b"123", "text/json")) == 123


@pytest.mark.parametrize("kind", [JSON_TYPE, FORM, "application/octet-stream", ""])
def test_bytes_that_are_no_text_can_only_be_had_as_bytes(kind: str) -> None:
    with pytest.raises(SchemaError, match=r"turn\.payload\(bytes\)"):
        read_value(write_body(b"\xff\x00", kind))


def test_what_lets_somebody_in_stays_out_of_the_metadata() -> None:
    headers = {"Authorization": "x", "Cookie": "x", "X-Api-Key": "x", "Proxy-Authorization": "x", "X-Signature": "s"}

    assert metadata_of(headers) == {"X-Signature": "s"}
