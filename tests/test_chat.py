"""What a handler may do with a model's reply, and what each of it costs."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from bigbrain.budgets import Budget, Purse
from bigbrain.chat import Chat, Reply
from bigbrain.errors import BudgetSpent, ModelBroke, ModelRefused, RunCancelled, WiringError
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started, replay
from bigbrain.messages import Request, Response, Text, Thinking, ToolCall, ToolSpec, Usage, assistant, system, user
from bigbrain.models import FixedModel, Model
from bigbrain.run import Run
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.trace import TraceEvent, Trail
from tests.models.asking import asks, spec
from tests.scripted import COST, Script, call, says
from tests.upstream import Upstream

SPENT = Usage(10, 3)


class Source:
    """A model's stream that remembers how it was used."""

    def __init__(self, *pieces: str, error: Exception | None = None, finish: bool = True) -> None:
        self.pieces = pieces
        self.error = error
        self.finish = finish
        self.given = 0
        self.ended = ""

    def events(self) -> Generator[Event]:
        try:
            for event in self._events():
                self.given += 1
                yield event
            if self.error:
                raise self.error
            self.ended = "whole"
        except GeneratorExit:
            self.ended = "closed"
            raise

    def _events(self) -> Iterator[Event]:
        yield Started("x", "m", 0, Usage(10))
        yield Opened(0, Text())
        yield from (Delta(0, piece) for piece in self.pieces)
        if not self.error and self.finish:
            yield Closed(0)
            yield Finished("end", SPENT)

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        return self.events()


def test_a_reply_can_be_read_twice_and_in_every_way() -> None:
    source, spent = Source("a", "b"), list[Usage]()
    reply = Reply(source.events(), spent.append)

    assert list(reply) == ["a", "b"]
    assert list(reply) == ["a", "b"]
    assert reply.text == "ab"
    assert reply.usage == SPENT
    assert spent == [SPENT]


def test_a_text_that_was_waited_for_can_still_be_iterated() -> None:
    reply = Reply(Source("a", "b").events())

    assert (reply.text, list(reply)) == ("ab", ["a", "b"])


def test_two_readers_of_one_reply_do_not_take_from_each_other() -> None:
    reply = Reply(Source("a", "b", "c").events())
    one, other = iter(reply), iter(reply)

    assert [next(one), next(other), next(other), next(one)] == ["a", "a", "b", "b"]
    assert reply.text == "abc"


def test_a_reply_flows_as_it_is_read() -> None:
    source = Source("a", "b")
    pieces = iter(Reply(source.events()))

    assert source.given == 0
    assert next(pieces) == "a"
    assert source.given == 3


def test_a_reply_that_is_read_to_its_end_lets_its_source_run_out() -> None:
    """What a source does after its last event gives the connection to the model back for the next call."""
    for read in (lambda reply: reply.text, list):
        source = Source("a")
        read(Reply(source.events()))

        assert source.ended == "whole"


def test_closing_ends_the_source_and_spends_what_was_reported_once() -> None:
    source, spent = Source("a", "b"), list[Usage]()
    reply = Reply(source.events(), spent.append)
    next(iter(reply))

    reply.close()
    reply.close()

    assert source.ended == "closed"
    assert spent == [Usage(10)]


def test_a_reply_that_was_closed_is_not_a_short_one() -> None:
    reply = Reply(Source("a", "b").events())
    pieces = iter(reply)
    next(pieces)
    reply.close()

    with pytest.raises(ValueError, match="closed"):
        next(pieces)
    with pytest.raises(ValueError, match="closed"):
        reply.text
    assert reply.so_far.text == "a"


def test_closing_a_reply_that_is_complete_changes_nothing() -> None:
    reply = Reply(Source("a").events())
    assert reply.text == "a"

    reply.close()

    assert (reply.text, list(reply)) == ("a", ["a"])


def test_a_reply_that_breaks_off_says_so_to_everybody_and_is_paid_once() -> None:
    spent = list[Usage]()
    reply = Reply(Source("a", error=ModelBroke("gone")).events(), spent.append)
    heard = list[str]()

    for _ in range(2):
        with pytest.raises(ModelBroke, match="gone"):
            heard.extend(reply)
    with pytest.raises(ModelBroke, match="gone"):
        reply.text
    with pytest.raises(ModelBroke, match="gone"):
        reply.message
    assert heard == ["a", "a"]
    assert reply.so_far.text == "a"
    assert spent == [Usage(10)]


def test_an_answer_that_stops_without_an_end_broke_off() -> None:
    reply = Reply(Source("a", finish=False).events())

    with pytest.raises(ModelBroke, match="without an end"):
        reply.text


def test_thinking_and_calls_are_not_text() -> None:
    parts = (Thinking("hm"), Text("a"), ToolCall("c", "f", '{"x":1}'), Text("b"))
    reply = Reply(replay(Response(parts=parts, stop="calls")))

    assert list(reply) == ["a", "b"]
    assert reply.calls == (ToolCall("c", "f", '{"x":1}'),)
    assert reply.message.parts == parts


def test_asking_returns_once_the_answer_has_begun() -> None:
    source = Source("a")
    Chat(source).ask("hi")

    assert source.given == 1


def test_a_refusal_is_raised_by_asking() -> None:
    class Refusing:
        def ask(self, request: Request, scope: Scope) -> Generator[Event]:
            raise ModelRefused
            yield

    with pytest.raises(ModelRefused):
        Chat(Refusing()).ask("hi")


def test_the_model_gets_the_role_then_all_that_was_added() -> None:
    asked = list[Request]()

    class Listening:
        def ask(self, request: Request, scope: Scope) -> Generator[Event]:
            asked.append(request)
            yield from replay(Response(stop="end"))

    chat = Chat(Listening(), role="be brief").add("one", assistant("two"))
    chat.ask(user("three"))

    assert asked[0].messages == (system("be brief"), user("one"), assistant("two"), user("three"))
    assert chat.messages == (user("one"), assistant("two"), user("three"))


def test_only_a_forwarding_chat_asks_with_the_clients_tools() -> None:
    asked = list[Request]()

    class Listening:
        def ask(self, request: Request, scope: Scope) -> Generator[Event]:
            asked.append(request)
            yield from replay(Response(stop="end"))

    client = Request(tools=(ToolSpec("read"),), stop=("x",), max_tokens=5, temperature=2.0)
    chat = Chat(Listening(), run=Run(request=client))
    chat.ask("hi")
    chat.ask(forward=True)

    assert [request.tools for request in asked] == [(), (ToolSpec("read"),)]
    assert (asked[1].stop, asked[1].max_tokens, asked[1].temperature) == (("x",), 5, None)


def test_a_chat_without_a_model_says_where_one_goes() -> None:
    with pytest.raises(WiringError, match="give one to the agent"):
        Chat(None).ask("hi")


def test_a_run_that_was_stopped_asks_no_model() -> None:
    scope, source = Scope(), Source("a")
    scope.cancel(RunCancelled())

    with pytest.raises(RunCancelled):
        Chat(source, run=Run(scope=scope)).ask("hi")
    assert source.given == 0


def test_closing_a_chat_closes_what_nobody_read() -> None:
    source = Source("a", "b")
    chat = Chat(source)
    chat.ask("hi")

    chat.close()

    assert source.ended == "closed"


def test_a_chat_of_its_own_needs_no_brain() -> None:
    assert Chat(FixedModel("hi there")).ask("hello").text == "hi there"


def test_questions_one_after_the_other_share_a_connection_to_the_model() -> None:
    with Upstream() as up:
        chat = Chat(asks(up, "openai", "text:fine"))
        answers = [chat.ask(f"{n}").text for n in range(3)]

        assert answers == ["fine"] * 3
        assert (up.stats.requests, up.stats.connections) == (3, 1)


def test_a_chat_of_its_own_connects_to_its_model_with_the_first_question() -> None:
    with Upstream() as up:
        assert Chat(spec(up, "openai", "text:hi")).ask("hello").text == "hi"

        settings = Settings(api_key="k", base_url=up.openai)
        assert Chat(Model("text:hi"), settings=settings).ask("hello").text == "hi"
        assert up.requests[-1].key == "k"


def test_a_model_without_a_key_is_missed_only_when_it_is_asked() -> None:
    chat = Chat(Model("gpt-4o-mini"))

    with pytest.raises(WiringError, match="key"):
        chat.ask("hi")


def test_a_role_may_be_a_function_that_is_called_for_each_question() -> None:
    count = iter(range(9))
    model = Script("ok")
    chat = Chat(model, role=lambda: f"question {next(count)}")
    chat.ask("hi")
    chat.ask()

    assert [request.messages[0].text for request in model.requests] == ["question 0", "question 1"]


def test_an_empty_role_is_no_message() -> None:
    model = Script("ok")
    Chat(model, role=lambda: "").ask("hi")

    assert model.requests[0].messages == (user("hi"),)


def test_the_clients_choice_counts_unless_there_is_another() -> None:
    client = Request(tools=(ToolSpec("read"),), tool_choice="any", parallel_calls=False)
    model = Script("ok")
    chat = Chat(model, run=Run(request=client))
    chat.ask("hi", forward=True)
    chat.ask(forward=True, choice="none")
    chat.ask()

    assert [request.tool_choice for request in model.requests] == ["any", "none", "auto"]
    assert [request.parallel_calls for request in model.requests] == [False, False, None]


def test_nothing_is_asked_with_an_empty_purse_and_what_was_asked_is_paid_once() -> None:
    run = Run(purse=Purse(Budget(calls=1)))
    chat = Chat(Script("one"), run=run)
    reply = chat.ask("hi")
    assert (reply.text, reply.text) == ("one", "one")
    chat.close()

    with pytest.raises(BudgetSpent):
        chat.ask("again")
    assert (run.purse.spent, run.purse.calls) == (COST, 1)


def test_a_question_is_told_when_it_begins_and_when_it_ends() -> None:
    events = list[TraceEvent]()

    class Hears:
        def trace(self, event: TraceEvent) -> None:
            events.append(event)

    run = Run(trail=Trail([Hears()]))
    _ = Chat(Script("one"), run=run).ask("hi").text
    broken = Chat(Source("a", error=ModelBroke()), run=run).ask("hi")
    with pytest.raises(ModelBroke):
        broken.text
    left = Chat(FixedModel("x y"), run=run)
    left.ask("hi")
    left.close()

    assert [event.kind for event in events] == ["model.start", "model.call"] * 3
    assert [event.detail["model"] for event in events[1::2]] == ["Script", "Source", "fixed"]
    assert [event.detail.get("stop") or event.detail.get("error") for event in events[1::2]] == [
        "end",
        "model_broke",
        "closed",
    ]
    assert events[1].detail["usage"] == {"input": 10, "output": 2}


def test_the_calls_of_one_answer_are_values() -> None:
    reply = Chat(Script(says(call("f", '{"n":"3"}')))).ask("hi")

    assert reply.calls[0].input == {"n": "3"}
