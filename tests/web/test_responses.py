"""`/v1/responses`: asked, stored, gone on from, followed again, in the background, stopped, deleted."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest
from werkzeug.test import TestResponse

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.errors import ContextTooLong, ModelBusy
from bigbrain.events import Event, replay
from bigbrain.flows import Flow, respond
from bigbrain.messages import Request, Response, Text, Thinking, ToolCall, Usage
from bigbrain.models import FixedModel
from bigbrain.scope import Scope
from bigbrain.settings import Limits, Settings
from bigbrain.turns import Turn
from bigbrain.wire import openai_responses, sse
from tests.web.site import Pausing, Site, saying, serving

PATH = "/v1/responses"
KEYED = Settings(keys=("one", "other"))


class Echo:
    """A model that tells the whole conversation, so that a test sees what reached it."""

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        told = " | ".join(f"{message.role}: {message.text or list(message.parts)}" for message in request.messages)
        yield from replay(Response(parts=(Text(told),), stop="end", usage=Usage(3, 2)))


class Caller:
    """A model that thinks, then calls the first tool, or tells the result that came."""

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        results = request.messages[-1].results
        if results:
            parts: tuple[Any, ...] = (Text(f"seen: {results[0].text}"),)
        else:
            signed = Thinking("mull", vendor={"anthropic": {"signature": "sig"}})
            parts = (signed, ToolCall("c1", request.tools[0].name, '{"n":1}'))
        yield from replay(Response(parts=parts, stop="end" if results else "calls", usage=Usage(3, 2)))


def echoing() -> Brain:
    return Brain("b", Flow(model=Echo()))


def ask(site: Site, text: Any = "hi", key: str = "", **body: Any) -> TestResponse:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return site.client.post(PATH, json={"model": "b", "input": text, **body}, headers=headers)


def text_of(document: Any) -> str:
    return openai_responses.read_response(document).text


def frames_of(response: TestResponse) -> list[dict[str, Any]]:
    return [json.loads(frame.data) for frame in sse.read([response.data])]


def until(site: Site, response_id: str, *statuses: str, within: float = 10.0) -> dict[str, Any]:
    """The response as soon as it has one of these statuses."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        document = site.client.get(f"{PATH}/{response_id}").json
        if document["status"] in statuses:
            return document
        time.sleep(0.01)
    pytest.fail(f"{response_id} is still {document['status']}")


def test_an_answer_comes_whole() -> None:
    with serving(saying("fox 🦊 北")) as site:
        got = ask(site, metadata={"k": "v"}, instructions="be brief")

    assert got.status_code == 200
    assert got.json["id"] == f"resp_{got.headers['X-Run-Id']}"
    assert (got.json["status"], got.json["metadata"], got.json["instructions"]) == ("completed", {"k": "v"}, "be brief")
    assert (text_of(got.json), got.json["store"]) == ("fox 🦊 北", True)


def test_conformance_42_an_answer_is_streamed_when_the_body_asks_whatever_is_accepted() -> None:
    with serving(saying("fox 🦊 北")) as site:
        got = site.client.post(PATH, json={"input": "x", "stream": True}, headers={"Accept": "application/json"})
        told = frames_of(got)

    assert got.mimetype == "text/event-stream"
    assert [one["sequence_number"] for one in told] == list(range(len(told)))
    assert (told[0]["type"], told[-1]["type"]) == ("response.created", "response.completed")
    assert text_of(told[-1]["response"]) == "fox 🦊 北"


def test_conformance_20_the_first_frame_tells_what_the_answer_is_to_be() -> None:
    with serving(saying("x")) as site:
        told = frames_of(ask(site, stream=True))
    (done,) = [one["item"] for one in told if one["type"] == "response.output_item.done"]

    assert told[0]["response"]["model"] == "b"
    assert told[0]["response"]["created_at"] > 0
    assert (done["status"], done["content"][0]["annotations"]) == ("completed", [])


def test_a_stored_answer_can_be_read_again() -> None:
    with serving(saying("x")) as site:
        first = ask(site).json
        again = site.client.get(f"{PATH}/{first['id']}")

    assert (again.status_code, again.json) == (200, first)


def test_conformance_25_a_response_goes_on_from_the_one_before_without_its_instructions() -> None:
    with serving(echoing()) as site:
        first = ask(site, "one", instructions="be brief").json
        second = ask(site, "two", previous_response_id=first["id"], instructions="be long").json
        third = ask(site, "three", previous_response_id=second["id"], stream=True)

    assert text_of(first) == "system: be brief | user: one"
    said = f"user: one | assistant: {text_of(first)} | user: two"
    assert text_of(second) == f"system: be long | {said}"
    assert second["previous_response_id"] == first["id"]
    assert text_of(frames_of(third)[-1]["response"]) == f"{said} | assistant: {text_of(second)} | user: three"


def test_conformance_25_the_result_of_a_call_is_enough_when_the_call_is_in_the_response_before() -> None:
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    output = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
    with serving(Brain("b", Flow(model=Caller()))) as site:
        first = ask(site, tools=tools).json
        second = ask(site, [output], tools=tools, previous_response_id=first["id"])
        foreign = ask(site, [{**output, "call_id": "c9"}], tools=tools, previous_response_id=first["id"])

    assert [item["type"] for item in first["output"]] == ["reasoning", "function_call"]
    assert text_of(second.json) == "seen: sunny"
    assert (foreign.status_code, "'c9'" in foreign.json["error"]["message"]) == (400, True)


def test_items_of_a_stored_response_can_be_named_instead_of_sent() -> None:
    with serving(echoing()) as site:
        first = ask(site, "one").json
        reference = {"type": "item_reference", "id": first["output"][0]["id"]}
        second = ask(site, [{"role": "user", "content": "one"}, reference, {"role": "user", "content": "two"}])
        unknown = ask(site, [{"type": "item_reference", "id": "msg_gone_0"}])

    assert text_of(second.json) == f"user: one | assistant: {text_of(first)} | user: two"
    assert (unknown.status_code, unknown.json["error"]["param"]) == (400, "input[0].id")


@pytest.mark.parametrize("previous", ["resp_gone", "gone", "resp_../x", ""])
def test_conformance_25_an_unknown_response_cannot_be_gone_on_from(previous: str) -> None:
    with serving(echoing()) as site:
        got = ask(site, previous_response_id=previous)

    if not previous:
        assert got.status_code == 200
        return
    error = got.json["error"]
    assert (got.status_code, error["code"], error["param"]) == (
        400,
        "previous_response_not_found",
        "previous_response_id",
    )


def test_conformance_25_what_is_not_to_be_stored_cannot_be_read_or_gone_on_from() -> None:
    with serving(echoing()) as site:
        first = ask(site, store=False).json
        path = f"{PATH}/{first['id']}"
        got = [
            site.client.get(path).status_code,
            site.client.get(f"{path}/input_items").status_code,
            site.client.post(f"{path}/cancel").status_code,
            site.client.delete(path).status_code,
            site.client.get(f"/v1/runs/{first['id'].removeprefix('resp_')}/events").status_code,
            ask(site, previous_response_id=first["id"]).status_code,
        ]

    assert (first["store"], got) == (False, [404, 404, 404, 404, 404, 400])


def test_what_is_not_to_be_stored_leaves_its_record_after_a_minute_and_what_is_after_a_day() -> None:
    with serving(echoing()) as site:
        gone, kept = ask(site, store=False), ask(site)
        lifetimes = []
        for one in (gone, kept):
            run_id = one.headers["X-Run-Id"]
            site.record(run_id)
            lifetimes.append(site.house.store.client.pttl(f"bb:run:open:{run_id}") / 1000)

    assert lifetimes == [pytest.approx(60, abs=10), pytest.approx(86_400, abs=10)]


def test_a_response_is_there_for_its_own_key_only() -> None:
    with serving(echoing(), KEYED) as site:
        first = ask(site, key="one").json
        headers = {"x-api-key": "other"}
        path = f"{PATH}/{first['id']}"
        got = [
            site.client.get(path, headers=headers).status_code,
            site.client.post(f"{path}/cancel", headers=headers).status_code,
            site.client.delete(path, headers=headers).status_code,
            ask(site, key="other", previous_response_id=first["id"]).status_code,
            site.client.get(path, headers={"x-api-key": "one"}).status_code,
        ]

    assert got == [404, 404, 404, 400, 200]


def test_a_run_of_another_protocol_is_no_response() -> None:
    with serving(saying("x")) as site:
        chat = site.client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}]})

        assert site.client.get(f"{PATH}/resp_{chat.headers['X-Run-Id']}").status_code == 404


def test_an_unknown_response_is_not_found_in_the_shape_of_the_protocol() -> None:
    with serving(saying("x")) as site:
        got = site.client.get(f"{PATH}/resp_gone")

    assert got.status_code == 404
    assert got.json["error"]["message"] == "Response with id 'resp_gone' not found."
    assert got.json["error"]["type"] == "invalid_request_error"


def test_a_conversation_that_has_grown_over_the_cap_is_refused() -> None:
    with serving(echoing(), Settings(limits=Limits(max_messages=3))) as site:
        first = ask(site, "one").json
        second = ask(site, "two", previous_response_id=first["id"]).json
        third = ask(site, "three", previous_response_id=second["id"])

    assert (third.status_code, third.json["error"]["param"]) == (413, "previous_response_id")


@pytest.mark.parametrize("after", [-1, 0, 3, 5])
def test_a_stream_is_taken_up_behind_any_frame(after: int) -> None:
    with serving(saying("one two three")) as site:
        told = frames_of(ask(site, stream=True))
        query = "?stream=true" + (f"&starting_after={after}" if after >= 0 else "")
        again = site.client.get(f"{PATH}/{told[0]['response']['id']}{query}")

        assert again.mimetype == "text/event-stream"
        assert frames_of(again) == told[after + 1 :]


def test_a_stream_that_is_taken_up_while_it_goes_on_misses_nothing() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        response = ask(site, stream=True)
        head = next(iter(response.response))
        first = [json.loads(frame.data) for frame in sse.read([head])]
        model.reached.wait(5)
        again = site.client.get(f"{PATH}/{first[0]['response']['id']}?stream=true&starting_after=1")
        model.may_go_on.set()
        rest = frames_of(again)

    assert [one["sequence_number"] for one in rest] == list(range(2, 2 + len(rest)))
    assert text_of(rest[-1]["response"]) == "begun"


@pytest.mark.parametrize("query", ["?stream=true&starting_after=x", "?stream=true&starting_after=-1"])
def test_a_place_in_a_stream_that_is_none_is_refused(query: str) -> None:
    with serving(saying("x")) as site:
        first = ask(site).json
        got = site.client.get(f"{PATH}/{first['id']}{query}")

    assert (got.status_code, got.json["error"]["param"]) == (400, "starting_after")


def test_a_response_in_the_background_is_there_at_once_and_its_answer_later() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        first = ask(site, background=True).json
        model.reached.wait(5)
        middle = until(site, first["id"], "in_progress")
        refused = ask(site, "on", previous_response_id=first["id"])
        model.may_go_on.set()
        last = until(site, first["id"], "completed")

    assert (first["status"], first["background"], first["output"], first["usage"]) == ("queued", True, [], None)
    assert (middle["status"], middle["usage"]) == ("in_progress", None)
    assert (refused.status_code, refused.json["error"]["code"]) == (400, "previous_response_not_found")
    assert text_of(last) == "begun"


def test_nobody_has_to_wait_for_a_response_in_the_background() -> None:
    with serving(saying("x")) as site:
        first = ask(site, background=True)
        record = site.record(first.headers["X-Run-Id"])

        assert site.house.store.client.hget(f"bb:run:{record.id}", "lasting") == b"1"
        assert record.status == "done"


def test_a_response_in_the_background_can_be_streamed_too() -> None:
    with serving(saying("x")) as site:
        told = frames_of(ask(site, background=True, stream=True))

    assert told[-1]["type"] == "response.completed"


def test_a_response_is_stopped_and_stays_stopped() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        first = ask(site, background=True).json
        model.reached.wait(5)
        stopped = site.client.post(f"{PATH}/{first['id']}/cancel")
        again = site.client.post(f"{PATH}/{first['id']}/cancel")
        shown = site.client.get(f"{PATH}/{first['id']}")

    assert [one.json["status"] for one in (stopped, again, shown)] == ["cancelled"] * 3
    assert (stopped.status_code, stopped.json["error"]) == (200, None)


def test_stopping_a_complete_response_changes_nothing() -> None:
    with serving(saying("x")) as site:
        first = ask(site).json

        assert site.client.post(f"{PATH}/{first['id']}/cancel").json == first


def test_a_deleted_response_is_gone() -> None:
    with serving(saying("x")) as site:
        first = ask(site)
        site.record(first.headers["X-Run-Id"])
        path = f"{PATH}/{first.json['id']}"
        deleted = site.client.delete(path)

        assert deleted.json == {"id": first.json["id"], "object": "response", "deleted": True}
        assert [site.client.get(path).status_code, site.client.delete(path).status_code] == [404, 404]
        assert site.house.store.client.keys(f"bb:run:open:{first.headers['X-Run-Id']}*") == []


def test_a_response_that_is_deleted_while_it_is_made_is_stopped_and_gone() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        first = ask(site, background=True)
        model.reached.wait(5)
        path = f"{PATH}/{first.json['id']}"

        assert site.client.delete(path).status_code == 200
        assert site.client.get(path).status_code == 404
        assert site.client.get(f"/v1/runs/{first.headers['X-Run-Id']}/events").status_code == 404
        assert site.record(first.headers["X-Run-Id"]).status == "cancelled"


def test_what_a_brain_does_after_its_answer_leaves_the_response_complete() -> None:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise ValueError("late")

    with serving(Brain("b", Flow(model=FixedModel("x")) >> respond >> Flow(fail))) as site:
        first = ask(site)
        record = site.record(first.headers["X-Run-Id"])
        shown = site.client.get(f"{PATH}/{first.json['id']}").json

    assert (record.status, shown["status"], shown["error"]) == ("failed", "completed", None)


def test_what_was_asked_is_listed_by_pages() -> None:
    with serving(saying("x")) as site:
        first = ask(site, [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]).json
        path = f"{PATH}/{first['id']}/input_items"
        newest = site.client.get(f"{path}?limit=1").json
        rest = site.client.get(f"{path}?limit=1&after={newest['last_id']}").json
        oldest = site.client.get(f"{path}?order=asc").json
        wrong = site.client.get(f"{path}?after=gone")

    texts = [[item["content"][0]["text"] for item in page["data"]] for page in (newest, rest, oldest)]
    assert texts == [["two"], ["one"], ["one", "two"]]
    assert [page["has_more"] for page in (newest, rest, oldest)] == [True, False, False]
    assert wrong.status_code == 400


def test_tokens_of_a_question_are_estimated() -> None:
    with serving(saying("x")) as site:
        got = site.client.post(f"{PATH}/input_tokens", json={"model": "b", "input": "how many are these?"})

    assert (got.json["object"], got.json["input_tokens"] > 0) == ("response.input_tokens", True)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [(ModelBusy(), 429, "rate_limit_error"), (ContextTooLong("long"), 400, "invalid_request_error")],
)
@pytest.mark.parametrize("stream", [False, True])
def test_conformance_34_what_fails_before_the_first_word_is_an_http_error(
    error: Exception, status: int, kind: str, stream: bool
) -> None:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise error

    with serving(Brain("b", Flow(fail))) as site:
        got = ask(site, stream=stream)

    assert (got.status_code, got.json["error"]["type"]) == (status, kind)
    assert "x-request-id" in got.headers


def test_conformance_37_what_fails_later_is_a_failed_response_that_can_be_read_again() -> None:
    model = Pausing(error=ModelBusy())
    model.may_go_on.set()
    with serving(Brain("b", Flow(model=model))) as site:
        told = frames_of(ask(site, stream=True))
        shown = site.client.get(f"{PATH}/{told[0]['response']['id']}").json
        again = frames_of(site.client.get(f"{PATH}/{shown['id']}?stream=true"))

    assert (told[-1]["type"], told[-1]["response"]["error"]["code"]) == ("response.failed", "rate_limit_exceeded")
    assert (shown["status"], shown["error"]["code"], text_of({**shown, "error": None, "status": "completed"})) == (
        "failed",
        "rate_limit_exceeded",
        "begun",
    )
    assert again == told


def test_conformance_40_a_silent_stream_sends_events_under_the_number_of_the_last_one() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model)), heartbeat=0.05) as site:
        chunks = iter(ask(site, stream=True).response)
        head = [next(chunks), next(chunks), next(chunks)]
        model.may_go_on.set()
        told = [json.loads(frame.data) for frame in sse.read([*head, *chunks])]
    numbers = [one["sequence_number"] for one in told]

    assert len([one for one in told if one["type"] == "response.in_progress"]) > 1
    assert sorted(set(numbers)) == list(range(numbers[-1] + 1))
    assert numbers == sorted(numbers)


def test_conformance_17_a_token_limit_that_is_hit_is_told() -> None:
    class Cut:
        def ask(self, request: Request, scope: Scope) -> Generator[Event]:
            yield from replay(Response(parts=(Text("half"),), stop="length"))

    with serving(Brain("b", Flow(model=Cut()))) as site:
        got = ask(site, max_output_tokens=5).json

    assert (got["status"], got["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert got["output"][0]["status"] == "incomplete"


def test_conformance_45_a_body_over_the_cap_is_refused_in_the_protocols_shape() -> None:
    with serving(saying("x"), Settings(limits=Limits(max_body=1000))) as site:
        got = ask(site, "x" * 2000)

    assert (got.status_code, got.json["error"]["type"]) == (413, "invalid_request_error")


def test_conformance_47_an_unknown_model_is_no_server_error() -> None:
    with serving(saying("x")) as site:
        for name in ("claude-opus-4-8", "gpt-6.2-sol", "stub:x", "a/b/c"):
            assert site.client.post(PATH, json={"model": name, "input": "x"}).status_code in (200, 404)
