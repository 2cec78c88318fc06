"""What a reply comes to, over a collection of replies as models write them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigbrain.errors import SchemaError
from bigbrain.orchestrator.actions import Plan, read_reply
from bigbrain.orchestrator.extracting import extract_json
from tests.orchestrator.replies import ADD_TEXT, BAD, EARLY, GOOD, OK_TEXT, Outcome


def outcome(plan: Plan) -> Outcome:
    return (plan.end,) if plan.end is not None else plan.todo


def test_there_are_enough_broken_replies() -> None:
    assert len(GOOD) + len(EARLY) + len(BAD) >= 100
    assert len(BAD) >= 30


@pytest.mark.parametrize("name", GOOD)
def test_a_reply_comes_to_what_it_means(name: str) -> None:
    text, expected = GOOD[name]

    plan = read_reply(text)

    assert outcome(plan) == expected
    assert not plan.early


@pytest.mark.parametrize("name", EARLY)
def test_an_end_behind_calls_does_not_count(name: str) -> None:
    text, expected = EARLY[name]

    plan = read_reply(text)

    assert (plan.todo, plan.end, plan.early) == (expected, None, True)


@pytest.mark.parametrize("name", BAD)
def test_a_reply_outside_the_protocol_has_its_exact_fault(name: str) -> None:
    text, fault = BAD[name]

    with pytest.raises(SchemaError) as caught:
        read_reply(text)

    assert fault in str(caught.value)


def test_a_hostile_reply_takes_no_time() -> None:
    began = time.perf_counter()
    for hostile in ("{" * 10_000, '{"a":' * 5_000, "[{" * 5_000, "{ " * 5_000, '{"' * 5_000):
        with pytest.raises(SchemaError):
            read_reply(hostile)

    assert time.perf_counter() - began < 10


def test_a_reply_that_is_too_long_is_not_searched() -> None:
    with pytest.raises(SchemaError, match="1000000"):
        read_reply(" " * 1_000_001)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["}", "{", '"', "\\", "```", "//"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


class TestExtractJson:
    @settings(max_examples=25, deadline=None)
    @given(st.dictionaries(st.text(max_size=5), anything, max_size=4), st.booleans(), st.sampled_from([None, 2]))
    def test_any_object_is_found_as_it_is_wherever_it_stands(
        self, value: dict[str, Any], ascii_only: bool, indent: int | None
    ) -> None:
        action = {**value, "action": "call"}
        text = json.dumps(action, ensure_ascii=ascii_only, indent=indent)

        for around in (
            "%s",
            "```json\n%s\n```",
            "Use {x}, or {}: %s Done.",
            "\ufeff%s",
            "~~~\n%s",
            '{"a": 1} %s {"b": 2}',
        ):
            assert extract_json(around.replace("%s", text)) == action
        for cut in range(1, len(text), 3):
            with pytest.raises(SchemaError):
                extract_json(text[:cut])

    def test_an_action_goes_before_other_objects(self) -> None:
        assert extract_json(f'First {{"a": 1}}, then {OK_TEXT}')["answer"] == "ok"

    def test_of_several_actions_it_is_the_first(self) -> None:
        assert extract_json(ADD_TEXT + OK_TEXT)["action"] == "call"

    def test_without_an_action_it_is_the_first_that_is_not_empty(self) -> None:
        assert extract_json('{} {"b": 2} {"c": 3}') == {"b": 2}

    @pytest.mark.parametrize("text", ["", "no JSON at all", "{}", "[]", "[1, 2]"])
    def test_no_object_is_an_error(self, text: str) -> None:
        with pytest.raises(SchemaError):
            extract_json(text)

    @pytest.mark.parametrize("end", range(1, len(OK_TEXT)))
    def test_what_is_cut_off_is_never_completed(self, end: int) -> None:
        with pytest.raises(SchemaError):
            extract_json(OK_TEXT[:end])
