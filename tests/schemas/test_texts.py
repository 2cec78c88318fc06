"""What JSON is found in a model's text, and what is refused."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigbrain.errors import SchemaError
from bigbrain.schemas import extract, parse
from bigbrain.schemas.reader import Reader

FENCED = '{"action":"finish","answer":"Run:\\n```sh\\nls\\n```\\nDone"}'
LINES = "Run:\n```sh\nls\n```\nDone"


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{FENCED}\n```",
        f"````json\n{FENCED}\n````",
        f"~~~\n{FENCED}\n~~~",
        f"```JSON5\n{FENCED}\n```",
        f"```json\n{FENCED}",
        f"Here you are:\n\n```\n{FENCED}\n```\nAnything else?",
    ],
)
def test_a_fence_inside_a_string_does_not_end_the_json(text: str) -> None:
    assert parse(text)["answer"] == LINES


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"action":"finish","answer":"use `print` here"}', {"action": "finish", "answer": "use `print` here"}),
        ('The `answer`: {"answer":"ok"}', {"answer": "ok"}),
        ('{"answer":"close with } or {"}', {"answer": "close with } or {"}),
        ('Use {name} then: {"answer":"ok"}', {"answer": "ok"}),
        ('Default is {}. {"action":"describe"}', {"action": "describe"}),
        ('As in [1], so: {"answer":"ok"}', {"answer": "ok"}),
        ('Some [text {"answer":"ok"} here]', {"answer": "ok"}),
        ('{"answer":"x \\" } y","action":"finish"}', {"answer": 'x " } y', "action": "finish"}),
        ('{"a":{"input":{}}} {"b":1}', {"a": {"input": {}}}),
        ('Use {" to open and {"a":1}', {"a": 1}),
        ('Here: [{"a":1},{"a":2}] as asked', [{"a": 1}, {"a": 2}]),
        ("see [1, 2]", [1, 2]),
        ("nothing: {}", {}),
        ('{"a":1} and then a { or two', {"a": 1}),
        ("42", 42),
        ('"text"', "text"),
    ],
)
def test_the_first_object_that_stands_on_its_own_is_taken(text: str, value: Any) -> None:
    assert parse(text) == value


def test_valid_json_is_never_altered() -> None:
    answer = "see https://ex.test/a//b /* no */ , } it's 5 o'clock"

    assert parse(json.dumps({"answer": answer})) == {"answer": answer}
    assert parse(f"So: {json.dumps({'answer': answer})}!") == {"answer": answer}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"{'action':'finish','answer':'it\'s ok'}", "it's ok"),
        ('{"action":"finish",/* c */"answer":"ok",}', "ok"),
        ('{"action":"finish", // why, } not\n"answer":"ok"}', "ok"),
        ('{"action":"finish","answer":"line1\nline2"}', "line1\nline2"),
        ('\ufeff{"action":"finish","answer":"ok"}', "ok"),
        ('```\n\ufeff{"action":"finish","answer":"ok"}', "ok"),
        ('{"answer":"A\\ud83e\\udd8aB",}', "A🦊B"),
        ('{"answer":"half \\ud83e"}', "half \ufffd"),
    ],
)
def test_what_can_be_read_for_sure_is_forgiven(text: str, answer: str) -> None:
    assert parse(text)["answer"] == answer


@pytest.mark.parametrize(
    "text",
    [
        '{"answer":None}',
        "{“answer”:1}",
        "{answer:1}",
        '{"a":1 "b":2}',
        '{"a":,}',
        '{,"a":1}',
        "[1,,2]",
        '{"a":01}',
        '{"a":NaN}',
        '{"a":1e999}',
        '{"a":"\\q"}',
        '{"a":nullx}',
        "no json at all",
        "",
    ],
)
def test_what_would_have_to_be_guessed_is_an_error(text: str) -> None:
    with pytest.raises(SchemaError):
        parse(text)


@pytest.mark.parametrize("cut", range(1, len('{"steps":[{"tool":"t","n":[1,2]},{"tool":"u"}]}')))
def test_json_that_is_cut_off_is_never_completed(cut: int) -> None:
    whole = '{"steps":[{"tool":"t","n":[1,2]},{"tool":"u"}]}'

    with pytest.raises(SchemaError, match="cut off"):
        parse(whole[:cut])
    with pytest.raises(SchemaError, match="cut off"):
        parse(f"```json\n{whole[:cut]}")


def test_an_answer_that_is_cut_off_is_not_replaced_by_an_example_before_it() -> None:
    with pytest.raises(SchemaError, match="cut off"):
        parse('For instance {"a":1}. Now: {"a":2,"b":')


def test_a_part_of_a_broken_object_is_not_the_answer() -> None:
    with pytest.raises(SchemaError, match=r"broken at character 5, near .*expected a value"):
        parse('{"a":oops,"b":{"c":1}}')


def test_the_error_names_the_place_and_the_text_around_it() -> None:
    with pytest.raises(SchemaError) as caught:
        parse('So: {"a":1 "b":2}')

    assert str(caught.value) == (
        r'the JSON is broken at character 11, near "So: {\"a\":1 \"b\":2}": expected `,` or `}`'
    )


@pytest.mark.parametrize(
    "text",
    [
        "{" * 50_000,
        "[" * 50_000,
        '{"a":' * 50_000,
        '{"a"/*' * 50_000 + "*/",
        "{/*" * 50_000 + "*/",
        '{"' * 50_000,
        '{"a" ' * 50_000,
        "{'a\\" * 50_000,
        ("[" * 90 + "x") * 500,
        '{"a":x' + '"\\"' * 50_000,
    ],
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    before = time.process_time()

    with pytest.raises(SchemaError):
        parse(text)
    assert time.process_time() - before < 0.9


def test_an_object_behind_many_braces_is_found() -> None:
    assert parse("{" * 50_000 + '{"action":"abort","reason":"r"}')["action"] == "abort"


@pytest.mark.parametrize("text", ["[" * 101 + "]" * 101, "[" * 5000 + "]" * 5000, "so: " + "[" * 101 + "]" * 101])
def test_what_is_too_deep_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="deeper than 100"):
        parse(text)


def test_a_hundred_levels_are_read() -> None:
    deep = "[" * 100 + "1" + "]" * 100

    assert json.dumps(parse(deep)) == deep
    assert json.dumps(parse(f"so: {deep}")) == deep


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(SchemaError, match="1000001 characters"):
        parse("x" * 1_000_001)


@dataclass
class Point:
    x: int
    y: int = 0


def test_of_several_objects_the_first_that_fits_is_taken() -> None:
    assert extract('From {"z": 1} to {"x": 2}', Point) == Point(2)


def test_when_none_fits_the_faults_are_those_of_the_first() -> None:
    with pytest.raises(SchemaError, match='x: expected an integer, got "a"'):
        extract('{} {"x": "a"} {"z": 1}', Point)


def test_an_object_that_is_encoded_twice_is_unwrapped_once() -> None:
    assert extract(json.dumps('{"x":1}'), Point) == Point(1)
    with pytest.raises(SchemaError, match="expected an object"):
        extract(json.dumps(json.dumps('{"x":1}')), Point)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
containers = st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=5), values, max_size=4)


@given(containers)
def test_the_tolerant_reader_reads_valid_json_as_it_is(value: Any) -> None:
    assert Reader(json.dumps(value)).read_at(0) == value
    assert Reader(json.dumps(value, ensure_ascii=False, indent=1)).read_at(0) == value


@given(
    st.dictionaries(st.text(max_size=5), values, min_size=1, max_size=4),
    st.text("ab `~.:,}]\n"),
    st.text("ab `.:,}]\n"),
)
def test_an_object_is_found_between_sentences(value: Any, before: str, after: str) -> None:
    assert parse(f"{before}{json.dumps(value)}{after}") == value


@given(st.text("{}[]\"'\\:,/*a1 \n", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(SchemaError):
        json.dumps(parse(text))
