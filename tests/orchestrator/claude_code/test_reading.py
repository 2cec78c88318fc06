"""The lines of the CLI become one reply, told once, whatever way it comes to be."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from bigbrain.errors import ModelBroke
from bigbrain.messages import Usage
from bigbrain.orchestrator.claude_code.reading import Reading
from bigbrain.orchestrator.claude_code.retelling import Retelling


def line(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, **fields}).encode()


def frame(kind: str, **fields: Any) -> bytes:
    return line("stream_event", event={"type": kind, **fields}, parent_tool_use_id=None)


def start(name: str = "m1") -> bytes:
    return frame("message_start", message={"id": name, "usage": {"input_tokens": 5, "output_tokens": 1}})


def delta(text: str) -> bytes:
    return frame("content_block_delta", delta={"type": "text_delta", "text": text})


def whole(text: str, name: str = "m1", **fields: Any) -> bytes:
    return line("assistant", message={"id": name, "content": [{"type": "text", "text": text}]}, **fields)


def end(stop: str) -> bytes:
    return frame("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 4})


def result(text: str | None, **fields: Any) -> bytes:
    return line("result", result=text, **fields)


def read(*lines: bytes) -> tuple[Reading, list[str]]:
    pieces: list[str] = []
    reading = Reading(pieces.append)
    for each in lines:
        reading.line(each)
    return reading, pieces


def test_a_reply_is_told_piece_by_piece_and_not_again_as_a_whole() -> None:
    reading, pieces = read(start(), delta("a"), delta("b"), whole("ab"), end("end_turn"), result("ab"))

    assert pieces == ["a", "b"]
    assert reading.text == "ab"
    assert reading.stop == "end"


def test_a_message_of_two_blocks_is_one_reply() -> None:
    reading, pieces = read(start(), delta("a"), whole("a"), delta("b"), whole("b"), end("end_turn"), result("b"))

    assert pieces == ["a", "b"]
    assert reading.text == "ab"


def test_thinking_is_no_part_of_the_reply() -> None:
    thinking = frame("content_block_delta", delta={"type": "thinking_delta", "thinking": "hm"})
    block = line("assistant", message={"id": "m1", "content": [{"type": "thinking", "thinking": "hm"}]})

    assert read(start(), thinking, block, delta("a"), whole("a"), end("end_turn"), result("a"))[1] == ["a"]


def test_without_pieces_the_reply_comes_at_once() -> None:
    assert read(whole("all"), result("all"))[1] == ["all"]
    assert read(result("all"))[1] == ["all"]


def test_a_draft_that_was_given_up_unheard_leaves_no_trace() -> None:
    reading, pieces = read(start("m1"), start("m2"), delta("a"), whole("a", "m2"), end("end_turn"), result("a"))

    assert pieces == ["a"]
    assert reading.text == "a"


def test_a_draft_that_is_followed_by_a_whole_message_is_completed_by_it() -> None:
    reading, pieces = read(start("m1"), delta("one "), whole("one two", "m2"), result("one two"))

    assert pieces == ["one ", "two"]
    assert reading.text == "one two"


def test_a_draft_that_is_not_taken_up_again_is_an_error() -> None:
    reading, _ = read(start("m1"), delta("one two"), whole("one", "m2"), result("one"))

    with pytest.raises(ModelBroke, match="made it shorter"):
        reading.text


def test_a_refused_message_that_was_told_cannot_be_replaced() -> None:
    with pytest.raises(ModelBroke, match="began its answer anew"):
        read(start("m1"), delta("I cannot"), whole("I cannot"), end("refusal"), start("m2"), delta("fine"))


def test_continuations_may_break_off_too() -> None:
    first = (start("m1"), delta("one "), whole("one ", "m1"), end("max_tokens"))
    reading, pieces = read(
        *first, start("m2"), delta("tw"), start("m3"), delta("two"), whole("two", "m3"), end("end_turn"), result("two")
    )

    assert "".join(pieces) == reading.text == "one two"


def test_the_words_of_an_error_are_no_reply() -> None:
    reading, pieces = read(
        whole("API Error: no", "x", error="overloaded", is_api_error_message=True),
        result("API Error: no", is_error=True),
    )

    assert pieces == []
    assert reading.fault == "overloaded"


def test_a_sub_agents_words_are_no_reply() -> None:
    assert read(whole("inner", "s", parent_tool_use_id="t1"), whole("outer"), result("outer"))[1] == ["outer"]


def test_what_a_call_cost_is_the_last_word_or_else_what_its_messages_said() -> None:
    lines = start("m1"), end("max_tokens"), start("m2")

    assert read(*lines)[0].usage == Usage(input=10, output=5)
    assert read(*lines, result("", usage={"input_tokens": 9, "output_tokens": 8}))[0].usage == Usage(input=9, output=8)
    assert read(result("", usage={"input_tokens": "many"}))[0].usage == Usage()


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"   ",
        b"{}",
        line("weather", temperature=[1]),
        line("assistant"),
        line("assistant", message={"id": None, "content": "text"}),
        line("assistant", message={"content": [1, {"type": "text"}]}),
        line("stream_event", event=None),
        line("stream_event", event={"type": "content_block_delta", "delta": []}),
        line("stream_event", event={"type": "message_start", "message": 3}),
        line("user", message={"content": "?"}),
    ],
)
def test_a_line_that_means_nothing_to_us_does_no_harm(odd: bytes) -> None:
    reading, pieces = read(odd, start(), delta("a"), whole("a"), end("end_turn"), result("a"))

    assert "".join(pieces) == reading.text == "a"


@pytest.mark.parametrize("odd", [b"{oops", b"[1]", b"42", b"null", b"[" * 50_000, b"\xff\xfe", b"Update available!"])
def test_a_line_that_is_no_json_object_is_an_error(odd: bytes) -> None:
    with pytest.raises(ModelBroke, match="a line that is no JSON object"):
        read(odd)


def test_a_character_cut_in_two_halves_is_told_whole() -> None:
    lines = start(), delta("A\ud83e"), delta("\udd8aB"), whole("A🦊B"), end("end_turn"), result("A🦊B")

    assert read(*lines)[1] == ["A", "🦊B"]


def test_half_a_character_is_never_told() -> None:
    reading, _ = read(start(), delta("A\udd8aB\ud83e"), end("end_turn"), result("?"))

    assert reading.text == "A\ufffdB"


def test_however_often_it_breaks_off_what_is_told_is_the_reply() -> None:
    text = "ab🦊\n d"
    lengths, sizes = range(len(text) + 1), (1, 2, 5)
    for first, second, cut, size in product(lengths, lengths, sizes, sizes):
        lines = []
        for number, draft in enumerate((text[:first], text[:second])):
            lines += [start(f"d{number}"), *(delta(draft[at : at + cut]) for at in range(0, len(draft), cut))]
        pieces = [delta(text[at : at + size]) for at in range(0, len(text), size)]
        reading, told = read(*lines, start("m"), *pieces, whole(text, "m"), end("end_turn"), result(text))

        assert "".join(told) == reading.text == text


def test_a_long_reply_that_begins_anew_is_read_in_one_go() -> None:
    told: list[str] = []
    retelling = Retelling(told.append)
    for _ in range(2):
        retelling.again(0)
        for _ in range(100_000):
            retelling.write("word ")

    assert len(told) == 100_000
    assert retelling.complete
