"""What is told of a run, and that telling harms nobody."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator

import pytest

from bigbrain.engine.records import END, Outcome
from bigbrain.engine.runner import Engine
from bigbrain.engine.runs import Runs
from bigbrain.engine.store import RunStore
from bigbrain.errors import BudgetSpent, ModelBusy
from bigbrain.events import Closed, Delta, Event, Failed, Finished, Opened, Started
from bigbrain.messages import Text, Usage
from bigbrain.trace import JSONL, KINDS, TraceEvent, Trail
from bigbrain.traced import Traced
from tests.engine.acting import Acts, Kept, Plans, new_run, numbered


class Recorder:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def trace(self, event: TraceEvent) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def only(self, kind: str) -> TraceEvent:
        [event] = [event for event in self.events if event.kind == kind]
        return event


class Broken:
    """Cannot hear anything."""

    def trace(self, event: TraceEvent) -> None:
        raise RuntimeError("no")


ANSWER: list[Event] = [Started("a", "m"), Opened(0, Text()), Delta(0, "x"), Delta(0, "y"), Closed(0)]


def listened(*events: Event) -> tuple[list[Event], Recorder]:
    recorder = Recorder()
    heard = list(Trail((recorder,), run="r").listen("gpt", iter(events)))
    return heard, recorder


def test_an_event_says_where_it_happened_and_when() -> None:
    recorder = Recorder()
    before = time.time()
    Trail((recorder,), run="r1", flow="main", path="0", attempt=2).at(flow="inner", path="0.1").tell("select", id="x")

    [event] = recorder.events
    assert (event.kind, event.run, event.flow, event.path, event.attempt) == ("select", "r1", "inner", "0.1", 2)
    assert event.detail == {"id": "x"}
    assert before <= event.at <= time.time()


def test_a_tracer_that_fails_harms_neither_the_run_nor_the_others() -> None:
    recorder = Recorder()

    Trail((Broken(), recorder, Broken())).tell("respond")

    assert recorder.kinds == ["respond"]


def test_tokens_are_told_as_plain_values_without_zeros() -> None:
    recorder = Recorder()
    Trail((recorder,)).tell("flow.end", usage=Usage(input=3, cache_read=1))

    assert recorder.events[0].detail == {"usage": {"input": 3, "cache_read": 1}}


def test_each_event_is_one_line_of_json() -> None:
    stream = io.StringIO()
    trail = Trail((JSONL(stream),), run="r1")
    trail.tell("select", id="a\nb")
    trail.tell("respond")

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["kind"], line["run"], line.get("detail")) for line in lines] == [
        ("select", "r1", {"id": "a\nb"}),
        ("respond", "r1", None),
    ]


def test_lines_of_many_threads_stay_whole() -> None:
    stream = io.StringIO()
    trail = Trail((JSONL(stream),))
    threads = [
        threading.Thread(target=lambda: [trail.tell("select", id="x" * 500) for _ in range(50)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {json.loads(line)["detail"]["id"] for line in stream.getvalue().splitlines()} == {"x" * 500}
    assert stream.getvalue().count("\n") == 400


def test_a_stream_that_is_closed_ends_no_run() -> None:
    stream = io.StringIO()
    stream.close()

    Trail((JSONL(stream),)).tell("respond")


def test_a_question_to_a_model_is_told_with_its_cost_and_its_first_token() -> None:
    heard, recorder = listened(*ANSWER, Finished("end", Usage(3, 2)))

    assert heard == [*ANSWER, Finished("end", Usage(3, 2))]
    assert recorder.kinds == ["model.start", "model.call"]
    detail = recorder.only("model.call").detail
    assert (detail["model"], detail["stop"], detail["usage"]) == ("gpt", "end", {"input": 3, "output": 2})
    assert 0 <= detail["first"] <= detail["seconds"] < 5
    assert "error" not in detail


def test_a_model_that_refuses_is_told_by_its_code_only() -> None:
    def refusing() -> Iterator[Event]:
        raise ModelBusy("the key sk-secret is out of money")
        yield

    recorder = Recorder()
    with pytest.raises(ModelBusy):
        list(Trail((recorder,)).listen("gpt", refusing()))

    detail = recorder.only("model.call").detail
    assert (detail["error"], "first" in detail) == ("model_busy", False)
    assert "sk-secret" not in repr(recorder.events)


@pytest.mark.parametrize(
    ("last", "error"), [([], "model_broke"), ([Failed("model_error", "no")], "model_error")], ids=["cut", "failed"]
)
def test_an_answer_that_breaks_off_is_told_as_an_error(last: list[Event], error: str) -> None:
    _, recorder = listened(*ANSWER, *last)

    assert recorder.only("model.call").detail["error"] == error


def test_an_answer_that_nobody_wants_any_more_closes_its_source_and_is_told_as_closed() -> None:
    closed = threading.Event()

    def answering() -> Iterator[Event]:
        try:
            yield from ANSWER
        finally:
            closed.set()

    recorder = Recorder()
    events = Trail((recorder,)).listen("gpt", answering())
    next(events)
    events.close()  # type: ignore[attr-defined]

    assert closed.is_set()
    assert recorder.only("model.call").detail["error"] == "closed"


def test_an_answer_that_is_complete_is_told_once_however_its_reader_leaves() -> None:
    recorder = Recorder()
    events = Trail((recorder,)).listen("gpt", iter([*ANSWER, Finished("end")]))
    for event in events:
        if isinstance(event, Finished):
            break
    events.close()  # type: ignore[attr-defined]

    assert "error" not in recorder.only("model.call").detail


def test_with_nobody_who_wants_to_know_the_events_pass_untouched() -> None:
    events = iter(ANSWER)

    assert Trail().listen("gpt", events) is events


def test_a_block_is_told_with_its_duration_and_what_it_raised() -> None:
    recorder = Recorder()
    trail = Trail((recorder,))
    with trail.timed("tool.call", tool="a") as detail:
        detail["error"] = "tool_error"
    with pytest.raises(ValueError, match="secret"), trail.timed("tool.call", tool="b"):
        raise ValueError("secret")

    first, second = (event.detail for event in recorder.events)
    assert (first["tool"], first["error"]) == ("a", "tool_error")
    assert (second["tool"], second["error"]) == ("b", "ValueError")
    assert 0 <= first["seconds"] < 5


def engine_of(store: RunStore, acts: Acts, *tracers: object) -> Engine:
    runs = Runs(Plans(main=numbered(2)), store, Kept())
    return Engine(Traced(acts, tracers), runs)  # type: ignore[arg-type]


def going_on(to: str, **fields: object) -> Acts:
    outcome = Outcome(next=to, state=b"{}", done={"result": "done", "usage": {"input": 5}}, **fields)  # type: ignore[arg-type]
    return Acts({"0": lambda claim, tape, scope: outcome})


def test_a_step_is_told_with_what_it_waited_took_and_spent(store: RunStore) -> None:
    recorder = Recorder()
    engine = engine_of(store, going_on("1"), recorder)
    engine.runs.start(new_run())
    store.client.hincrby("bb:run:r1", "sent", -700)
    engine.run_step("r1", "0", 1)
    engine.close()

    assert recorder.kinds == ["step.start", "step.end"]
    assert 0.7 <= recorder.only("step.start").detail["waited"] < 5
    assert {(event.run, event.flow, event.path, event.attempt) for event in recorder.events} == {("r1", "main", "0", 1)}
    detail = recorder.only("step.end").detail
    assert (detail["result"], detail["usage"]) == ("done", {"input": 5})
    assert 0 <= detail["seconds"] < 5


def test_the_last_step_ends_the_run(store: RunStore) -> None:
    recorder = Recorder()
    engine = engine_of(store, going_on(END), recorder)
    engine.runs.start(new_run())
    engine.run_step("r1", "0", 1)
    engine.close()

    detail = recorder.only("run.end").detail
    assert 0 <= detail.pop("seconds") < 5
    assert detail == {"status": "done", "code": ""}


def test_a_step_that_fails_ends_the_run_with_its_code(store: RunStore) -> None:
    recorder = Recorder()
    failed = Outcome(next="0", state=b"{}", status="failed", done={"result": BudgetSpent.code})
    engine = engine_of(store, Acts({"0": lambda claim, tape, scope: failed}), recorder)
    engine.runs.start(new_run())
    engine.run_step("r1", "0", 1)
    engine.close()

    detail = recorder.only("run.end").detail
    assert detail.pop("seconds") >= 0
    assert detail == {"status": "failed", "code": "budget_spent"}


def test_a_step_that_is_taken_over_from_a_lost_worker_is_told_as_recovered(store: RunStore) -> None:
    recorder = Recorder()
    engine = engine_of(store, going_on("1"), recorder)
    engine.runs.start(new_run(durable=True))
    store.claim("r1", "0", 1, "who dies")
    store.client.zadd("bb:due", {"r1": 0})
    store.wake()
    engine.run_step("r1", "0", 2)
    engine.close()

    assert recorder.only("recovered").detail == {"lost": 1}
    assert recorder.only("recovered").attempt == 2


def test_a_run_whose_tracer_fails_is_done_all_the_same(store: RunStore) -> None:
    engine = engine_of(store, going_on(END), Broken())
    engine.runs.start(new_run())

    assert engine.run_step("r1", "0", 1)
    engine.close()
    record = store.record("r1")
    assert record is not None
    assert record.cursor == END


def test_every_kind_that_is_told_here_is_in_the_table(store: RunStore) -> None:
    recorder = Recorder()
    engine = engine_of(store, going_on(END), recorder)
    engine.runs.start(new_run())
    engine.run_step("r1", "0", 1)
    engine.close()
    _, model = listened(*ANSWER, Finished("end", Usage(1)))

    told = [*recorder.events, *model.events]
    assert [(event.kind, field) for event in told for field in event.detail if field not in KINDS[event.kind]] == []
