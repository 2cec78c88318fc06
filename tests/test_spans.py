"""What OpenTelemetry gets of a run: one trace, with its names for generative AI, and nothing that anybody said."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from bigbrain import All, Brain, Chat, FixedModel, Flow, Turn, agent, respond, tool
from bigbrain.errors import WiringError
from bigbrain.messages import ToolCall, Usage
from bigbrain.settings import Settings
from bigbrain.spans import Spans
from bigbrain.testing import Client, Says, ScriptedModel
from bigbrain.trace import TraceEvent
from tests.engine.acting import until

SLACK = 10_000_000
"""Ns by which a span may begin before its parent: runs are timed by another clock than steps, in whole milliseconds."""


class Collector:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracer = Spans(SimpleSpanProcessor(self.exporter), self.reader, "jarvis")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def only(self, name: str) -> ReadableSpan:
        [span] = [span for span in self.spans if span.name == name]
        return span

    def points(self, name: str) -> list[tuple[Mapping[str, object], float]]:
        """The attributes and the sum of each point of a metric."""
        data = self.reader.get_metrics_data()
        metrics = [metric for scope in data.resource_metrics[0].scope_metrics for metric in scope.metrics]
        [metric] = [metric for metric in metrics if metric.name == name]
        return [(dict(point.attributes), point.sum) for point in metric.data.data_points]


@pytest.fixture
def collector() -> Iterator[Collector]:
    one = Collector()
    yield one
    one.tracer.close()


def told(collector: Collector, brain: Brain, text: str = "hello") -> ReadableSpan:
    """The span of a run of that brain, once it is over."""
    with Client(brain) as client:
        client.ask(text, run_id="r1")
        until(lambda: [span for span in collector.spans if span.parent is None])
    [run] = [span for span in collector.spans if span.parent is None]
    return run


def within(span: ReadableSpan, outside: ReadableSpan) -> bool:
    """Whether a span is the child of another one, and has its time within its parent's."""
    assert span.context is not None
    assert outside.context is not None
    return (
        span.parent is not None
        and span.parent.span_id == outside.context.span_id
        and span.context.trace_id == outside.context.trace_id
        and outside.start_time - SLACK <= span.start_time <= span.end_time <= outside.end_time
    )


def test_a_run_is_one_trace_of_steps_flows_and_calls(collector: Collector) -> None:
    first, second = ScriptedModel("one", name="small"), ScriptedModel("two", name="large")
    brain = Brain(
        "b", Flow(model=first).named("in") >> respond >> Flow(model=second).named("out"), trace=[collector.tracer]
    )

    run = told(collector, brain)

    assert (run.name, run.status.status_code) == ("invoke_workflow b", StatusCode.UNSET)
    assert run.attributes is not None
    assert run.attributes["bigbrain.run.id"] == "r1"
    assert run.attributes["bigbrain.run.status"] == "done"
    for path, flow, model in (("0", "in", "small"), ("2", "out", "large")):
        step, agent, call = (
            collector.only(name) for name in (f"step {path}", f"invoke_agent b/{flow}", f"chat {model}")
        )
        assert within(step, run)
        assert within(agent, step)
        assert within(call, agent)
        assert (step.kind, call.kind) == (SpanKind.CONSUMER, SpanKind.CLIENT)
    assert len(collector.spans) == 7


def test_a_call_says_what_it_cost_as_the_conventions_count_it(collector: Collector) -> None:
    usage = Usage(input=10, output=7, cache_read=100, cache_write=1000, reasoning=3)
    model = ScriptedModel(Says("hi", usage=usage), name="gpt")
    told(collector, Brain("b", Flow(model=model), trace=[collector.tracer]))

    attributes = dict(collector.only("chat gpt").attributes or {})
    first = attributes.pop("gen_ai.response.time_to_first_chunk")
    assert isinstance(first, float)
    assert {name: value for name, value in attributes.items() if name.startswith("gen_ai")} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt",
        "gen_ai.response.finish_reasons": ("end",),
        "gen_ai.usage.input_tokens": 1110,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "gen_ai.usage.cache_creation.input_tokens": 1000,
        "gen_ai.usage.reasoning.output_tokens": 3,
    }
    about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt"}
    assert collector.points("gen_ai.client.token.usage") == [
        ({**about, "gen_ai.token.type": "input"}, 1110),
        ({**about, "gen_ai.token.type": "output"}, 7),
    ]
    [(attributes, seconds)] = collector.points("gen_ai.client.operation.duration")
    assert attributes == about
    assert 0 < seconds < 5


def test_members_of_a_group_and_tools_stand_in_what_they_belong_to(collector: Collector) -> None:
    @tool
    def look(where: str) -> str:
        """Looks there."""
        return "dark"

    @agent
    def looks(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.resolve(turn.last, tools=[look]))

    model = ScriptedModel(Says(calls=(ToolCall("c1", "look", '{"where": "out"}'),)), "it is dark", name="m")
    group = All(Flow(looks, model=model).named("left"), Flow(model=FixedModel("x")).named("right")).named("both")
    run = told(collector, Brain("b", group, trace=[collector.tracer]))

    step = collector.only("step 0")
    assert within(step, run)
    both = collector.only("invoke_agent b/both")
    assert within(both, step)
    left = collector.only("invoke_agent b/both/left")
    assert within(left, both)
    assert within(collector.only("invoke_agent b/both/right"), both)
    assert within(collector.only("execute_tool look"), left)
    assert sum(within(span, left) for span in collector.spans if span.name == "chat m") == 2


def test_what_fails_is_an_error_with_its_code_and_without_its_words(collector: Collector) -> None:
    @agent
    def breaks(turn: Turn, chat: Chat) -> None:
        raise RuntimeError("the secret word")

    run = told(collector, Brain("b", Flow(breaks).named("f"), trace=[collector.tracer]), "another secret word")

    for span in (run, collector.only("step 0"), collector.only("invoke_agent b/f")):
        assert span.status.status_code == StatusCode.ERROR
        assert dict(span.attributes or {})["error.type"] in ("run_failed", "handler_failed", "RuntimeError")
    assert "secret" not in "".join(span.to_json() for span in collector.spans)


def test_the_same_place_in_a_run_has_the_same_ids_in_every_process() -> None:
    events = [
        TraceEvent("step.start", "r1", 100.0, "b", "0", 1),
        TraceEvent("step.end", "r1", 101.0, "b", "0", 1, {"seconds": 1.0, "result": "done", "usage": {}}),
        TraceEvent("run.end", "r1", 101.0, "b", "0", 1, {"seconds": 2.0, "status": "done", "code": ""}),
    ]
    ids = []
    for _ in range(2):
        one = Collector()
        for event in events:
            one.tracer.trace(event)
        ids.append([(span.context.trace_id, span.context.span_id) for span in one.spans if span.context])
        one.tracer.close()

    assert ids[0] == ids[1]
    assert len({trace for trace, _ in ids[0]}) == 1
    assert len({span for _, span in ids[0]}) == 2


def test_a_trace_is_sampled_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    one = Collector()
    for number in range(40):
        for kind, detail in (
            ("step.start", {}),
            ("step.end", {"seconds": 1.0, "result": "done", "usage": {}}),
            ("run.end", {"seconds": 2.0, "status": "done", "code": ""}),
        ):
            one.tracer.trace(TraceEvent(kind, f"r{number}", 100.0, "b", "0", 1, detail))
    counts = Counter(span.context.trace_id for span in one.spans if span.context)
    one.tracer.close()

    assert set(counts.values()) == {2}
    assert 5 < len(counts) < 35


@pytest.mark.parametrize(
    ("environment", "name"),
    [({}, "jarvis"), ({"OTEL_SERVICE_NAME": "x"}, "x"), ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=y"}, "y")],
)
def test_the_sender_has_the_brains_name_unless_it_was_named(
    environment: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    one = Collector()
    one.tracer.trace(TraceEvent("run.end", "r1", 100.0, "b", "0", 1, {"seconds": 2.0, "status": "done", "code": ""}))
    [span] = one.spans
    one.tracer.close()

    assert span.resource.attributes["service.name"] == name


@pytest.mark.parametrize(
    ("telemetry", "endpoint", "provider"),
    [
        ("", "", "ProxyTracerProvider"),
        ("stdout", "", "TracerProvider"),
        ("otlp", "http://127.0.0.1:9", "TracerProvider"),
    ],
)
def test_the_processs_own_provider_is_ours_only_if_it_is_wanted_and_nobody_is_called_for_it(
    telemetry: str, endpoint: str, provider: str
) -> None:
    # in a process of its own, because a provider is set once for all
    code = (
        "import sys; from opentelemetry import trace; from bigbrain.settings import Settings; "
        "from bigbrain.telemetry import telemetry; "
        "sys.addaudithook(lambda event, args: event == 'socket.connect' and sys.exit(f'calls {args}')); "
        f"one = telemetry(Settings(telemetry={telemetry!r}, otlp_endpoint={endpoint!r}), 'b'); "
        "print(type(trace.get_tracer_provider()).__name__, one is None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout.split(), done.returncode) == ([provider, str(not telemetry)], 0), done.stderr


def test_without_its_packages_the_settings_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bigbrain.settings.find_spec", lambda _: None)

    with pytest.raises(WiringError, match=r"pip install 'bigbrain\[telemetry\]'"):
        Settings.read({"BIG_BRAIN_TELEMETRY": "stdout"})
