"""What the flows of a brain do to the answer, from a request to its last event."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator

import msgspec
import pytest

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.engine.records import NewRun
from bigbrain.errors import ModelBusy, WiringError
from bigbrain.events import Delta, Event, Started, replay
from bigbrain.flows import Flow, respond
from bigbrain.messages import AnswerSchema, Message, Request, Response, Text, ToolCall, ToolSpec, Usage, user
from bigbrain.models import FixedModel, Model
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.turns import Turn
from tests.house import living
from tests.upstream import Upstream


def saying(*texts: str) -> Flow:
    """A flow that replies with these texts."""

    @agent
    def say(turn: Turn, chat: Chat) -> None:
        for text in texts:
            turn.reply(text)

    return Flow(say)


class Spending:
    """A model that says `x` for 10 tokens in and 2 out."""

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        yield from replay(Response(parts=(Text("x"),), stop="end", usage=Usage(10, 2)))


def test_a_plain_agent_answers_as_its_model_does() -> None:
    with living(Brain("b", Flow(model=FixedModel("At your service.")))) as house:
        answer = house.ask("hello")

    assert (answer.text, answer.stop, answer.model) == ("At your service.", "end", "b")


def test_a_handler_replies_with_what_its_model_said() -> None:
    @agent
    def shout(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.ask(turn.last).text.upper())

    with living(Brain("b", Flow(shout, model=FixedModel("hi")))) as house:
        assert house.ask("hello").text == "HI"


def test_a_reply_of_pieces_reaches_the_client_piece_by_piece() -> None:
    @agent
    def count(turn: Turn, chat: Chat) -> None:
        turn.reply(str(n) for n in range(5))

    with living(Brain("b", Flow(count))) as house:
        events = house.events("go")

    assert "".join(event.text for event in events if isinstance(event, Delta)) == "01234"


def test_an_async_handler_may_wait_and_reply() -> None:
    @agent
    async def wait(turn: Turn, chat: Chat) -> None:
        await asyncio.sleep(0)
        turn.reply("waited")

    with living(Brain("b", Flow(wait))) as house:
        assert house.ask("go").text == "waited"


def test_the_stages_of_an_answer_are_separated_by_a_blank_line() -> None:
    with living(Brain("b", saying("one") >> respond >> saying("two") >> respond)) as house:
        answer = house.ask("go")

    assert answer.text == "one\n\ntwo"


def test_a_stage_holds_the_replies_of_all_its_flows_in_order() -> None:
    with living(Brain("b", saying("a", "b") >> saying("c") >> respond)) as house:
        assert house.ask("go").text == "a\n\nb\n\nc"


def test_without_a_stage_the_answer_is_what_the_last_flow_said() -> None:
    with living(Brain("b", saying("aside") >> saying("answer"))) as house:
        assert house.ask("go").text == "answer"


def test_without_a_stage_a_silent_last_flow_leaves_the_last_message_as_the_answer() -> None:
    with living(Brain("b", saying("first", "second") >> saying())) as house:
        assert house.ask("go").text == "second"


def test_an_answer_of_nothing_is_empty_and_no_echo() -> None:
    with living(Brain("b", saying() >> respond)) as house:
        answer = house.ask("say nothing")

    assert (answer.parts, answer.stop) == ((), "end")


def test_an_empty_stage_adds_nothing() -> None:
    with living(Brain("b", saying("one") >> respond >> saying() >> respond >> saying("two") >> respond)) as house:
        assert house.ask("go").text == "one\n\ntwo"


def test_what_comes_after_the_last_stage_runs_on_and_is_not_told() -> None:
    seen: list[str] = []

    @agent
    def after(turn: Turn, chat: Chat) -> None:
        seen.append(turn.messages[-1].text)
        turn.reply("not for the client")

    with living(Brain("b", saying("answer") >> respond >> Flow(after))) as house:
        answer = house.ask("go", "r")
        record = house.record("r")

    assert answer.text == "answer"
    assert seen == ["answer"]
    assert record.status == "done"


def test_a_failure_after_the_last_stage_is_recorded_and_not_told() -> None:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise ValueError("too late")

    with living(Brain("b", saying("answer") >> respond >> Flow(fail))) as house:
        answer = house.ask("go", "r")
        record = house.record("r")

    assert answer.text == "answer"
    assert (record.status, record.error["code"]) == ("failed", "handler_failed")
    assert "too late" in record.error["detail"]


def test_a_handlers_own_words_never_reach_the_client() -> None:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise ValueError("/etc/secret")

    with living(Brain("b", Flow(fail))) as house:
        failed = house.fail("go", "r")

    assert (failed.code, failed.status) == ("handler_failed", 500)
    assert "secret" not in failed.message


@pytest.mark.parametrize("error", [SystemExit(3), KeyError("k"), AssertionError()])
def test_whatever_a_handler_raises_ends_its_run_only(error: BaseException) -> None:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise error

    with living(Brain("b", Flow(fail))) as house:
        assert house.fail("go").code == "handler_failed"
        assert house.fail("go").code == "handler_failed"


def test_an_error_of_the_model_keeps_its_status() -> None:
    @agent
    def busy(turn: Turn, chat: Chat) -> None:
        raise ModelBusy("quota of key sk-123 is used up", retry_after=2)

    with living(Brain("b", Flow(busy))) as house:
        failed = house.fail("go")

    assert (failed.status, failed.retryable, failed.retry_after) == (429, True, 2)
    assert "sk-123" not in failed.message


def test_a_reply_that_breaks_off_fails_the_answer_after_what_came_before() -> None:
    def pieces() -> Iterator[str]:
        yield "so far"
        raise ModelBusy

    @agent
    def reply(turn: Turn, chat: Chat) -> None:
        turn.reply(pieces())

    with living(Brain("b", Flow(reply))) as house:
        *events, failed = house.events("go")

    assert [event.text for event in events if isinstance(event, Delta)] == ["so far"]
    assert failed.code == "model_busy"  # type: ignore[union-attr]


def test_a_plain_agent_hands_the_models_calls_to_the_client() -> None:
    call = ToolCall("c1", "read", '{"a":1}')
    with living(Brain("b", Flow(model=FixedModel("Let me see.", calls=(call,))))) as house:
        answer = house.ask(Request(messages=(user("go"),), tools=(ToolSpec("read"),)))

    assert answer.parts == (Text("Let me see."), call)
    assert answer.stop == "calls"


def test_calls_wait_for_the_end_of_the_answer_where_a_later_flow_may_answer_them() -> None:
    call = ToolCall("c1", "read", "{}")
    plain = Flow(model=FixedModel("one", calls=(call,)))
    with living(Brain("b", plain >> respond >> saying("two") >> respond)) as house:
        answer = house.ask("go")

    assert answer.parts == (Text("one"), Text("\n\ntwo"), call)
    assert answer.stop == "calls"


def test_stale_calls_of_the_clients_own_history_are_not_sent_back() -> None:
    called = Message("assistant", (ToolCall("old", "read", "{}"),))
    stale = Request(messages=(user("go"), called, user("never mind")))
    with living(Brain("b", Flow(model=FixedModel("fine")))) as house:
        answer = house.ask(stale)

    assert (answer.text, answer.stop) == ("fine", "end")


def test_a_stream_shapes_the_pieces_and_is_recorded() -> None:
    seen: list[str] = []

    @agent
    def shape(turn: Turn, chat: Chat) -> None:
        stream = turn.stream()
        assert stream is not None
        with stream:
            for piece in chat.ask(turn.last):
                stream.write(piece.upper())

    @agent
    def after(turn: Turn, chat: Chat) -> None:
        seen.append(turn.messages[-1].text)

    with living(Brain("b", Flow(shape, model=FixedModel("hi there")) >> respond >> Flow(after))) as house:
        answer = house.ask("go", "r")
        house.record("r")

    assert answer.text == "HI THERE"
    assert seen == ["HI THERE"]


def test_a_flow_in_the_middle_of_a_stage_may_not_stream() -> None:
    streams: list[object] = []

    @agent
    def middle(turn: Turn, chat: Chat) -> None:
        streams.append(turn.stream())

    with living(Brain("b", Flow(middle) >> saying("end"))) as house:
        house.ask("go")

    assert streams == [None]


def test_a_stream_that_is_left_open_still_ends() -> None:
    @agent
    def leave(turn: Turn, chat: Chat) -> None:
        stream = turn.stream()
        assert stream is not None
        stream.write("begun")
        turn.reply("then")

    with living(Brain("b", Flow(leave))) as house:
        assert house.ask("go").text == "begun\n\nthen"


def test_the_client_is_told_the_sum_of_all_that_was_spent() -> None:
    spending = Spending()

    @agent
    def twice(turn: Turn, chat: Chat) -> None:
        chat.ask("one").text
        turn.reply(chat.ask("two"))

    with living(Brain("b", Flow(twice, model=spending) >> Flow(model=spending))) as house:
        assert house.ask("go").usage == Usage(30, 6)


def test_a_brain_without_a_model_is_faulty_and_says_where() -> None:
    with pytest.raises(WiringError) as caught:
        Brain("b", Flow() >> respond >> Flow()).program()

    assert len(caught.value.faults) == 2
    assert "step 2" in caught.value.faults[1]


@pytest.mark.parametrize("changes", [{"flow": "gone"}, {"plan": "another"}, {"state": b"[]"}, {"request": b"7"}])
def test_a_run_of_another_version_of_the_brain_ends_with_a_retryable_error(changes: dict[str, object]) -> None:
    with living(Brain("b", saying("x"))) as house:
        run = NewRun(
            id="r",
            flow="b",
            plan=house.brain.program().fingerprint("b"),
            cursor="0",
            first=Started("r", "b"),
            request=b"{}",
            state=b"{}",
        )
        house.store.start(msgspec.structs.replace(run, **changes))
        house.engine.run_step("r", "0", 1)
        record = house.record("r")

    assert (record.status, record.error["code"]) == ("failed", "brain_changed")


def test_a_plain_agent_sends_on_what_shapes_the_answer_and_not_how_to_sample_it() -> None:
    tool = ToolSpec("read", schema={"type": "object", "properties": {}})
    with Upstream() as upstream:
        model = Model("text:fine", base_url=upstream.openai, temperature=0.1)
        with living(Brain("b", Flow(model=model))) as house:
            house.ask(
                Request(
                    messages=(user("go"),),
                    tools=(tool,),
                    tool_choice="none",
                    stop=("END",),
                    max_tokens=77,
                    temperature=2.0,
                    schema=AnswerSchema(),
                )
            )
        body = upstream.requests[0].body

    assert body["tools"][0]["function"]["name"] == "read"
    assert (body["tool_choice"], body["stop"], body["max_completion_tokens"]) == ("none", ["END"], 77)
    assert body["response_format"] == {"type": "json_object"}
    assert (body["model"], body["temperature"]) == ("text:fine", 0.1)


def test_the_environments_model_is_asked_where_a_brain_names_none() -> None:
    with Upstream() as upstream:
        settings = Settings(base_url=upstream.openai, model="text:from the environment")
        tree = Brain("b", Flow()).tree(settings)

    assert "text:from the environment" in tree
    assert Brain("b", Flow()).faults(settings) == ()


def test_two_calls_of_one_id_reach_the_client_as_two() -> None:
    @agent
    def calls(turn: Turn, chat: Chat) -> None:
        turn.call(ToolCall("x", "read", '{"n":1}'), ToolCall("x", "read", '{"n":2}'))

    with living(Brain("b", Flow(calls) >> saying("then") >> respond)) as house:
        answer = house.ask("go")

    assert [call.arguments for call in answer.calls] == ['{"n":1}', '{"n":2}']
    assert len({call.id for call in answer.calls}) == 2
