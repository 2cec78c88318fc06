"""What every dialect promises, whatever its wire looks like.

A test module inherits `DialectContract`, names its module in `dialect` and restricts
the random values to what its wire carries, by the hooks in the first half of the class.
What the wire is known to lose stands in the three `…_kept` hooks, and nowhere else.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bigbrain.errors import Busy, ModelBroke, ModelBusy, ModelError, WireError
from bigbrain.events import Closed, Delta, Event, Failed, Finished, Opened, Started, checked, collect, fold, replay
from bigbrain.messages import (
    JSON,
    File,
    ForcedTool,
    Image,
    Message,
    Part,
    Request,
    Response,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    user,
)
from bigbrain.wire import Dialect, Frame, sse
from tests.contracts.values import arguments, cut, garbage, images, names, schemas, spoilt, texts, usages, words

CANARY = "canary-7f3a"

fuzz = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)
"""Inherited tests run with several instances, which hypothesis would otherwise take for a mistake."""


def wired(value: JSON) -> JSON:
    """The value as it arrives on the other side."""
    return json.loads(json.dumps(value))


def stream(dialect: Dialect, events: Iterable[Event], request: Request) -> Iterator[bytes]:
    """What a client receives, in the pieces in which it is written."""
    so_far, sent = Response(), 0
    for event in events:
        so_far = fold(so_far, event)
        for frame in dialect.write_event(event, so_far, request, sent):
            yield frame
            sent += 1


def said(response: Response) -> tuple[str, str, tuple[ToolCall, ...], object, Usage]:
    """What an answer says, wherever its wire puts refusals among texts."""
    texts = [part for part in response.parts if isinstance(part, Text)]
    plain = "".join(part.text for part in texts if not part.refusal)
    refused = "".join(part.text for part in texts if part.refusal)
    return plain, refused, response.calls, response.stop, response.usage


class DialectContract:
    """Inherit it, set `dialect`, override the hooks that do not fit, and run."""

    dialect: ClassVar[Dialect]
    fields: ClassVar[frozenset[str]]
    """Every key that the dialect's reader looks at, in requests and answers; garbage is made of them."""

    # What the wire can carry.

    def user_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts | images, min_size=1, max_size=3).map(tuple)

    def system_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts, min_size=1, max_size=2).map(tuple)

    def assistant_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        """Without calls, which the contract adds behind them."""
        return st.lists(texts, min_size=1, max_size=3).map(tuple)

    def result_parts(self) -> st.SearchStrategy[tuple[Text | Image | File, ...]]:
        return st.lists(texts, min_size=1, max_size=2).map(tuple)

    def result_errors(self) -> st.SearchStrategy[bool]:
        """Whether a result may say that it is an error."""
        return st.just(False)

    def knobs(self) -> st.SearchStrategy[dict[str, Any]]:
        """Fields of `Request` beside messages and tools, by name."""
        return st.fixed_dictionaries(
            {"model": names, "stream": st.booleans(), "max_tokens": st.integers(1, 100_000)},
            optional={
                "temperature": st.floats(0, 1),
                "top_p": st.floats(0, 1),
                "stop": st.lists(words, min_size=1, max_size=3).map(tuple),
                "user": names,
                "schema": schemas,
            },
        )

    def tools(self) -> st.SearchStrategy[tuple[ToolSpec, ...]]:
        spec = st.builds(ToolSpec, names, words, st.just({"type": "object", "properties": {"a": {"type": "string"}}}))
        return st.lists(spec, max_size=3, unique_by=lambda tool: tool.name).map(tuple)

    def response_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        """Without calls."""
        return st.lists(texts, max_size=2).map(tuple)

    def usages(self) -> st.SearchStrategy[Usage]:
        return usages

    def asking(self) -> Request:
        """A question whose streamed answer tells everything the wire can tell."""
        return Request(model="m", messages=(user("hi"),), stream=True)

    # What the wire is known to lose.

    def request_kept(self, request: Request) -> Request:
        """What comes back of a request."""
        return request

    def response_kept(self, response: Response) -> Response:
        """What comes back of a whole answer."""
        return response

    def stream_kept(self, response: Response) -> Response:
        """What comes back of a streamed answer."""
        return response

    # Random values in normal form.

    def messages(self, draw: st.DrawFn) -> tuple[Message, ...]:
        """A conversation that starts with the user; every call in it is answered, every id is its own."""
        messages = [Message("user", draw(self.user_parts()))]
        for turn in draw(st.lists(st.sampled_from(["system", "user", "assistant", "round"]), max_size=4)):
            match turn:
                case "system":
                    messages.append(Message("system", draw(self.system_parts())))
                case "user":
                    messages.append(Message("user", draw(self.user_parts())))
                case "assistant":
                    messages.append(Message("assistant", draw(self.assistant_parts())))
                case _:
                    messages.extend(self.round(draw, len(messages)))
        return tuple(messages)

    def round(self, draw: st.DrawFn, turn: int) -> list[Message]:
        """One round of calls with its results."""
        calls = [
            ToolCall(f"call_{turn}_{number}", draw(names), draw(arguments)) for number in range(draw(st.integers(1, 3)))
        ]
        before = draw(st.just(()) | self.assistant_parts())
        results = tuple(ToolResult(call.id, draw(self.result_parts()), draw(self.result_errors())) for call in calls)
        return [Message("assistant", (*before, *calls)), Message("tool", results)]

    def request(self, draw: st.DrawFn) -> Request:
        tools = draw(self.tools())
        forced = [ForcedTool(tool.name) for tool in tools]
        choices = ["auto", "any", "none", *forced] if tools else ["auto"]
        return Request(
            messages=self.messages(draw),
            tools=tools,
            tool_choice=draw(st.sampled_from(choices)),
            parallel_calls=draw(st.sampled_from([None, True, False])) if tools else None,
            **draw(self.knobs()),
        )

    def response(self, draw: st.DrawFn) -> Response:
        calls = tuple(
            ToolCall(f"call_{number}", draw(names), draw(arguments)) for number in range(draw(st.integers(0, 3)))
        )
        stops = ["calls", "length"] if calls else ["end", "length"]
        return Response(
            id=draw(names),
            model=draw(names),
            created=draw(st.integers(1, 2_000_000_000)),
            parts=(*draw(self.response_parts()), *calls),
            stop=draw(st.sampled_from(stops)),
            usage=draw(self.usages()),
        )

    # The promises.

    @given(data=st.data())
    @fuzz
    def test_a_request_survives_the_wire(self, data: st.DataObject) -> None:
        request = data.draw(st.composite(self.request)())

        assert self.dialect.read_request(wired(self.dialect.write_request(request))) == self.request_kept(request)

    @given(data=st.data())
    @fuzz
    def test_a_whole_answer_survives_the_wire(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        document = wired(self.dialect.write_response(response, self.asking()))

        assert self.dialect.read_response(document) == self.response_kept(response)

    @given(data=st.data())
    @fuzz
    def test_a_streamed_answer_survives_the_wire_however_it_is_cut(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        sent = b"".join(stream(self.dialect, replay(response), self.asking()))
        places = data.draw(st.lists(st.integers(0, 1 << 16), max_size=12))
        events = checked(self.dialect.read_events(sse.read(cut(sent, places))))

        assert collect(events) == self.stream_kept(response)

    @given(data=st.data())
    @fuzz
    def test_the_cutting_of_texts_into_deltas_makes_no_difference(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        letters = [
            one
            for event in replay(response)
            for one in ([Delta(event.index, c) for c in event.text] if isinstance(event, Delta) else [event])
        ]
        sent = b"".join(stream(self.dialect, letters, self.asking()))

        assert collect(checked(self.dialect.read_events(sse.read([sent])))) == self.stream_kept(response)

    @given(data=st.data())
    @fuzz
    def test_a_stream_that_breaks_off_is_never_taken_for_a_whole_one(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        sent = b"".join(stream(self.dialect, replay(response), self.asking()))
        end = data.draw(st.integers(0, len(sent) - 1))
        whole = self.stream_kept(response)
        try:
            got = collect(self.dialect.read_events(sse.read([sent[:end]])))
        except ModelBroke:
            return

        assert (got.parts, got.stop) == (whole.parts, whole.stop)

    @given(data=st.data())
    @fuzz
    def test_heartbeats_mean_nothing(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        so_far, sent = Response(), []
        for event in replay(response):
            sent.append(self.dialect.write_heartbeat(so_far, self.asking(), len(sent)))
            so_far = fold(so_far, event)
            sent += self.dialect.write_event(event, so_far, self.asking(), len(sent))

        assert collect(checked(self.dialect.read_events(sse.read(sent)))) == self.stream_kept(response)

    @given(data=st.data())
    @fuzz
    def test_whole_and_streamed_answers_say_the_same(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        whole = self.dialect.read_response(wired(self.dialect.write_response(response, self.asking())))
        sent = b"".join(stream(self.dialect, replay(response), self.asking()))
        live = collect(self.dialect.read_events(sse.read([sent])))

        assert said(whole) == said(live)

    @given(data=st.data())
    @fuzz
    def test_a_wrong_request_is_refused_by_name_and_nothing_else_happens(self, data: st.DataObject) -> None:
        body = wired(self.dialect.write_request(data.draw(st.composite(self.request)())))
        victim = data.draw(st.sampled_from(sorted(body)))
        body[victim] = data.draw(st.composite(spoilt)(body[victim], garbage(self.fields)))
        try:
            self.dialect.read_request(body)
        except WireError as error:
            assert error.param
            assert str(error)

    @given(data=st.data())
    @fuzz
    def test_nonsense_instead_of_a_request_is_refused(self, data: st.DataObject) -> None:
        try:
            self.dialect.read_request(data.draw(garbage(self.fields)))
        except WireError as error:
            assert str(error)

    @given(data=st.data())
    @fuzz
    def test_nonsense_instead_of_an_answer_is_a_failure_of_the_model(self, data: st.DataObject) -> None:
        nonsense = garbage(self.fields)
        frame = st.builds(
            lambda value: Frame(str(value.get("type", "")), json.dumps(value).encode()), nonsense.map(_object)
        )
        with contextlib.suppress(ModelError):
            self.dialect.read_response(data.draw(nonsense))
        with contextlib.suppress(ModelError):
            collect(checked(self.dialect.read_events(data.draw(st.lists(frame, max_size=4)))))

    @given(data=st.data())
    @fuzz
    def test_a_wrong_value_in_an_answer_is_passed_over_or_a_failure_of_the_model(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        document = wired(self.dialect.write_response(response, self.asking()))
        frames = list(sse.read(stream(self.dialect, replay(response), self.asking())))
        place = data.draw(st.integers(0, len(frames) - 1))
        if frames[place].data.startswith(b"{"):
            chunk = data.draw(st.composite(spoilt)(json.loads(frames[place].data), garbage(self.fields)))
            frames[place] = frames[place]._replace(data=json.dumps(chunk).encode())
        document = data.draw(st.composite(spoilt)(document, garbage(self.fields)))
        with contextlib.suppress(ModelError):
            self.dialect.read_response(document)
        with contextlib.suppress(ModelError):
            collect(checked(self.dialect.read_events(frames)))

    def test_bytes_that_are_no_json_are_a_failure_of_the_model(self) -> None:
        with pytest.raises(ModelBroke):
            list(self.dialect.read_events([Frame("message_start", b"<html>busy</html>")]))

    def test_what_another_dialect_notes_never_reaches_this_wire(self) -> None:
        vendor = {"elsewhere": {"note": CANARY}}
        parts = (Text("hi", vendor=vendor), ToolCall("c1", "w", "{}", vendor=vendor))
        asked = Request(
            model="m",
            max_tokens=9,
            messages=(
                Message("user", (Text("go", vendor=vendor),)),
                Message("assistant", parts),
                Message("tool", (ToolResult("c1", (Text("ok", vendor=vendor),), vendor=vendor),)),
            ),
            tools=(ToolSpec("w", vendor=vendor),),
            extra=vendor,
        )
        answer = Response("r", "m", 1, parts, "calls", vendor=vendor)
        sent = [
            json.dumps(self.dialect.write_request(asked)).encode(),
            json.dumps(self.dialect.write_response(answer, asked)).encode(),
            *stream(self.dialect, replay(answer), asked),
        ]

        assert CANARY.encode() not in b"".join(sent)

    def test_a_failure_in_the_middle_of_a_stream_reaches_the_reader_after_what_came_before(self) -> None:
        failed = Failed("model_broke", "The model behind this brain broke off.", 502, True)
        events: list[Event] = [Started("r1", "m", 1), Opened(0, Text()), Delta(0, "Hel"), failed]
        sent = b"".join(stream(self.dialect, events, self.asking()))
        seen: list[type] = []
        with pytest.raises(ModelError, match="broke off"):
            for event in self.dialect.read_events(sse.read([sent])):
                seen.append(type(event))

        assert seen == [Started, Opened, Delta]

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529])
    def test_a_refusal_comes_back_as_an_error_of_the_model(self, status: int) -> None:
        failed = Failed("some_code", "a sentence", status, retryable=status >= 408)
        sent, headers, body = self.dialect.write_error(failed, "run_1")
        error = self.dialect.read_error(sent, headers, json.dumps(body).encode())

        assert "a sentence" in str(error)
        assert headers["x-should-retry"] == ("true" if failed.retryable else "false")

    def test_busy_comes_back_as_busy_with_its_time_to_wait(self) -> None:
        sent, headers, body = self.dialect.write_error(Failed.of(Busy("full; try again", retry_after=2.0)), "run_1")
        error = self.dialect.read_error(sent, headers, json.dumps(body).encode())

        assert (type(error), error.retry_after) == (ModelBusy, 2.0)

    def test_errors_that_are_no_json_are_understood_by_their_status(self) -> None:
        error = self.dialect.read_error(502, {}, b"<html>Bad Gateway</html>")

        assert type(error) is ModelBroke
        assert "Bad Gateway" in str(error)

    def test_an_answer_without_parts_survives(self) -> None:
        response = Response("r1", "m", 1, (), "end", usage=Usage(3, 1))
        sent = b"".join(stream(self.dialect, replay(response), self.asking()))

        assert collect(checked(self.dialect.read_events(sse.read([sent])))) == self.stream_kept(response)

    def test_text_and_calls_survive_together(self) -> None:
        parts = (Text("look: "), ToolCall("a", "w", '{"c":"Oslo"}'), ToolCall("b", "w", '{"c":"北"}'))
        response = Response("r1", "m", 1, parts, "calls", usage=Usage(3, 1))
        sent = b"".join(stream(self.dialect, replay(response), self.asking()))
        events = list(checked(self.dialect.read_events(sse.read([sent]))))

        assert collect(events).parts == parts
        assert [event for event in events if isinstance(event, Closed)] == [Closed(0), Closed(1), Closed(2)]
        assert isinstance(events[-1], Finished)

    def test_a_request_is_not_changed_by_being_written(self) -> None:
        request = replace(
            self.asking(), max_tokens=9, messages=(user("a"), Message("assistant", (ToolCall("c", "w"),)))
        )
        first = self.dialect.write_request(request)

        assert self.dialect.write_request(request) == first


def _object(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {"type": value}
