"""What the CLI says went wrong becomes the error that it is."""

from __future__ import annotations

from typing import Any

import pytest

from bigbrain.errors import ContextTooLong, ModelBroke, ModelBusy, ModelOverloaded, ModelRefused, ModelTimeout
from bigbrain.orchestrator.claude_code.failures import said, silent

WORDS = "the words of the CLI"


@pytest.mark.parametrize(
    ("fields", "fault", "kind"),
    [
        ({"api_error_status": 400}, "", ModelRefused),
        ({"api_error_status": 401}, "authentication_failed", ModelRefused),
        ({"api_error_status": 404}, "model_not_found", ModelRefused),
        ({"api_error_status": 429}, "rate_limit", ModelBusy),
        ({"api_error_status": 529}, "", ModelOverloaded),
        ({"api_error_status": 504}, "", ModelTimeout),
        ({"api_error_status": 500}, "", ModelBroke),
        ({"api_error_status": 400, "terminal_reason": "prompt_too_long"}, "invalid_request", ContextTooLong),
        ({"api_error_status": None}, "authentication_failed", ModelRefused),
        ({}, "invalid_request", ModelRefused),
        ({}, "something new", ModelBroke),
        ({}, "", ModelBroke),
    ],
)
def test_each_failure_keeps_its_kind_and_its_words(fields: dict[str, Any], fault: str, kind: type) -> None:
    error = said({"result": WORDS, **fields}, fault)

    assert type(error) is kind
    assert str(error).startswith(f"Claude Code: {WORDS}")


def test_a_conversation_that_is_too_long_needs_another_session() -> None:
    error = said({"result": "Prompt is too long · reduce it"}, "")

    assert type(error) is ContextTooLong
    assert str(error).endswith("begin another session with a new `session_id`")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', ModelOverloaded),
        ('API Error: 404 {"type":"error"}', ModelRefused),
        ("Please run /login · API Error: 401 no such key", ModelRefused),
        ("API Error: 5290 apples", ModelBroke),
        ("the model said: API Error: 404", ModelBroke),
    ],
)
def test_an_older_cli_names_the_status_in_its_words(words: str, kind: type) -> None:
    assert type(said({"result": words}, "")) is kind


def test_errors_in_a_list_are_all_told() -> None:
    assert str(said({"result": None, "errors": ["one", 2]}, "")) == "Claude Code: one; 2"


def test_a_failure_without_words_is_named_by_its_kind() -> None:
    assert str(said({"subtype": "error_during_execution"}, "")) == "Claude Code: error_during_execution"
    assert str(said({}, "overloaded")) == "Claude Code: overloaded"


def test_a_long_complaint_is_cut() -> None:
    assert len(str(said({"result": "x" * 100_000}, ""))) < 2000
    assert len(str(silent(1, "x" * 4096))) < 2000


def test_an_end_without_an_answer_says_how() -> None:
    assert str(silent(-9, "")) == "Claude Code ended with status -9 before it had answered"
    assert str(silent(None, "no memory")) == "Claude Code was killed before it had answered: no memory"
