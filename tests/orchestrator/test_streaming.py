"""The answer is read out of a reply while it comes, wherever the pieces are cut, and never anything else."""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigbrain.errors import SchemaError
from bigbrain.orchestrator.actions import Finish, read_reply
from bigbrain.orchestrator.streaming import AnswerStream
from tests.orchestrator.replies import ADD_TEXT, BAD, EARLY, GOOD, OK_TEXT

FOX = r'{"action":"finish","answer":"A\ud83e\udd8aB\n\"q\" \u00e9"}'
REPLIES = {name: text for name, (text, _) in (*GOOD.items(), *EARLY.items(), *BAD.items()) if len(text) < 1000}

LATE = {
    "older finish",
    "older finish with an empty agent",
    "a footnote in the words",
    "quotes in the words",
    "as the text of its JSON",
    "single quotes",
    "a comment and a comma before the end",
    "a comment to the end of the line",
    "a list of one",
}
"""Answers that are known only with the whole reply."""

HALF_TOLD = {
    "cut off in the answer": "User 1 was",
    "cut off behind the answer": "ok",
    "cut off in an escape": "a",
    "a quote too few": "ok}",
    "a quote that should be escaped": "say ",
}
"""Replies that break when a part of their answer was given already."""


def streamed(*pieces: str) -> str:
    stream = AnswerStream()
    told = [stream.feed(piece) for piece in pieces]
    for piece in told:
        piece.encode()  # raises for half of a character
    return "".join(told)


def expected(name: str) -> str:
    if name in GOOD:
        end = GOOD[name][1][0]
        return end.answer if isinstance(end, Finish) and name not in LATE else ""
    return HALF_TOLD.get(name, "")


@pytest.mark.parametrize("name", REPLIES)
def test_an_answer_is_streamed_the_same_wherever_it_is_cut(name: str) -> None:
    text = REPLIES[name]

    assert {streamed(text[:at], text[at:]) for at in range(len(text) + 1)} == {expected(name)}
    assert streamed(*text) == expected(name)
    assert streamed(text) == expected(name)


def test_an_escape_is_given_when_it_is_whole() -> None:
    stream = AnswerStream()

    told = [stream.feed(char) for char in FOX]

    assert [piece for piece in told if piece] == ["A", "🦊", "B", "\n", '"', "q", '"', " ", "é"]


def test_every_character_is_given_as_soon_as_it_is_there() -> None:
    stream = AnswerStream()
    text = '{"action": "finish", "answer": "now"}'

    told = [stream.feed(char) for char in text]

    assert told.index("n") == text.index("now")
    assert told[text.index("now") : text.index("now") + 3] == ["n", "o", "w"]


def test_an_answer_that_comes_before_its_action_is_held_until_it_is_known() -> None:
    stream = AnswerStream()

    assert stream.feed('{"answer": "held", ') == ""
    assert stream.feed('"action": "fin') == ""
    assert stream.feed('ish"') == "held"


@pytest.mark.parametrize("action", ["describe", "call", "abort", "think"])
def test_nothing_of_another_action_is_streamed(action: str) -> None:
    assert streamed(*f'{{"action": "{action}", "answer": "secret", "agent": "a", "tool": "t"}}') == ""
    assert streamed(*f'{{"answer": "secret", "action": "{action}"}}') == ""


def test_nothing_behind_a_call_is_streamed() -> None:
    assert streamed(*(ADD_TEXT + OK_TEXT)) == ""


def test_an_answer_inside_an_input_is_not_streamed() -> None:
    text = '{"action":"call","agent":"a","tool":"t","input":{"action":"finish","answer":"secret"}}'

    assert streamed(*text) == ""
    assert streamed(*text.replace('"action":"call",', "")) == ""


def test_a_second_answer_is_not_streamed_behind_the_first() -> None:
    assert streamed(*'{"action":"finish","answer":"one","answer":"two"}') == "one"


def test_a_long_reply_in_small_pieces_takes_no_time() -> None:
    answer = "word " * 2_000
    for text in (json.dumps({"action": "finish", "answer": answer}), '{"n": ' + "1" * 10_000, "{" + " " * 10_000):
        assert streamed(*text) in (answer, "")


texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["🦊", "\\", '"', "\n", "}", "{", "/*", "//", "'", "```", "\u2028", "\x00", "é北"]
)
answers = st.lists(texts, max_size=5).map("".join)


@st.composite
def finishing(draw: st.DrawFn) -> tuple[str, str]:
    """A reply that finishes, in one of many spellings, and its answer."""
    answer = draw(answers)
    fields = [("action", draw(st.sampled_from(["finish", "FINISH", " finish"]))), ("answer", answer)]
    fields += draw(st.lists(st.tuples(st.sampled_from(["note", "n"]), texts | st.integers() | st.none()), max_size=2))
    written = dict(draw(st.permutations(fields)))
    ascii_only, indent = draw(st.booleans()), draw(st.sampled_from([None, 0, 2]))
    before = draw(st.sampled_from(["", "Well: ", "```json\n", "Use {x}: ", "\ufeff", "I see {}. "]))
    behind = draw(st.sampled_from(["", "\n```", " Anything else?", ' {"action": "call"', "}"]))
    return before + json.dumps(written, ensure_ascii=ascii_only, indent=indent) + behind, answer


@settings(max_examples=25, deadline=None)
@given(finishing(), st.data())
def test_what_is_streamed_is_the_parsed_answer(reply: tuple[str, str], data: st.DataObject) -> None:
    text, answer = reply
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]

    assert read_reply(text).end == Finish(answer)
    assert streamed(*pieces) == answer
    assert all(streamed(text[:at], text[at:]) == answer for at in range(0, len(text), 3))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([*'{}[]":,\\/', "'", "action", "answer", "finish", "call", "tool", " ", "1", "u00e9"])))
def test_no_reply_streams_what_is_not_the_beginning_of_its_answer(tokens: list[str]) -> None:
    text = "".join(tokens)
    told = streamed(*text)
    try:
        end = read_reply(text).end
    except SchemaError:
        return

    assert told == "" or (isinstance(end, Finish) and end.answer.startswith(told))


def test_the_lone_halves_are_what_the_parser_makes_of_them() -> None:
    for escapes in (r"\ud83e", r"\udd8a", r"\ud83e\ud83e", r"\udd8a\ud83e", r"\ud83e\udd8a\ud83e", r"\ud83ex\udd8a"):
        text = f'{{"action":"finish","answer":"{escapes}"}}'

        assert read_reply(text).end == Finish(streamed(*text))
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(f'"{escapes}"')
