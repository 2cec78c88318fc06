"""The client's side of a turn: the conversation, and one text after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bigbrain.answers import Answer, Given
from bigbrain.chat import Reply
from bigbrain.errors import ModelBroke
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started, checked, collect, replay
from bigbrain.messages import Message, Response, Text, ToolCall, assistant, system, user
from bigbrain.run import Run
from bigbrain.turns import Turn


def turning(*messages: Message, live: bool = True, last: bool = True) -> tuple[Turn, list[Event]]:
    """A turn and the events that its client gets."""
    events: list[Event] = []
    answer = Answer(Given(), events.append) if live else None
    return Turn(messages, run=Run(id="r"), answer=answer, last=last), events


def read(events: list[Event]) -> str:
    return collect(checked([Started("r", "m"), *events, Finished("end")])).text


def broken() -> Iterator[str]:
    yield "so "
    yield "far"
    raise ModelBroke


def test_the_last_message_is_no_instruction() -> None:
    turn, _ = turning(user("hi"), system("be kind"))

    assert turn.last == user("hi")
    assert turning(system("be kind"))[0].last == Message("user")


@pytest.mark.parametrize("live", [True, False])
def test_what_was_said_before_a_break_stays_said(live: bool) -> None:
    turn, events = turning(live=live)

    with pytest.raises(ModelBroke):
        turn.reply(broken())
    turn.reply("sorry")

    assert turn.made == (assistant("so far"), assistant("sorry"))
    if live:
        assert read(events) == "so far\n\nsorry"


@pytest.mark.parametrize("live", [True, False])
def test_a_relayed_answer_that_breaks_off_stays_said_without_its_calls(live: bool) -> None:
    def events() -> Iterator[Event]:
        yield Started("x", "m")
        yield from (Opened(0, Text()), Delta(0, "so far"), Closed(0))
        yield from (Opened(1, ToolCall("c", "f")), Delta(1, '{"pa'))
        raise ModelBroke

    turn, told = turning(live=live, last=False)
    with pytest.raises(ModelBroke):
        turn.relay(Reply(events()))
    turn.reply("sorry")

    assert turn.made == (assistant("so far"), assistant("sorry"))
    if live:
        assert read(told) == "so far\n\nsorry"


@pytest.mark.parametrize("live", [True, False])
def test_a_reply_inside_another_is_refused(live: bool) -> None:
    turn, events = turning(live=live)
    refused = list[str]()

    def pieces() -> Iterator[str]:
        yield "a"
        for inner in (
            lambda: turn.reply("no"),
            lambda: turn.relay(Reply(replay(Response(parts=(Text("no"),))))),
            turn.stream,
        ):
            with pytest.raises(ValueError, match="another reply is being given") as caught:
                inner()
            refused.append(str(caught.value))
        yield "b"

    turn.reply(pieces())

    assert len(refused) == 3
    assert turn.made == (assistant("ab"),)
    if live:
        assert read(events) == "ab"


def test_texts_stand_in_the_order_in_which_they_were_begun() -> None:
    turn, events = turning()
    first = turn.stream()
    assert first is not None
    first.write("one")
    second = turn.stream()
    assert second is not None
    second.write("two")
    turn.reply("three")

    assert read(events) == "one\n\ntwo\n\nthree"
    assert turn.made == (assistant("one"), assistant("two"), assistant("three"))
    for stream in (first, second):
        with pytest.raises(ValueError, match="closed"):
            stream.write("late")


def test_a_stream_closed_twice_says_its_text_once() -> None:
    turn, _ = turning()
    with turn.stream() as stream:  # type: ignore[union-attr]
        stream.write("x")
        stream.close()
    turn.close()

    assert turn.made == (assistant("x"),)


def test_an_empty_reply_is_none() -> None:
    turn, events = turning()
    turn.reply("")
    turn.reply(())
    turn.relay(Reply(replay(Response(stop="end"))))

    assert (turn.made, events) == ((), [])
