"""The boxes of the acceptance list, 8.15 "Models", a test each; a name is its box.

Boxes that enshrine a fault of the seed's code are inverted, and their tests say so. Three boxes
are not about models and stand elsewhere: scripted doubles (`bigbrain.testing`), the joining of
a turn's texts (turns), the builder of tools (tools).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import bigbrain.errors
from bigbrain.errors import BrainError, ModelBroke, ModelError, ModelOverloaded, RunCancelled, WiringError
from bigbrain.events import Delta, Event, collect
from bigbrain.messages import (
    ForcedTool,
    Message,
    Request,
    Response,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    user,
)
from bigbrain.models import FixedModel, Model, Models, connect, model
from bigbrain.models.endpoints import Address, endpoint
from bigbrain.models.spec import Provider
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.wire import Dialect, anthropic, openai_chat, sse
from tests.contracts.model import QUESTION
from tests.models.asking import answer, asks, partly, spec, text_of
from tests.upstream import Upstream

RECORDINGS = Path(__file__).parents[1] / "recordings"
LOOK = ToolSpec("look", "sees", {"type": "object", "properties": {"n": {"type": "integer"}}})
ROUND = (
    user("hi"),
    Message("assistant", (Text("let me"), ToolCall("c1", "look", '{"n": 1}'))),
    Message("tool", (ToolResult("c1", (Text("seen"),)),)),
    user("so?"),
)


def recorded(dialect: Dialect, name: str) -> Response:
    """A recorded stream, read."""
    folder = "openai_chat" if dialect is openai_chat else "anthropic"
    return read(dialect, (RECORDINGS / folder / f"{name}.sse").read_bytes())


def read(dialect: Dialect, stream: bytes) -> Response:
    return collect(dialect.read_events(sse.read([stream])))


def chunks(*chunks: dict[str, Any]) -> bytes:
    """A stream of OpenAI's."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    lines = [b"data: " + msgspec.json.encode({**head, **chunk}) + b"\n\n" for chunk in chunks]
    return b"".join(lines) + b"data: [DONE]\n\n"


def frames(*frames: dict[str, Any]) -> bytes:
    """A stream of Anthropic's."""
    return b"".join(
        b"event: " + frame["type"].encode() + b"\ndata: " + msgspec.json.encode(frame) + b"\n\n" for frame in frames
    )


def sent(up: Upstream, provider: Provider, request: Request = QUESTION, **knobs: Any) -> dict[str, Any]:
    """The body of the call that a request leads to."""
    answer(connect(spec(up, provider).having(**knobs), Settings()), request)
    return up.requests[-1].body


def cancelled_in_mid_stream(up: Upstream, provider: Provider) -> list[Event]:
    """What came of an answer whose scope was cancelled meanwhile: its events, then the error."""
    scope, events = Scope(), []
    with pytest.raises(RunCancelled, match="stopped"):
        for event in asks(up, provider, "hang:after:2").ask(QUESTION, scope):
            events.append(event)
            if text_of(events) == "w0 w1 ":
                threading.Thread(target=scope.cancel, args=(RunCancelled("stopped"),)).start()
    return events


def deltas(up: Upstream, provider: Provider) -> Iterator[str]:
    events = asks(up, provider, "tokens:5").ask(QUESTION, Scope())
    return (event.text for event in events if isinstance(event, Delta))


def test_openai_deltas_stream_in_order(up: Upstream) -> None:
    assert list(deltas(up, "openai")) == ["w0 ", "w1 ", "w2 ", "w3 ", "w4 "]


def test_openai_an_upstream_failure_surfaces_as_a_model_error(up: Upstream) -> None:
    with pytest.raises(ModelError):
        answer(asks(up, "openai", "status:500"))


def test_openai_a_cancelled_scope_terminates_the_stream(up: Upstream) -> None:
    """Inverted: the seed may end a cancelled stream without an error, as if the answer were complete."""
    assert text_of(cancelled_in_mid_stream(up, "openai")) == "w0 w1 "


def test_openai_usage_is_normalised_cached_and_cache_write_subtracted() -> None:
    details = {"cached_tokens": 30, "cache_write_tokens": 20}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "prompt_tokens_details": details}
    stream = chunks(
        {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
    )

    assert read(openai_chat, stream).usage == Usage(input=50, output=5, cache_read=30, cache_write=20)


def test_openai_no_usage_sent_is_zero_and_the_text_unaffected(up: Upstream) -> None:
    got = answer(asks(up, "openai", "no-usage"))

    assert (got.usage, got.text) == (Usage(), "ok")


def test_openai_usage_riding_on_a_chunk_with_choices_is_captured() -> None:
    assert recorded(openai_chat, "b06_usage_on_the_finish_chunk").usage == Usage(input=7, output=1)


def test_openai_usage_is_requested_upstream(up: Upstream) -> None:
    assert sent(up, "openai")["stream_options"] == {"include_usage": True}


def test_openai_a_knob_of_the_model_suppresses_that_request(up: Upstream) -> None:
    """Inverted: the seed has one switch in the environment for all models; here it is the model's own."""
    body = sent(up, "openai", extra={"stream_options": {"include_usage": False}})

    assert body["stream_options"] == {"include_usage": False}


def test_openai_tools_are_sent_and_interleaved_split_deltas_reassembled_in_order(up: Upstream) -> None:
    body = sent(up, "openai", Request(messages=QUESTION.messages, tools=(LOOK,)))

    function = {"name": "look", "description": "sees", "parameters": LOOK.schema}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert recorded(openai_chat, "b02_interleaved").calls == (
        ToolCall("call_a", "w", '{"c":"Oslo"}'),
        ToolCall("call_b", "w", '{"c":"Rome"}'),
    )


def test_openai_calls_and_results_are_rendered_as_assistant_calls_and_tool_messages(up: Upstream) -> None:
    said = sent(up, "openai", Request(messages=ROUND, tools=(LOOK,)))["messages"]

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}
    assert said == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "let me", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "user", "content": "so?"},
    ]


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ("auto", None),
        ("any", "required"),
        ("none", "none"),
        (ForcedTool("look"), {"type": "function", "function": {"name": "look"}}),
    ],
)
def test_openai_tool_choice_mapping_auto_sends_nothing(up: Upstream, choice: Any, wanted: Any) -> None:
    body = sent(up, "openai", Request(messages=QUESTION.messages, tools=(LOOK,), tool_choice=choice))

    assert body.get("tool_choice") == wanted


def test_openai_a_call_without_id_gets_one() -> None:
    first, second = recorded(openai_chat, "b02_no_ids").calls

    assert first.id
    assert second.id
    assert first.id != second.id


def test_anthropic_deltas_stream_in_order(up: Upstream) -> None:
    assert list(deltas(up, "anthropic")) == ["w0 ", "w1 ", "w2 ", "w3 ", "w4 "]


def test_anthropic_an_upstream_failure_surfaces(up: Upstream) -> None:
    with pytest.raises(ModelOverloaded):
        answer(asks(up, "anthropic", "status:529"))


def test_anthropic_a_cancelled_scope_terminates(up: Upstream) -> None:
    """Inverted: the seed may end a cancelled stream without an error, as if the answer were complete."""
    assert text_of(cancelled_in_mid_stream(up, "anthropic")) == "w0 w1 "


def test_anthropic_usage_maps_one_to_one() -> None:
    got = recorded(anthropic, "usage_in_two_reports").usage

    assert (got.cache_read, got.cache_write, got.output) == (100, 7, 9)


def test_anthropic_no_usage_is_zero(up: Upstream) -> None:
    assert answer(asks(up, "anthropic", "no-usage")).usage == Usage()


def test_anthropic_the_last_cumulative_usage_wins() -> None:
    assert recorded(anthropic, "usage_in_two_reports").usage == Usage(input=30, output=9, cache_read=100, cache_write=7)


@pytest.mark.parametrize(
    ("think", "thinking"),
    [(True, {"type": "enabled", "budget_tokens": 1024}), (False, None), (None, None)],
)
def test_anthropic_think_on_sends_a_budget_off_and_unset_send_nothing(
    up: Upstream, think: bool | None, thinking: Any
) -> None:
    assert sent(up, "anthropic", think=think).get("thinking") == thinking


def test_anthropic_a_tool_round_trip_with_split_arguments(up: Upstream) -> None:
    asked, tools = asks(up, "anthropic", "tools"), (LOOK,)
    called = answer(asked, Request(messages=QUESTION.messages, tools=tools))
    [call] = called.calls
    results = Message("tool", (ToolResult(call.id, (Text("seen"),)),))
    last = answer(asked, Request(messages=(*QUESTION.messages, called.message, results), tools=tools))

    assert (call.name, call.input) == ("look", {"n": 0})
    assert last.text == "the tools have answered"


def test_anthropic_calls_results_and_plain_text_are_rendered_into_the_right_turns(up: Upstream) -> None:
    said = sent(up, "anthropic", Request(messages=ROUND, tools=(LOOK,)))["messages"]

    assert [(turn["role"], [block["type"] for block in turn["content"]]) for turn in said] == [
        ("user", ["text"]),
        ("assistant", ["text", "tool_use"]),
        ("user", ["tool_result", "text"]),
    ]


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ("auto", None),
        ("any", {"type": "any"}),
        ("none", {"type": "none"}),
        (ForcedTool("look"), {"type": "tool", "name": "look"}),
    ],
)
def test_anthropic_tool_choice_mapping(up: Upstream, choice: Any, wanted: Any) -> None:
    body = sent(up, "anthropic", Request(messages=QUESTION.messages, tools=(LOOK,), tool_choice=choice))

    assert body.get("tool_choice") == wanted


def block(index: int) -> dict[str, Any]:
    call = {"type": "tool_use", "id": f"t{index}", "name": "look", "input": {}}
    return {"type": "content_block_start", "index": index, "content_block": call}


def more(index: int, text: str) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": text}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def called(*blocks: dict[str, Any]) -> bytes:
    """A stream of Anthropic's in which the model only calls tools."""
    return frames(
        {"type": "message_start", "message": {"id": "m", "model": "m", "role": "assistant", "content": []}},
        *blocks,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    )


def test_anthropic_arguments_arriving_out_of_block_order_still_assemble() -> None:
    stream = called(
        block(1), more(1, '{"n":'), more(1, " 1}"), stop(1), block(0), more(0, '{"n":'), more(0, " 0}"), stop(0)
    )

    assert read(anthropic, stream).calls == (ToolCall("t1", "look", '{"n": 1}'), ToolCall("t0", "look", '{"n": 0}'))


def test_anthropic_arguments_of_two_open_blocks_still_assemble() -> None:
    """The other reading of the box: both blocks are open, and their arguments come in turns."""
    stream = called(
        block(0), block(1), more(1, '{"n":'), more(0, '{"n":'), more(1, " 1}"), more(0, " 0}"), stop(0), stop(1)
    )

    assert read(anthropic, stream).calls == (ToolCall("t0", "look", '{"n": 0}'), ToolCall("t1", "look", '{"n": 1}'))


def test_collect_returns_text_or_the_terminal_error(up: Upstream, provider: Provider) -> None:
    assert answer(asks(up, provider, "text:all of it")).text == "all of it"
    with pytest.raises(ModelBroke):
        answer(asks(up, provider, "truncate:2"))


def test_collect_returns_text_and_calls_together() -> None:
    parts = (Text("let me"), ToolCall("c1", "look", "{}"))
    got = answer(FixedModel(parts=parts))

    assert (got.text, got.calls) == ("let me", (parts[1],))


def test_collect_returns_usage_zero_if_none(up: Upstream, provider: Provider) -> None:
    assert answer(asks(up, provider, "tokens:3")).usage == Usage(input=7, output=3)
    assert answer(asks(up, provider, "no-usage")).usage == Usage()


def test_a_message_made_from_text_is_the_users_and_a_change_of_role_copies() -> None:
    said = user("hi")
    changed = msgspec.structs.replace(said, role="assistant")

    assert (said.role, changed.role, changed.text) == ("user", "assistant", "hi")


def test_a_message_can_hold_text_calls_and_results_at_once_and_adding_them_copies() -> None:
    plain = Message("assistant", (Text("hi"),))
    full = msgspec.structs.replace(plain, parts=(*plain.parts, ToolCall("c", "look"), ToolResult("c")))

    assert (full.text, len(full.calls), len(full.results)) == ("hi", 1, 1)
    assert plain.parts == (Text("hi"),)


def test_registry_lookup_by_tag_subset() -> None:
    models = Models()
    models.add(Model("m"), ("a", "b", "c"))

    assert models.resolve(model("c", "a")) == Model("m")


def test_registry_tags_given_one_by_one_are_found_together() -> None:
    """Inverted: the seed keeps an entry for each tag that is added alone, so that two are never found together."""
    models = Models()
    models.add(Model("m"), "a")
    models.add(Model("m"), "b")

    assert models.resolve(model("a", "b")) == Model("m")


def test_registry_a_miss_is_recorded_and_raised_at_build() -> None:
    models, wanted = Models(), model("late")
    with pytest.raises(WiringError, match="no model has the tags `late`"):
        models.ladder(wanted)

    models.add(Model("m"), "late")

    assert models.ladder(wanted) == Model("m")


def test_registry_the_first_matching_registration_wins() -> None:
    models = Models()
    models.add(Model("first"), "a")
    models.add(Model("second"), ("a", "b"))

    assert models.resolve(model("a")) == Model("first")


def test_registry_the_first_registration_is_the_default_and_an_explicit_default_overrides() -> None:
    models = Models()
    models.add(Model("first"))
    models.add(Model("second"), "a")
    assert models.default == Model("first")

    models.add(Model("second"), default=True)

    assert models.default == Model("second")


def test_an_override_with_only_a_temperature_counts() -> None:
    """Inverted: to the seed such an override is unset, and its ladder passes it over."""
    models = Models()
    models.add(Model("m"))

    assert models.ladder(model(temperature=0.9)) == Model("m", temperature=0.9)


def test_spec_builders_are_immutable_copies() -> None:
    plain = Model("m")
    hot = plain.having(temperature=0.9)

    assert (plain.temperature, hot.temperature) == (None, 0.9)


@pytest.mark.parametrize(("given", "left"), [("openai", set()), ("anthropic", {"max_tokens"})])
def test_unset_params_stay_unset(up: Upstream, given: Provider, left: set[str]) -> None:
    knobs = {
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "stop_sequences",
        "max_tokens",
        "max_completion_tokens",
        "thinking",
    }

    # Anthropic's protocol insists on a token limit.
    assert knobs & sent(up, given).keys() == left


def test_build_happy(up: Upstream, provider: Provider) -> None:
    models = Models()
    models.add(spec(up, provider, "text:fine"), "a")
    found = models.ladder(model("a"))

    assert found is not None
    assert answer(connect(found, Settings())).text == "fine"


def test_build_nameless() -> None:
    with pytest.raises(WiringError, match="a model needs a `name`"):
        Model("")


def test_build_recorded_error() -> None:
    models = Models()
    models.add(Model("m"), "a")
    found = models.ladder(model("a"))

    assert found == Model("m")
    with pytest.raises(WiringError, match="model `m` has no key"):
        connect(found, Settings())


def test_all_errors_share_one_root() -> None:
    raised = [
        thing
        for thing in vars(bigbrain.errors).values()
        if isinstance(thing, type) and issubclass(thing, Exception) and thing.__module__ == "bigbrain.errors"
    ]

    assert [thing for thing in raised if not issubclass(thing, BrainError)] == []
    assert len(raised) > 20


def test_one_client_per_provider_url_and_key() -> None:
    """Inverted: the seed has one for each model name as well; ours share their server's connections."""
    at = Address("openai", "http://127.0.0.1:9/v1", "some-key")
    others = [
        at._replace(provider="anthropic"),
        at._replace(base_url="http://127.0.0.1:8/v1"),
        at._replace(key="another-key"),
    ]

    assert endpoint(at) is endpoint(Address(*at))
    assert len({id(endpoint(each)) for each in (at, *others)}) == 4


def test_both_providers_have_a_server_and_a_key_of_their_own(up: Upstream) -> None:
    """Inverted: the seed has one address and one key for both."""
    settings = Settings(base_url=up.openai, api_key="k1", anthropic_base_url=up.anthropic, anthropic_api_key="k2")
    for provider in ("openai", "anthropic"):
        answer(connect(Model("echo", provider=provider), settings))

    assert [(request.path, request.key) for request in up.requests] == [
        ("/v1/chat/completions", "k1"),
        ("/v1/messages", "k2"),
    ]


def test_a_stream_that_breaks_off_is_an_error_with_what_came_before(up: Upstream, provider: Provider) -> None:
    """Inverted: from the seed, a text that broke off can pass for a complete one."""
    events, error = partly(asks(up, provider, "cut:2"))

    assert text_of(events) == "w0 w1 "
    assert isinstance(error, ModelBroke)
