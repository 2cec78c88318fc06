"""The client's side of a turn: the conversation, and one text after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from bigbrain.answers import Answer, Given
from bigbrain.chat import Chat, Reply
from bigbrain.checkpoints import Checkpoint
from bigbrain.errors import ModelBroke, PayloadError, RunCancelled, RunError, SchemaError
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started, checked, collect, replay
from bigbrain.messages import Message, Request, Response, Text, ToolCall, ToolResult, Usage, assistant, system, user
from bigbrain.run import Run
from bigbrain.tools import tool
from bigbrain.turns import Turn
from bigbrain.webhooks.payloads import write_body
from tests.scripted import Script, call, says


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


def test_the_conversation_is_read_as_it_is_now() -> None:
    shared = [user("hi")]
    turn = Turn(shared, run=Run(), answer=None, last=False)
    shared.append(assistant("from another member"))

    assert turn.messages == tuple(shared)
    assert turn.last == assistant("from another member")


def test_every_message_is_heard_when_it_is_made() -> None:
    heard = list[Message]()
    turn = Turn((), run=Run(), answer=None, last=False, heard=heard.append)
    turn.reply("one")
    assert heard == [assistant("one")]
    turn.relay(Reply(replay(Response(parts=(Text("two"),), stop="end"))))
    turn.call(ToolCall("c", "f"))
    turn.close()

    assert heard == [assistant("one"), assistant("two"), Message("assistant", (ToolCall("c", "f"),))]
    assert turn.made == (assistant("one"), Message("assistant", (Text("two"), ToolCall("c", "f"))))


@pytest.mark.parametrize("first", ["call", "reply"])
def test_text_and_calls_of_one_turn_leave_as_one_message(first: str) -> None:
    turn, _ = turning()
    one, two = ToolCall("a", "f"), ToolCall("b", "g")
    acts = [lambda: turn.call(one), lambda: turn.reply("let me check")]
    for act in acts if first == "call" else reversed(acts):
        act()
    turn.call(two)
    turn.close()
    turn.close()

    assert turn.made == (Message("assistant", (Text("let me check"), one, two)),)


def test_calls_without_a_reply_are_a_message_of_their_own() -> None:
    turn, _ = turning()
    turn.call(ToolCall("a", "f"))
    turn.close()

    assert turn.made == (Message("assistant", (ToolCall("a", "f"),)),)


def test_a_message_is_replied_by_its_text() -> None:
    turn, events = turning()
    turn.reply(Message("user", (Text("as "), Text("said"))))

    assert turn.made == (assistant("as said"),)
    assert read(events) == "as said"


def test_the_last_choice_of_a_turn_counts() -> None:
    turn, _ = turning()
    assert turn.selected is None
    turn.select("a")
    turn.select("b")

    assert turn.selected == "b"


def test_what_the_client_sent_back_is_the_last_rounds() -> None:
    def results(*messages: Message) -> tuple[str, ...]:
        turn = Turn((), run=Run(request=Request(messages=messages)), answer=None, last=True)
        return tuple(result.call_id for result in turn.tool_results)

    asked, told = Message("assistant", (ToolCall("a", "f"),)), Message("tool", (ToolResult("a"), ToolResult("b")))
    assert results(user("hi")) == ()
    assert results(user("hi"), asked, told) == ("a", "b")
    assert results(user("hi"), asked, told, user("and this")) == ("a", "b")
    assert results(user("hi"), asked, told, assistant("done"), user("thanks")) == ()


def test_calls_and_results_are_paired_by_turn_and_position() -> None:
    one, two, three = (ToolCall("x", "f", f"{n}") for n in (1, 2, 3))
    first, second, third = (ToolResult("x", (Text(f"{n}"),)) for n in (1, 2, 3))
    turn, _ = turning(
        Message("assistant", (one, two)),
        Message("tool", (first, second)),
        Message("assistant", (three,)),
        Message("tool", (third,)),
        Message("assistant", (ToolCall("y", "f"),)),
    )

    assert [turn.result_of(call) for call in (one, two, three)] == [first, second, third]
    assert [turn.call_of(result) for result in (first, second, third)] == [one, two, three]
    assert turn.result_of(ToolCall("y", "f")) is None


def test_a_counterpart_from_elsewhere_is_known_by_its_id_only() -> None:
    turn, _ = turning(Message("assistant", (ToolCall("x", "f", "{}"),)), Message("tool", (ToolResult("x"),)))

    assert turn.call_of(ToolResult("z")) == ToolCall("z", "")
    assert turn.result_of(ToolCall("z", "f")) is None
    assert turn.call_of(ToolResult("x", (Text("rebuilt"),))) == ToolCall("x", "f", "{}")
    assert turn.result_of(ToolCall("x", "rebuilt")) == ToolResult("x")


@dataclass
class Order:
    id: int
    when: datetime


def test_a_trigger_hands_its_data_over_checked() -> None:
    carried = {"payload": {"id": 7, "when": "2026-01-02T00:00:00Z"}, "metadata": {"X-Signature": "s"}}
    turn = Turn((), run=Run(request=Request(extra={"bigbrain": carried})), answer=None, last=True)

    assert turn.payload(Order) == Order(7, datetime(2026, 1, 2, tzinfo=UTC))
    assert turn.metadata(dict[str, str]) == {"X-Signature": "s"}
    with pytest.raises(SchemaError, match="id"):
        turn.metadata(Order)


def test_a_request_carries_no_payload() -> None:
    turn, _ = turning()

    assert (turn.payload(Order), turn.payload(bytes), turn.metadata(dict[str, str])) == (None, None, None)


def test_the_body_of_a_webhook_is_had_as_a_value_and_as_the_bytes_that_came() -> None:
    body = b'{ "id":7,\t"when":"2026-01-02T00:00:00Z" }\r\n'
    carried = {"body": write_body(body, "application/json"), "payload": {"id": 8}}
    turn = Turn((), run=Run(request=Request(extra={"bigbrain": carried})), answer=None, last=True)

    assert turn.payload(bytes) == body
    assert turn.payload(Order) == Order(7, datetime(2026, 1, 2, tzinfo=UTC))
    with pytest.raises(PayloadError, match="expected a list"):
        turn.payload(list[int])


def test_a_seeded_payload_in_bytes_is_its_json() -> None:
    carried = {"payload": {"id": 7}}
    turn = Turn((), run=Run(request=Request(extra={"bigbrain": carried})), answer=None, last=True)

    assert turn.payload(bytes) == b'{"id":7}'


@pytest.mark.parametrize("body", [b"", b"null"])
def test_an_empty_body_is_no_payload(body: bytes) -> None:
    carried = {"body": write_body(body, "application/json")}
    turn = Turn((), run=Run(request=Request(extra={"bigbrain": carried})), answer=None, last=True)

    assert (turn.payload(Order), turn.payload(bytes)) == (None, body)


def test_a_key_for_side_effects_is_the_same_in_every_attempt_and_different_elsewhere() -> None:
    def key(run: Run) -> str:
        return Turn((), run=run, answer=None, last=True).idempotency_key

    first = key(Run(id="r", path="0", attempt=1))
    assert first == key(Run(id="r", path="0", attempt=2))
    assert len({first, key(Run(id="r", path="1")), key(Run(id="r0", path="")), key(Run(id="s", path="0"))}) == 4


def test_a_turn_knows_what_was_spent_and_whether_to_go_on() -> None:
    run = Run(id="r")
    turn = Turn((), run=run, answer=None, last=True)
    run.purse.spend(Usage(3, 4))
    assert (turn.spent, turn.run_id, turn.cancelled) == (Usage(3, 4), "r", False)
    turn.check()

    run.scope.cancel(RunCancelled())
    assert turn.cancelled
    with pytest.raises(RunCancelled):
        turn.check()


def test_a_checkpoint_that_was_reached_holds_nobody_up() -> None:
    turn, _ = turning()
    there = Checkpoint("there")
    with pytest.raises(RunError, match="`there`"):
        turn.wait_for(there, timeout=0.01)
    turn.reach(there)

    turn.wait_for(there, timeout=0.01)


@pytest.mark.parametrize("live", [True, False])
def test_a_tool_loop_is_replied_and_relayed_with_the_same_text(live: bool) -> None:
    @tool
    def look() -> str:
        """Looks."""
        return "21"

    for give in ("reply", "relay"):
        chat = Chat(Script(says("let me see", call("look")), says("it is ", "21")))
        turn, events = turning(live=live)
        getattr(turn, give)(chat.resolve("go", tools=[look]))
        turn.close()

        assert [message.text for message in turn.made] == ["let me see\n\nit is 21"]
        assert [message.calls for message in turn.made] == [()]
        if live:
            assert read(events) == "let me see\n\nit is 21"
