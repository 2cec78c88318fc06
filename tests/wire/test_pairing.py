"""Calls and results stand in pairs, whatever a history looks like."""

from __future__ import annotations

from bigbrain.messages import Message, Text, ToolCall, ToolResult, assistant, user
from bigbrain.wire.pairing import NO_RESULT, fresh_id, paired


def calls(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(id, "w") for id in ids))


def results(*pairs: tuple[str, str]) -> Message:
    return Message("tool", tuple(ToolResult(id, (Text(text),)) for id, text in pairs))


def missing(id: str) -> ToolResult:
    return ToolResult(id, (Text(NO_RESULT),), is_error=True)


def test_a_conversation_in_order_stays_as_it_is() -> None:
    told = (user("go"), calls("a", "b"), results(("b", "1"), ("a", "2")), assistant("done"))

    assert paired(told) == told


def test_an_id_used_again_in_a_later_turn_is_changed_on_call_and_result() -> None:
    told = (calls("call_0"), results(("call_0", "first")), calls("call_0"), results(("call_0", "second")))

    assert paired(told) == (
        calls("call_0"),
        results(("call_0", "first")),
        calls("call_0_2"),
        results(("call_0_2", "second")),
    )


def test_one_id_twice_in_a_turn_is_paired_by_position() -> None:
    told = (calls("a", "a"), results(("a", "first"), ("a", "second")))

    assert paired(told) == (calls("a", "a_2"), results(("a", "first"), ("a_2", "second")))


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    told = (calls("a", "b"), results(("b", "1")), user("go on"), calls("c"))

    assert paired(told) == (
        calls("a", "b"),
        Message("tool", (*results(("b", "1")).results, missing("a"))),
        user("go on"),
        calls("c"),
        Message("tool", (missing("c"),)),
    )


def test_a_result_that_comes_late_is_moved_to_its_round() -> None:
    told = (calls("a"), user("wait"), results(("a", "1")))

    assert paired(told) == (calls("a"), results(("a", "1")), user("wait"))


def test_a_result_without_a_call_is_left_out() -> None:
    assert paired((results(("lost", "1")), user("go"))) == (user("go"),)


def test_a_call_without_an_id_gets_one() -> None:
    assert paired((calls(""), results(("", "1")))) == (calls("call"), results(("call", "1")))


def test_a_fresh_id_avoids_all_that_are_taken() -> None:
    taken = {"a", "a_2"}

    assert (fresh_id("a", taken), fresh_id("b", taken), taken) == ("a_3", "b", {"a", "a_2", "a_3", "b"})
