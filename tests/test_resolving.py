"""The tool loop: what is run, what the model reads of it, what the answer is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigbrain.budgets import Budget, Purse
from bigbrain.chat import Chat
from bigbrain.errors import BudgetSpent, ModelBroke, RunCancelled, ToolError, WiringError
from bigbrain.events import Delta, Finished, checked
from bigbrain.messages import (
    ForcedTool,
    Message,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    user,
)
from bigbrain.models.spec import Provider
from bigbrain.run import Run
from bigbrain.scope import Scope
from bigbrain.tools import Tool, tool
from bigbrain.trace import TraceEvent, Trail
from tests.models.asking import asks
from tests.scripted import COST, Script, call, says
from tests.upstream import Upstream
from tests.upstream_answers import Answer, Call


@tool
def double(x: int) -> int:
    """Doubles a number."""
    return 2 * x


@tool
def nothing() -> str:
    """Does nothing."""
    return "done"


def test_the_model_reads_what_the_function_gave_and_answers() -> None:
    model = Script(says(call("double", '{"x":21}')), "42")
    chat = Chat(model)

    reply = chat.resolve("what is 2*21?", tools=[double])

    assert reply.text == "42"
    assert chat.messages == (
        user("what is 2*21?"),
        Message("assistant", (call("double", '{"x":21}'),)),
        Message("tool", (ToolResult("c1", (Text("42"),)),)),
    )
    assert [request.tools for request in model.requests] == [(double.spec,)] * 2


def test_asking_never_runs_a_function_and_offers_tools_for_one_answer_only() -> None:
    ran = list[int]()

    @tool
    def touch() -> None:
        """Leaves a trace."""
        ran.append(1)

    model = Script(says(call("touch")), "ok")
    chat = Chat(model)

    assert chat.ask("go", tools=[touch], choice="any").calls == (call("touch"),)
    chat.ask()
    assert ran == []
    assert [(request.tools, request.tool_choice) for request in model.requests] == [
        ((touch.spec,), "any"),
        ((), "auto"),
    ]


def test_the_functions_of_one_round_run_at_the_same_time_and_keep_their_order() -> None:
    meeting = threading.Barrier(3, timeout=5)

    @tool
    def meet(name: str) -> str:
        """Waits for the others."""
        meeting.wait()
        return name

    calls = [call("meet", f'{{"name":"{name}"}}', id=name) for name in "abc"]
    model = Script(says(*calls), "met")
    Chat(model).resolve("go", tools=[meet])

    assert model.results == [("a", "a", False), ("b", "b", False), ("c", "c", False)]


def test_many_calls_of_one_round_all_run() -> None:
    calls = [call("double", f'{{"x":{n}}}', id=str(n)) for n in range(50)]
    model = Script(says(*calls), "ok")
    Chat(model).resolve("go", tools=[double])

    assert [text for _, text, _ in model.results] == [str(2 * n) for n in range(50)]


class Empty(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "told"),
    [(KeyError("k"), "KeyError: 'k'"), (Empty(), "Empty"), (SystemExit(1), "SystemExit: 1"), (ToolError("no"), "no")],
)
def test_one_bad_call_of_a_round_costs_no_other_its_result(error: BaseException, told: str) -> None:
    ran = list[str]()

    @tool
    def ok() -> str:
        """Writes a row."""
        ran.append("ok")
        return "1"

    @tool
    def boom() -> str:
        """Fails."""
        raise error

    model = Script(says(call("ok", id="1"), call("boom", id="2"), call("nope", id="3")), "so it is")

    assert Chat(model).resolve("go", tools=[ok, boom]).text == "so it is"
    first, second, third = model.results
    assert first == ("1", "1", False)
    assert second[0::2] == ("2", True)
    assert told in second[1]
    assert third == ("3", "there is no tool `nope`; the tools are: `ok`, `boom`", True)
    assert ran == ["ok"]


def test_a_cancelled_task_of_an_async_function_is_a_failed_call() -> None:
    @tool
    async def gone() -> str:
        """Is cancelled."""
        raise asyncio.CancelledError

    model = Script(says(call("gone")), "ok")
    Chat(model).resolve("go", tools=[gone])

    assert model.results == [("c1", "CancelledError", True)]


def test_an_async_function_gets_an_event_loop_of_its_own() -> None:
    @tool
    async def wait(x: int) -> int:
        """Waits."""
        await asyncio.sleep(0)
        return x

    model = Script(says(call("wait", '{"x":1}', id="a"), call("wait", '{"x":2}', id="b")), "ok")
    Chat(model).resolve("go", tools=[wait])

    assert [text for _, text, _ in model.results] == ["1", "2"]


@pytest.mark.parametrize("kind", ["thread", "task"])
def test_a_call_that_takes_too_long_is_an_error_for_the_model_and_the_others_count(kind: str) -> None:
    free = threading.Event()

    @tool(name="slow", timeout=0.05)
    def slow_thread() -> None:
        """Hangs."""
        free.wait(10)

    @tool(name="slow", timeout=0.05)
    async def slow_task() -> None:
        """Hangs."""
        await asyncio.sleep(10)

    slow: Tool[..., object] = slow_thread if kind == "thread" else slow_task
    model = Script(says(call("slow", id="1"), call("nothing", id="2")), "ok")
    try:
        assert Chat(model).resolve("go", tools=[slow, nothing]).text == "ok"
    finally:
        free.set()

    (_, told, failed), second = model.results
    assert failed
    assert "took longer" in told or "TimeoutError" in told
    assert second == ("2", "done", False)


@pytest.mark.parametrize("arguments", ["", "   ", "null", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    model = Script(says(call("nothing", arguments, "1"), call("double", arguments, "2")), "ok")
    Chat(model).resolve("go", tools=[nothing, double])

    first, (_, told, failed) = model.results
    assert first == ("1", "done", False)
    assert failed
    assert "x" in told


def test_an_object_that_was_encoded_twice_is_unwrapped() -> None:
    model = Script(says(call("double", '"{\\"x\\":1}"')), "ok")
    Chat(model).resolve("go", tools=[double])

    assert model.results == [("c1", "2", False)]


@pytest.mark.parametrize("arguments", ["[]", '{"x":1', "{'x':1}", '{"x":"one"}', "7"])
def test_arguments_that_do_not_fit_are_told_and_nothing_is_run(arguments: str) -> None:
    ran = list[int]()

    @tool
    def keep(x: int = 0) -> None:
        """Keeps a number."""
        ran.append(x)

    model = Script(says(call("keep", arguments)), "ok")
    assert Chat(model).resolve("go", tools=[keep]).text == "ok"

    [(_, told, failed)] = model.results
    assert failed
    assert "keep" in told
    assert ran == []


def test_the_same_id_again_in_another_round_is_another_call() -> None:
    seen = list[str]()

    @tool(name="list")
    def list_(p: str) -> list[str]:
        """Lists a folder."""
        seen.append(p)
        return []

    model = Script(says(call("list", '{"p":"."}', "list:0")), says(call("list", '{"p":"/"}', "list:0")), "ok")
    Chat(model).resolve("go", tools=[list_])

    assert seen == [".", "/"]
    assert model.results == [("list:0", "[]", False)]


def test_one_id_twice_in_a_round_runs_twice_only_for_different_arguments() -> None:
    seen = list[int]()

    @tool
    def note(x: int) -> int:
        """Notes a number."""
        seen.append(x)
        return x

    one, two = call("note", '{"x":1}', "n"), call("note", '{"x":2}', "n")
    model = Script(says(one, two, one), "ok")
    Chat(model).resolve("go", tools=[note])

    assert sorted(seen) == [1, 2]
    assert model.results == [("n", "1", False), ("n", "2", False), ("n", "1", False)]


def test_the_loop_stops_at_its_cap_without_running_the_last_rounds_calls() -> None:
    ran = list[int]()

    @tool(name="list")
    def list_() -> list[str]:
        """Lists nothing."""
        ran.append(1)
        return []

    run = Run()
    model = Script(says(call("list")))
    with pytest.raises(ToolError, match=r"`max_rounds=3`.*`list`"):
        Chat(model, run=run).resolve("go", tools=[list_], max_rounds=3)

    assert (len(model.requests), len(ran)) == (3, 2)
    assert run.purse.spent == COST + COST + COST


@pytest.mark.parametrize("choice", ["any", ForcedTool("nothing")])
@pytest.mark.parametrize("of", ["author", "client"])
def test_a_forced_choice_holds_for_the_first_round_only(choice: Any, of: str) -> None:
    model = Script(says(call("nothing")), "ok")
    if of == "author":
        Chat(model).resolve("go", tools=[nothing], choice=choice)
    else:
        Chat(model, run=Run(request=Request(tool_choice=choice))).resolve("go", tools=[nothing], forward=True)

    assert [request.tool_choice for request in model.requests] == [choice, "auto"]


def test_a_stopped_run_asks_and_runs_no_more() -> None:
    scope = Scope()

    @tool
    def stop() -> str:
        """Stops the run that it is in."""
        scope.cancel(RunCancelled())
        return "stopped"

    model = Script(says(call("stop")))
    with pytest.raises(RunCancelled):
        Chat(model, run=Run(scope=scope)).resolve("go", tools=[stop])
    assert len(model.requests) == 1


def test_stopping_a_run_does_not_wait_for_a_function() -> None:
    scope, begun, free = Scope(), threading.Event(), threading.Event()

    @tool
    def hang() -> None:
        """Hangs."""
        begun.set()
        free.wait(30)

    def cancel() -> None:
        begun.wait(5)
        scope.cancel(RunCancelled())

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(RunCancelled):
        Chat(Script(says(call("hang"))), run=Run(scope=scope)).resolve("go", tools=[hang])
    assert not free.is_set()
    free.set()
    thread.join()


def test_the_time_of_all_rounds_together_has_an_end() -> None:
    free = threading.Event()

    @tool
    def hang() -> None:
        """Hangs."""
        free.wait(30)

    with pytest.raises(ToolError, match=r"`timeout=0.05`"):
        Chat(Script(says(call("hang")))).resolve("go", tools=[hang], timeout=0.05)
    free.set()


def test_a_spent_budget_ends_the_loop() -> None:
    model = Script(says(call("nothing")))
    with pytest.raises(BudgetSpent):
        Chat(model, run=Run(purse=Purse(Budget(tokens=20)))).resolve("go", tools=[nothing])

    assert len(model.requests) == 2


def test_a_reply_costs_its_own_round_and_the_run_all() -> None:
    run = Run()
    model = Script(says(call("nothing")), says("ok", usage=Usage(100, 1)))

    assert Chat(model, run=run).resolve("go", tools=[nothing]).usage == Usage(100, 1)
    assert run.purse.spent == Usage(110, 3)


def test_thinking_goes_back_byte_for_byte_and_in_its_place() -> None:
    parts = (
        Thinking("plan b", {"anthropic": {"signature": "QUJDREVG"}}),
        Thinking("", {"anthropic": {"data": "eHg="}}),
        call("nothing"),
    )
    model = Script(says(*parts), "ok")
    Chat(model).resolve("go", tools=[nothing])

    assert model.requests[1].messages[1] == Message("assistant", parts)


def test_an_empty_text_beside_a_call_is_not_sent_back() -> None:
    model = Script(says(Text(""), call("nothing")), "ok")
    Chat(model).resolve("go", tools=[nothing])

    assert model.requests[1].messages[1].parts == (call("nothing"),)


CLIENT = Request(tools=(ToolSpec("theirs"), ToolSpec("double", "another one")))


def test_a_round_with_a_call_of_the_clients_is_handed_back_whole_and_unrun() -> None:
    both = (call("double", '{"x":1}', "1"), call("theirs", id="2"), call("nope", id="3"))
    model = Script(says("let me see", *both))
    chat = Chat(model, run=Run(request=CLIENT))

    reply = chat.resolve("go", tools=[double], forward=True)

    assert (reply.text, reply.calls, reply.response.stop) == ("let me see", both, "calls")
    assert (len(model.requests), chat.messages) == (1, (user("go"),))


def test_the_authors_tools_come_after_the_clients_and_instead_of_their_namesakes() -> None:
    model = Script("ok")
    Chat(model, run=Run(request=CLIENT)).resolve("go", tools=[double, nothing], forward=True)

    assert model.requests[0].tools == (ToolSpec("theirs"), double.spec, nothing.spec)


def test_a_bare_tool_is_somebody_elses_to_run() -> None:
    bare = Tool("look", "looks")
    reply = Chat(Script(says(call("look")))).resolve("go", tools=[bare, nothing])

    assert reply.calls == (call("look"),)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(WiringError, match="`nothing`"):
        Chat(Script("ok")).resolve("go", tools=[nothing, nothing])


def test_the_answer_flows_while_the_model_writes_it() -> None:
    model = Script(says("let me see", call("nothing")), "the answer")
    reply = Chat(model).resolve("go", tools=[nothing])

    pieces = iter(reply)
    assert next(pieces) == "let me see"
    assert len(model.requests) == 1
    assert "".join(pieces) == "\n\nthe answer"
    assert reply.text == "let me see\n\nthe answer"
    assert reply.calls == ()


def test_a_tool_loop_runs_on_although_nobody_reads_its_answer() -> None:
    model = Script(says("let me see", call("nothing")), "the answer")
    chat = Chat(model)
    chat.resolve("go", tools=[nothing])

    chat.ask("and now?")

    assert len(model.requests) == 3
    assert [message.role for message in model.requests[2].messages] == ["user", "assistant", "tool", "user"]


def test_an_answer_that_is_not_aloud_is_the_last_rounds() -> None:
    model = Script(says(Thinking("hm"), "let me see", call("nothing")), "the answer")
    reply = Chat(model).resolve("go", tools=[nothing], aloud=False)

    assert (reply.text, list(reply)) == ("the answer", ["the answer"])
    assert reply.response.parts == (Text("the answer"),)


def test_a_model_that_breaks_off_in_a_later_round_says_so_to_the_reader() -> None:
    class Broken(Script):
        def ask(self, request: Request, scope: Scope) -> Any:
            if len(self.requests) == 1:
                raise ModelBroke
            yield from super().ask(request, scope)

    reply = Chat(Broken(says("hm", call("nothing")))).resolve("go", tools=[nothing])

    with pytest.raises(ModelBroke):
        reply.text
    assert reply.so_far.text == "hm"


_round = st.lists(st.sampled_from(["text", "thought", "call"]), max_size=5)


@given(st.lists(_round, max_size=4), _round, st.booleans())
def test_the_events_of_any_loop_are_one_legal_answer(rounds: list[list[str]], last: list[str], aloud: bool) -> None:
    def response(kinds: Sequence[str], number: int, *, final: bool) -> Any:
        parts: list[Any] = []
        for index, kind in enumerate(kinds):
            if kind == "call":
                parts.append(call("nothing" if not final else "theirs", id=f"{number}.{index}"))
            else:
                parts.append((Text if kind == "text" else Thinking)(f"{kind}{number}.{index}"))
        if not final and "call" not in kinds:
            parts.append(call("nothing", id=f"{number}.x"))
        return says(*parts)

    model = Script(
        *(response(kinds, number, final=False) for number, kinds in enumerate(rounds)), response(last, 9, final=True)
    )
    reply = Chat(model, run=Run(request=CLIENT)).resolve(tools=[nothing], forward=True, aloud=aloud)
    events = list(checked(reply.events()))
    told = model.responses if aloud else model.responses[-1:]

    assert isinstance(events[-1], Finished)
    assert "".join(reply) == reply.text == "\n\n".join(filter(None, (one.text for one in told)))
    assert [part for part in reply.response.parts if not isinstance(part, (Text, ToolCall))] == [
        part for one in told for part in one.parts if isinstance(part, Thinking)
    ]
    assert reply.calls == model.responses[-1].calls
    assert all(event.text for event in events if isinstance(event, Delta))


class Kept:
    """Rounds as a durable step keeps them."""

    def __init__(self) -> None:
        self.rounds: dict[str, list[Sequence[Message]]] = {}

    def known(self, loop: str) -> Sequence[Sequence[Message]]:
        return self.rounds.get(loop, [])

    def settled(self, loop: str, messages: Sequence[Message]) -> None:
        self.rounds.setdefault(loop, []).append(tuple(messages))


def test_another_attempt_repeats_no_finished_round_and_gives_the_same_answer() -> None:
    kept, ran = Kept(), list[int]()

    @tool
    def count(x: int) -> int:
        """Counts."""
        ran.append(x)
        return x

    first, second = (says(f"step {n}", call("count", f'{{"x":{n}}}')) for n in (1, 2))
    dying = Script(first, second, says(call("count", '{"x":"?"}')))
    with pytest.raises(ToolError):
        _ = Chat(dying, run=Run(rounds=kept)).resolve("go", tools=[count], max_rounds=3).text

    model = Script("done")
    chat = Chat(model, run=Run(rounds=kept, attempt=2))
    reply = chat.resolve("go", tools=[count], max_rounds=3)

    assert reply.text == "step 1\n\nstep 2\n\ndone"
    assert ran == [1, 2]
    assert model.requests[0].messages == dying.requests[2].messages
    with pytest.raises(ToolError, match="max_rounds=2"):
        Chat(model, run=Run(rounds=kept)).resolve("go", tools=[count], max_rounds=2).text


def test_two_loops_of_one_turn_keep_their_rounds_apart() -> None:
    kept = Kept()
    chat = Chat(Script(says(call("nothing")), "ok", says(call("nothing")), "ok"), run=Run(rounds=kept))
    chat.resolve("go", tools=[nothing])
    chat.resolve(tools=[nothing])

    assert [len(rounds) for rounds in kept.rounds.values()] == [1, 1]


def test_each_question_and_each_call_is_told() -> None:
    events = list[TraceEvent]()

    class Hears:
        def trace(self, event: TraceEvent) -> None:
            events.append(event)

    model = Script(says(call("nothing", id="1"), call("nope", id="2")), "ok")
    _ = Chat(model, run=Run(trail=Trail([Hears()]))).resolve("go", tools=[nothing]).text

    kinds = [event.kind for event in events]
    assert kinds[:2] + kinds[4:] == ["model.start", "model.call", "model.start", "model.call"]
    called = {event.detail["tool"]: event.detail.get("error") for event in events if event.kind == "tool.call"}
    assert called == {"nothing": None, "nope": "tool_error"}


@dataclass
class Row:
    n: int


def test_a_loop_with_a_schema_ends_in_a_value() -> None:
    model = Script(says("hm", call("nothing")), '{"n": "one"}', 'Sure: {"n": 1}')
    reply = Chat(model).resolve("go", tools=[nothing], schema=Row)

    assert (list(reply), reply.extract(Row)) == (['{"n":1}'], Row(1))


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_loop_over_the_wire(provider: Provider) -> None:
    with Upstream() as up:
        up.script(
            Answer(
                tokens=("let ", "me"),
                calls=(Call("double", '{"x":4}', "k"), Call("double", "{'x':4}", "k")),
                stop="calls",
            ),
            Answer(calls=(Call("double", "", "k"),), stop="calls"),
            Answer(tokens=("it is ", "8")),
        )
        reply = Chat(asks(up, provider, "scripted")).resolve("go", tools=[double])

        assert reply.text == "let me\n\nit is 8"
        assert len(up.requests) == 3
        sent = str(up.requests[-1].body["messages"])
    # each call has the result of its own, though the model gave all the same id
    assert [sent.count(told) for told in ("are not JSON", "x: ", "let me")] == [1, 1, 1]


def test_signed_thinking_goes_back_to_anthropic_as_it_came() -> None:
    with Upstream() as up:
        up.script(Answer(thinking=("plan ", "b"), calls=(Call("nothing"),), stop="calls"), Answer(tokens=("ok",)))
        reply = Chat(asks(up, "anthropic", "scripted")).resolve("go", tools=[nothing])

        assert reply.text == "ok"
        content = up.requests[1].body["messages"][1]["content"]
    assert [block["type"] for block in content] == ["thinking", "tool_use"]
    assert (content[0]["thinking"], bool(content[0]["signature"])) == ("plan b", True)


def test_a_function_may_use_the_chat_that_runs_it() -> None:
    model = Script(says("hm", call("inner")), "inside", "outside")
    chat = Chat(model)

    @tool
    def inner() -> str:
        """Asks too."""
        return chat.ask("and?").text

    assert chat.resolve("go", tools=[inner]).text == "hm\n\noutside"
    assert model.results == [("c1", "inside", False)]


def test_a_blank_text_beside_a_call_is_not_sent_back_to_anthropic_which_refuses_it() -> None:
    with Upstream() as up:
        up.script(Answer(tokens=(" ",), calls=(Call("nothing"),), stop="calls"), Answer(tokens=("ok",)))
        _ = Chat(asks(up, "anthropic", "scripted")).resolve("go", tools=[nothing]).text

        content = up.requests[1].body["messages"][1]["content"]
    assert [block["type"] for block in content] == ["tool_use"]
