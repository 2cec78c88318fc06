"""What public bug reports tell of systems like ours, with their very inputs, over the wire of both providers.

The map of all of them, with the tests of single modules, stands in `docs/acceptance.md`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from typing import Any

import pytest

from bigbrain import Brain, Chat, Flow, Model, Request, Turn, agent
from bigbrain.budgets import Budget, Purse
from bigbrain.errors import BudgetSpent, ToolError
from bigbrain.events import Event, Opened, checked, collect, replay
from bigbrain.messages import ForcedTool, Response, Text, ToolCall, Usage
from bigbrain.models.spec import Provider
from bigbrain.run import Run
from bigbrain.scope import Scope
from bigbrain.testing import Says, ScriptedModel
from bigbrain.tools import tool
from bigbrain.wire import anthropic, openai_chat, sse
from tests.models.asking import asks
from tests.upstream import Upstream
from tests.upstream_answers import Answer, Call
from tests.web.site import BOTH, CHAT, MESSAGES, asking, serving

PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def spec(up: Upstream, provider: Provider) -> Model:
    base_url = up.openai if provider == "openai" else up.anthropic
    return Model("scripted", provider=provider, base_url=base_url, api_key="k", retries=0)


def results_of(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The results in the last round of a request, in either protocol: id and text."""
    told: list[tuple[str, str]] = []
    for message in body["messages"]:
        if message["role"] == "assistant":
            told = []
        elif message["role"] == "tool":
            told.append((message["tool_call_id"], message["content"]))
        elif isinstance(message["content"], list):
            blocks = [block for block in message["content"] if block["type"] == "tool_result"]
            told += [(block["tool_use_id"], text_in(block.get("content"))) for block in blocks]
    return told


def text_in(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content or [])


def ids_of(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The ids of all calls of a request, and those of all results."""
    calls, results = [], []
    for message in body["messages"]:
        calls += [call["id"] for call in message.get("tool_calls") or []]
        results += [message["tool_call_id"]] if message["role"] == "tool" else []
        for block in message["content"] if isinstance(message["content"], list) else []:
            calls += [block["id"]] if block["type"] == "tool_use" else []
            results += [block["tool_use_id"]] if block["type"] == "tool_result" else []
    return calls, results


def w(c: str) -> str:
    """The weather of a town."""
    return f"rain in {c}"


# B02: parallel calls melt into one


def test_b02_two_calls_under_one_index_run_as_two() -> None:
    with Upstream() as up:
        up.script(
            Answer(
                calls=(Call("w", '{"c":"Oslo"}', "call_a"), Call("w", '{"c":"Rome"}', "call_b")),
                stop="calls",
                same_index=True,
            ),
            Answer(tokens=("done",)),
        )
        Chat(asks(up, "openai", "scripted")).resolve("go", tools=[tool(w)])

        assert results_of(up.requests[1].body) == [("call_a", "rain in Oslo"), ("call_b", "rain in Rome")]


def anthropic_stream(*blocks: dict[str, Any]) -> bytes:
    frames = [
        {"type": "message_start", "message": {"id": "m", "model": "m", "role": "assistant", "content": []}},
        *blocks,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    return b"".join(b"event: x\ndata: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)


def began(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grew(index: int, **delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stopped(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def arguments(index: int, piece: str) -> dict[str, Any]:
    return grew(index, type="input_json_delta", partial_json=piece)


def test_b02_calls_that_come_in_turns_and_what_stands_behind_them_keep_their_places() -> None:
    stream = anthropic_stream(
        began(0, type="tool_use", id="a", name="w", input={}),
        arguments(0, '{"c":'),
        began(1, type="tool_use", id="b", name="w", input={"c": "Rome"}),
        began(2, type="text", text=""),
        grew(2, type="text_delta", text="and"),
        stopped(2),
        stopped(1),
        arguments(0, '"Oslo"}'),
        stopped(0),
        began(3, type="tool_use", id="c", name="w", input={}),
        arguments(3, "{}"),
    )
    events = list(checked(anthropic.read_events(sse.read([stream]))))

    assert collect(events).parts == (
        ToolCall("a", "w", '{"c":"Oslo"}'),
        ToolCall("b", "w", '{"c":"Rome"}'),
        Text("and"),
        ToolCall("c", "w", "{}"),
    )


def test_b02_the_first_of_two_open_calls_flows_while_the_other_waits() -> None:
    given: list[str] = []

    def chunks() -> Generator[bytes]:
        stream = anthropic_stream(
            began(0, type="tool_use", id="a", name="w", input={}),
            began(1, type="tool_use", id="b", name="w", input={}),
            arguments(0, '{"c":"Oslo"}'),
            arguments(1, "{}"),
            stopped(0),
            stopped(1),
        )
        for frame in stream.split(b"\n\n")[:-1]:
            given.append(frame.decode())
            yield frame + b"\n\n"

    seen = [(event, len(given)) for event in anthropic.read_events(sse.read(chunks()))]
    opened = [at for event, at in seen if isinstance(event, Opened)]

    # the second call opens with the frame that stops the first
    assert opened == [2, 6]


@pytest.mark.parametrize("path", BOTH)
def test_b02_two_calls_for_the_client_stream_apart(path: str) -> None:
    two = (ToolCall("call_a", "w", '{"c":"Oslo"}'), ToolCall("call_b", "w", '{"c":"Rome"}'))
    with serving(Brain("b", Flow(model=ScriptedModel(Says(calls=two))))) as site:
        data = site.client.post(path, json=asking(stream=True)).data
    frames = [json.loads(frame.data) for frame in sse.read([data]) if frame.data != b"[DONE]"]

    if path == CHAT:
        deltas = [call for frame in frames for call in frame["choices"][0]["delta"].get("tool_calls") or []]
        assert [(call["index"], call["id"]) for call in deltas if call.get("id")] == [(0, "call_a"), (1, "call_b")]
    else:
        blocks = [frame for frame in frames if frame["type"] == "content_block_start"]
        assert [(one["index"], one["content_block"]["id"]) for one in blocks] == [(0, "call_a"), (1, "call_b")]


# B03: the stop reason does not match what was sent


@PROVIDERS
def test_b03_calls_that_end_with_stop_are_run(provider: Provider) -> None:
    with Upstream() as up:
        up.script(Answer(calls=(Call("w", '{"c":"Oslo"}'),), stop="end"), Answer(tokens=("rain",)))
        reply = Chat(asks(up, provider, "scripted")).resolve("go", tools=[tool(w)])

        assert reply.text == "rain"


@PROVIDERS
@pytest.mark.parametrize("arguments", ['{"c":"Os', ""])
def test_b03_a_call_that_the_limit_cut_is_not_run_and_the_answer_keeps_its_end(
    provider: Provider, arguments: str
) -> None:
    ran: list[str] = []

    @tool(name="w")
    def note(c: str = "") -> str:
        """Notes that it ran."""
        ran.append(c)
        return "noted"

    with Upstream() as up:
        up.script(Answer(tokens=("let me",), calls=(Call("w", arguments),), stop="length"))
        reply = Chat(asks(up, provider, "scripted")).resolve("go", tools=[note])

        assert (reply.text, reply.response.stop) == ("let me", "length")
        assert len(up.requests) == 1
    assert ran == []


@pytest.mark.parametrize("path", BOTH)
def test_b03_text_and_a_call_of_the_clients_end_alike_whole_and_streamed(path: str) -> None:
    says = Says("let me see", calls=(ToolCall("c1", "w", "{}"),), stop="end")
    dialect = openai_chat if path == CHAT else anthropic
    with serving(Brain("b", Flow(model=ScriptedModel(says, repeat=True)))) as site:
        whole = site.client.post(path, json=asking()).json
        data = site.client.post(path, json=asking(stream=True)).data

    assert dialect.read_response(whole).stop == "calls"
    assert collect(dialect.read_events(sse.read([data]))).stop == "calls"
    assert b'"tool_calls"' in data if path == CHAT else b'"stop_reason":"tool_use"' in data.replace(b" ", b"")


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_b03_a_stop_text_is_told_in_the_protocols_words(path: str, stream: bool) -> None:
    class Stopping:
        def ask(self, request: Request, scope: Scope) -> Generator[Event]:
            assert request.stop == ("END",)
            yield from replay(Response(parts=(Text("so "),), stop="sequence", stop_sequence="END", usage=Usage(1, 1)))

    stop = {"stop": ["END"]} if path == CHAT else {"stop_sequences": ["END"]}
    with serving(Brain("b", Flow(model=Stopping()))) as site:
        response = site.client.post(path, json=asking(stream=stream, **stop))
        told = response.data.replace(b" ", b"")

    assert response.status_code == 200
    if path == CHAT:
        assert b'"finish_reason":"stop"' in told
    else:
        assert b'"stop_reason":"stop_sequence"' in told
        assert b'"stop_sequence":"END"' in told


# B07: ids are used again in every turn


@PROVIDERS
def test_b07_a_model_that_uses_one_id_in_every_turn_has_each_call_run_and_answered(provider: Provider) -> None:
    asked: list[str] = []

    @tool(name="list")
    def list_(p: str) -> str:
        """Lists a folder."""
        asked.append(p)
        return f"files of {p}"

    with Upstream() as up:
        up.script(
            Answer(calls=(Call("list", '{"p":"."}', "list:0"),), stop="calls"),
            Answer(calls=(Call("list", '{"p":"/"}', "list:0"),), stop="calls"),
            Answer(tokens=("done",)),
        )
        text = Chat(asks(up, provider, "scripted")).resolve("go", tools=[list_]).text
        calls, results = ids_of(up.requests[-1].body)
        [(_, last)] = results_of(up.requests[-1].body)

    assert (text, asked, last) == ("done", [".", "/"], "files of /")
    assert calls == results
    assert len(set(calls)) == 2


@PROVIDERS
def test_b07_one_id_twice_in_a_turn_runs_no_call_twice_unnoticed(provider: Provider) -> None:
    asked: list[str] = []

    @tool(name="list")
    def list_(p: str) -> str:
        """Lists a folder."""
        asked.append(p)
        return f"files of {p}"

    twice = (Call("list", '{"p":"."}', "list:0"), Call("list", '{"p":"/"}', "list:0"))
    with Upstream() as up:
        up.script(Answer(calls=twice, stop="calls"), Answer(tokens=("done",)))
        Chat(asks(up, provider, "scripted")).resolve("go", tools=[list_])
        calls, results = ids_of(up.requests[-1].body)
        told = [text for _, text in results_of(up.requests[-1].body)]

    assert sorted(asked) == [".", "/"]
    assert told == ["files of .", "files of /"]
    assert calls == results
    assert len(set(calls)) == 2


@PROVIDERS
def test_b07_a_clients_history_with_one_id_in_two_turns_is_sent_on_with_unique_ids(provider: Provider) -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "w", "arguments": "{}"}}
    turns = [
        part
        for text in ("one", "two")
        for part in (
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_0", "content": text},
        )
    ]
    with Upstream() as up, serving(Brain("b", Flow(model=spec(up, provider)))) as site:
        body = asking(messages=[{"role": "user", "content": "hi"}, *turns, {"role": "user", "content": "go"}])
        status = site.client.post(CHAT, json=body).status_code
        calls, results = ids_of(up.requests[0].body)

    assert status == 200
    assert calls == results
    assert len(set(calls)) == 2


# B10: an empty text beside calls


@PROVIDERS
@pytest.mark.parametrize("content", ["", None, ..., [], [{"type": "text", "text": " "}]])
def test_b10_an_empty_text_beside_a_call_is_not_sent_on(provider: Provider, content: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}}
    called = {"role": "assistant", "tool_calls": [call], **({} if content is ... else {"content": content})}
    history = [
        {"role": "system", "content": ""},
        {"role": "user", "content": "hi"},
        called,
        {"role": "tool", "tool_call_id": "c1", "content": ""},
        {"role": "user", "content": "go"},
    ]
    with Upstream() as up, serving(Brain("b", Flow(model=spec(up, provider)))) as site:
        status = site.client.post(CHAT, json=asking(messages=history)).status_code
        sent = up.requests[0].body

    assert status == 200
    assert ids_of(sent) == (["c1"], ["c1"])
    texts = [
        block["text"]
        for message in sent["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if block["type"] == "text"
    ]
    assert all(text.strip() for text in texts)
    assert not any(message["role"] == "system" for message in sent["messages"])
    assert "system" not in sent


# B28: escapes and halves of characters cut between deltas

ESCAPED = '{"answer":"A\\ud83e\\udd8aB\\n\\"q\\" \\u00e9"}'
WANTED = 'A🦊B\n"q" é'


@pytest.mark.parametrize("cut", range(1, len(ESCAPED)))
def test_b28_escapes_cut_between_deltas_are_read_whole(cut: int) -> None:
    model = ScriptedModel(Says(chunks=[ESCAPED[:cut], ESCAPED[cut:]]))
    reply = Chat(model).ask("go", schema=dict[str, str])

    assert reply.extract(dict[str, str]) == {"answer": WANTED}
    assert not any(0xD800 <= ord(char) < 0xE000 for piece in reply for char in piece)


@PROVIDERS
def test_b28_a_real_half_of_a_character_becomes_a_mark_and_reaches_the_client(provider: Provider) -> None:
    with Upstream() as up:
        half = '{"answer":"half \\ud83e"}'
        up.script(Answer(tokens=(half[:20], half[20:])))
        with serving(Brain("b", Flow(answering(dict[str, str]), model=spec(up, provider)))) as site:
            response = site.client.post(CHAT, json=asking())

    assert response.status_code == 200
    assert response.json["choices"][0]["message"]["content"] == "half \ufffd"


def answering(kind: Any):
    @agent(schema=kind)
    def answers(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.ask(turn.last).extract(kind)["answer"])

    return answers


@PROVIDERS
def test_b28_arguments_with_escapes_pass_through_a_brain_as_they_are(provider: Provider) -> None:
    with Upstream() as up:
        up.script(Answer(calls=(Call("w", ESCAPED, "c1"),), stop="calls"))
        with serving(Brain("b", Flow(model=spec(up, provider)))) as site:
            data = site.client.post(CHAT, json=asking(stream=True)).data

    [call] = collect(openai_chat.read_events(sse.read([data]))).calls
    assert call.input == {"answer": WANTED}


# B31: one call of a batch fails


class Silent(Exception):
    """An exception without words."""


@PROVIDERS
@pytest.mark.parametrize("error", [KeyError("k"), Silent(), SystemExit(3), "slow"])
def test_b31_each_call_of_a_batch_has_its_result_whatever_becomes_of_the_others(provider: Provider, error: Any) -> None:
    rows: list[str] = []
    free = threading.Event()

    @tool
    def ok() -> str:
        """Writes a row."""
        rows.append("row")
        return "1"

    @tool(timeout=0.1)
    def boom() -> str:
        """Fails."""
        if error == "slow":
            free.wait(10)
            return "too late"
        raise error

    with Upstream() as up:
        calls = (Call("ok", id="c1"), Call("boom", id="c2"), Call("nope", id="c3"))
        up.script(Answer(calls=calls, stop="calls"), Answer(tokens=("so it is",)))
        text = Chat(asks(up, provider, "scripted")).resolve("go", tools=[ok, boom]).text
        told = results_of(up.requests[1].body)
    free.set()

    assert text == "so it is"
    assert [id for id, _ in told] == ["c1", "c2", "c3"]
    assert told[0][1] == "1"
    assert told[1][1].strip()
    assert "`ok`, `boom`" in told[2][1]
    assert rows == ["row"]


# B32: arguments that are no object

NOTHING = ["", "   ", "null"]
TWICE = '"{\\"a\\":1}"'
BROKEN = ["[]", '{"a":1', "{'a':1}"]


@PROVIDERS
@pytest.mark.parametrize("text", [*NOTHING, TWICE, *BROKEN])
def test_b32_arguments_that_are_no_object_fail_their_own_call_and_not_the_conversation(
    provider: Provider, text: str
) -> None:
    ran: list[object] = []

    @tool
    def a() -> str:
        """Takes nothing."""
        ran.append("a")
        return "ok"

    @tool
    def b(a: int) -> str:
        """Needs a number."""
        ran.append(a)
        return "ok"

    with Upstream() as up:
        calls = (Call("a", text, "c1"), Call("b", text, "c2"))
        up.script(Answer(calls=calls, stop="calls"), Answer(tokens=("done",)))
        assert Chat(asks(up, provider, "scripted")).resolve("go", tools=[a, b]).text == "done"
        (_, first), (_, second) = results_of(up.requests[1].body)
        sent = up.requests[1].body["messages"]

    if text in NOTHING:
        assert (ran, first) == (["a"], "ok")
        assert "`a`" in second or "a:" in second
    elif text == TWICE:
        assert (1 in ran, second) == (True, "ok")
    else:
        assert ran == []
        assert "not JSON" in second or "not an object" in second
    assert all(isinstance(given, dict) for given in arguments_in(sent))


def arguments_in(messages: list[dict[str, Any]]) -> list[Any]:
    """The arguments of all calls of a conversation, as a strict server decodes them."""
    given: list[Any] = []
    for message in messages:
        given += [json.loads(call["function"]["arguments"]) for call in message.get("tool_calls") or []]
        for block in message["content"] if isinstance(message["content"], list) else []:
            given += [block["input"]] if block["type"] == "tool_use" else []
    return given


@PROVIDERS
@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("given", [*NOTHING, TWICE, *BROKEN, {}])
def test_b32_a_clients_history_with_such_arguments_is_answered_and_sent_on_as_objects(
    provider: Provider, path: str, given: Any
) -> None:
    with Upstream() as up, serving(Brain("b", Flow(model=spec(up, provider)))) as site:
        response = site.client.post(path, json=asking(messages=history(path, given)))
        sent = up.requests[0].body["messages"]

    assert response.status_code == 200
    assert len(arguments_in(sent)) == 1
    assert all(isinstance(one, dict) for one in arguments_in(sent))


def history(path: str, given: Any) -> list[dict[str, Any]]:
    if path == CHAT:
        call = {"id": "c1", "type": "function", "function": {"name": "w", "arguments": given}}
        round_ = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ]
    else:
        round_ = [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "w", "input": given}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
        ]
    return [{"role": "user", "content": "hi"}, *round_]


# B33: the same call for ever


@PROVIDERS
@pytest.mark.parametrize("fails", [False, True])
def test_b33_a_model_that_calls_for_ever_is_stopped_at_the_cap_and_paid(provider: Provider, fails: bool) -> None:
    @tool(name="list")
    def list_() -> list[str]:
        """Lists nothing."""
        if fails:
            raise OSError("no such folder")
        return []

    run = Run()
    with Upstream() as up:
        up.script(*[Answer(calls=(Call("list"),), stop="calls", tokens=("hm",))] * 20)
        reply = Chat(asks(up, provider, "scripted"), run=run).resolve("go", tools=[list_], max_rounds=5)
        with pytest.raises(ToolError, match=r"`max_rounds=5`.*`list`"):
            reply.text

        assert len(up.requests) == 5
    assert run.purse.spent == Usage(5 * 7, 5)


def test_b33_a_forced_choice_of_the_clients_does_not_keep_a_loop_going() -> None:
    @tool(name="list")
    def list_() -> list[str]:
        """Lists nothing."""
        return []

    @agent
    def lists(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.resolve(*turn.messages, tools=[list_], forward=True))

    model = ScriptedModel(Says(calls=(ToolCall("c1", "list", "{}"),)), "nothing there")
    function = {"name": "theirs", "parameters": {"type": "object", "properties": {}}}
    body = asking(tools=[{"type": "function", "function": function}], tool_choice="required")
    with serving(Brain("b", Flow(lists, model=model))) as site:
        response = site.client.post(CHAT, json=body)

    assert response.json["choices"][0]["message"]["content"] == "nothing there"
    assert [request.tool_choice for request in model.asked] == ["any", "auto"]


def test_b33_two_calls_by_turns_are_stopped_by_a_budget_as_well() -> None:
    def calling(name: str) -> Says:
        return Says(calls=(ToolCall("c", name, "{}"),), usage=Usage(10, 1))

    @tool
    def ping() -> str:
        """Goes."""
        return "pong"

    @tool
    def pong() -> str:
        """Comes."""
        return "ping"

    model = ScriptedModel(*[calling("ping"), calling("pong")] * 50)
    run = Run(purse=Purse(Budget(tokens=30)))
    with pytest.raises(BudgetSpent, match="30"):
        Chat(model, run=run).resolve("go", tools=[ping, pong], max_rounds=100)

    assert len(model.asked) == 3


def test_b33_a_run_that_fails_at_the_cap_names_it_on_record_and_not_to_the_client() -> None:
    @tool(name="list")
    def list_() -> list[str]:
        """Lists nothing."""
        return []

    @agent
    def lists(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.resolve(*turn.messages, tools=[list_], choice=ForcedTool("list"), max_rounds=2))

    model = ScriptedModel(Says(calls=(ToolCall("c1", "list", "{}"),)), repeat=True)
    with serving(Brain("b", Flow(lists, model=model))) as site:
        response = site.client.post(MESSAGES, json=asking())
        record = site.record(response.headers["X-Run-Id"])

    assert response.status_code == 500
    assert response.json["error"]["message"] == "A tool of this brain failed."
    assert "`max_rounds=2`" in record.error["detail"]
    assert len(model.asked) == 2
