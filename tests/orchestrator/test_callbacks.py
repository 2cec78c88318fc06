"""Two callbacks for two audiences: the raw protocol for developers, the clean answer for users."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bigbrain.errors import ModelBusy, WiringError
from bigbrain.orchestrator import Orchestrator, TaskResult
from bigbrain.testing import Breaks, Says, ScriptedModel
from tests.orchestrator.users import ABORT, ADD, DESCRIBE, FINISH, RETRIEVE, Desk

ANSWER = "User 1 was born in 2001."


def listened(*replies: Any, log: bool = True, token: bool = True, **options: Any) -> tuple[TaskResult, Any, Any, Any]:
    """A task with both callbacks: the result, what each heard, and the model."""
    logged: list[str] = []
    given: list[str] = []
    model = ScriptedModel(*replies)
    result = Orchestrator(Desk().agents, model=model, **options).execute_task(
        "go", log_callback=logged.append if log else None, on_token=given.append if token else None
    )
    return result, logged, given, model


def test_the_log_gets_every_reply_raw_in_its_pieces_with_a_mark_behind_each() -> None:
    replies = [DESCRIBE, "words", ADD, FINISH]

    _, logged, _, _ = listened(*(Says(chunks=(text[:9], text[9:])) if len(text) > 9 else text for text in replies))

    assert logged == [
        DESCRIBE[:9],
        DESCRIBE[9:],
        "[[END]]",
        "words",
        "[[END]]",
        ADD[:9],
        ADD[9:],
        "[[END]]",
        FINISH[:9],
        FINISH[9:],
        "[[END]]",
    ]


def test_the_log_gets_a_reply_that_gives_up_and_one_that_breaks_off() -> None:
    assert "".join(listened(ABORT)[1]) == ABORT + "[[END]]"
    assert "".join(listened(Breaks('{"action": "fin'))[1]) == '{"action": "fin' + "[[END]]"
    assert listened(ModelBusy)[1] == ["[[END]]"]


def test_on_token_gets_the_answer_only_as_the_model_writes_it() -> None:
    result, _, given, model = listened(DESCRIBE, RETRIEVE, ADD, Says(chunks=tuple(FINISH)))

    assert given == list(ANSWER)
    assert result.answer == ANSWER
    assert len(model.asked) == 4


@pytest.mark.parametrize("reply", [DESCRIBE, ADD, RETRIEVE, f"{ADD} {FINISH}", "words", '{"action": "finish"}'])
def test_on_token_gets_nothing_of_other_steps(reply: str) -> None:
    _, _, given, _ = listened(reply, ModelBusy)

    assert given == []


def test_on_token_gets_nothing_when_the_model_gives_up() -> None:
    result, _, given, _ = listened(DESCRIBE, ABORT)

    assert (result.status, given) == ("error", [])


def test_both_hear_their_own_at_once_and_each_alone_hears_the_same() -> None:
    both = listened(DESCRIBE, FINISH)
    log_only, token_only = listened(DESCRIBE, FINISH, token=False), listened(DESCRIBE, FINISH, log=False)
    neither = listened(DESCRIBE, FINISH, token=False, log=False)

    assert both[1] == log_only[1]
    assert both[2] == token_only[2]
    assert (log_only[2], token_only[1]) == ([], [])
    assert both[0] == log_only[0] == token_only[0] == neither[0]


def test_listening_costs_no_further_question() -> None:
    assert len(listened(FINISH)[3].asked) == 1


def test_escapes_are_decoded_wherever_they_are_cut() -> None:
    reply = json.dumps({"action": "finish", "answer": 'A🦊B\n"q" é'})

    for at in range(len(reply) + 1):
        result, _, given, _ = listened(Says(chunks=(reply[:at], reply[at:])))

        assert "".join(given) == 'A🦊B\n"q" é' == result.answer
        for piece in given:
            piece.encode()


@pytest.mark.parametrize(
    "reply",
    [
        '{"answer": "ok", "action": "finish"}',
        '{"tool": "finished", "input": "ok"}',
        "{'action': 'finish', 'answer': 'ok'}",
        '[{"action": "finish", "answer": "ok"}]',
        'See [1]: {"action": "finish", "answer": "ok"} That is all.',
    ],
)
def test_an_answer_in_another_form_is_given_all_the_same(reply: str) -> None:
    result, _, given, _ = listened(Says(chunks=tuple(reply)))

    assert "".join(given) == "ok" == result.answer


def test_json_is_enforced_while_it_streams() -> None:
    result, _, given, model = listened(DESCRIBE, FINISH, enforce_json_output=True)

    assert result.ok
    assert "".join(given) == ANSWER
    assert all(request.schema is not None and request.schema.schema is None for request in model.asked)
    assert "JSON" in model.last.messages[0].text


class TestDrafts:
    """What was given cannot be taken back."""

    CUT = Says('{"action": "finish", "answer": "User 1 was', stop="length")

    def test_the_next_draft_goes_on_where_the_broken_one_ended(self) -> None:
        result, _, given, model = listened(self.CUT, Says(chunks=tuple(FINISH)))

        assert result.ok
        assert "".join(given) == ANSWER == result.answer
        put_back = model.last.messages[-1].text
        assert "cut off" in put_back
        assert 'must begin with exactly this: "User 1 was"' in put_back

    def test_a_draft_that_answers_something_else_ends_the_task_and_is_not_given(self) -> None:
        result, _, given, _ = listened(self.CUT, '{"action": "finish", "answer": "User 2 was not"}', FINISH)

        assert result.status == "error"
        assert "something else" in result.answer
        assert "".join(given) == "User 1 was"

    def test_a_draft_that_is_shorter_is_put_back(self) -> None:
        result, _, given, _ = listened(self.CUT, '{"action": "finish", "answer": "User 1"}', FINISH)

        assert result.ok
        assert "".join(given) == ANSWER

    def test_a_draft_that_turns_to_a_tool_is_put_back_and_the_tool_is_not_called(self) -> None:
        result, _, given, model = listened(self.CUT, RETRIEVE, FINISH)

        assert result.ok
        assert result.tool_traces == ()
        assert "".join(given) == ANSWER
        assert "not the finish action that it began with" in model.last.messages[-1].text

    def test_two_answers_in_one_object_are_put_back_when_the_first_was_given(self) -> None:
        result, _, given, _ = listened('{"action":"finish","answer":"User","answer":"no"}', FINISH)

        assert (result.answer, "".join(given)) == (ANSWER, ANSWER)

    def test_without_a_listener_every_draft_may_be_anew(self) -> None:
        result, _, _, _ = listened(self.CUT, '{"action": "finish", "answer": "User 2 was not"}', token=False)

        assert (result.status, result.answer) == ("success", "User 2 was not")

    def test_nothing_of_an_end_that_stood_behind_a_call_is_given(self) -> None:
        _, _, given, _ = listened(ADD + '{"action": "finish", "answer": "a guess"}', FINISH)

        assert "".join(given) == ANSWER


def test_one_function_for_both_is_refused() -> None:
    heard: list[str] = []
    take = heard.append

    with pytest.raises(WiringError, match="are the same function"):
        Orchestrator(Desk().agents, model=ScriptedModel()).execute_task("go", log_callback=take, on_token=take)


def test_callbacks_are_given_by_name_only() -> None:
    execute: Any = Orchestrator(Desk().agents, model=ScriptedModel()).execute_task

    with pytest.raises(TypeError, match="positional"):
        execute("go", [], [], print)


@pytest.mark.parametrize("callback", ["log_callback", "on_token"])
def test_a_callback_that_raises_ends_the_task(callback: str) -> None:
    def raises(_: str) -> None:
        raise OSError("the socket is gone")

    arguments: dict[str, Any] = {callback: raises}
    result = Orchestrator(Desk().agents, model=ScriptedModel(FINISH)).execute_task("go", **arguments)

    assert result.status == "error"
    assert result.answer == "OSError: the socket is gone"
    assert result.error is not None
    assert isinstance(result.error.__cause__, OSError)
