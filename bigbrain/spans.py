"""What happens in runs as OpenTelemetry has it: spans, and two metrics, under its names for generative AI.

A span is made when what it tells of is over, and its id is a function of the run and of the place in it. So a run is
one trace, in whichever processes its steps were executed, and none of them has to hand anything to the next one. Texts
are in no span.

The names are those of OpenTelemetry's semantic conventions for generative AI, as of version 1.44 (in development).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import urljoin

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

from bigbrain.identity import bare
from bigbrain.messages import JSON
from bigbrain.settings import Settings
from bigbrain.trace import TraceEvent

TIMEOUT = 3.0
"""Seconds that a collector may take, so that a process whose collector is away ends all the same."""

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Bounds of the durations of calls, as the conventions advise."""
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
"""Bounds of the tokens of calls, as the conventions advise."""

NAME, UNNAMED = "service.name", "unknown_service"
"""Where a resource has its name, and what it is called there when nobody has named it."""

Attributes = dict[str, AttributeValue]


def exported(settings: Settings, service: str) -> Spans:
    """Sends everything to where the settings say, from threads of its own; nobody is called before there is something."""
    if settings.telemetry == "stdout":
        spans: SpanProcessor = BatchSpanProcessor(ConsoleSpanExporter(formatter=lambda span: f"{span.to_json(None)}\n"))
        numbers: MetricReader = PeriodicExportingMetricReader(
            ConsoleMetricExporter(formatter=lambda data: f"{data.to_json(None)}\n")
        )
    else:
        # relative to it, so that an address with a path keeps that
        base = settings.otlp_endpoint.rstrip("/") + "/"
        spans = BatchSpanProcessor(OTLPSpanExporter(urljoin(base, "v1/traces"), timeout=TIMEOUT))
        exporter = OTLPMetricExporter(urljoin(base, "v1/metrics"), timeout=TIMEOUT)
        numbers = PeriodicExportingMetricReader(exporter)
    one = Spans(spans, numbers, service)
    one.install()
    return one


class Spans:
    """A tracer that makes spans of what it hears of, and counts tokens and seconds of the calls of models."""

    def __init__(self, spans: SpanProcessor, numbers: MetricReader, service: str) -> None:
        # what the environment says of the resource and of sampling counts, as OpenTelemetry promises
        resource = Resource.create()
        if str(resource.attributes.get(NAME, UNNAMED)).startswith(UNNAMED):
            resource = resource.merge(Resource({NAME: service}))
        self._ids = _Ids()
        self._provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        self._provider.add_span_processor(spans)
        self._meters = MeterProvider([numbers], resource=resource, shutdown_on_exit=False)
        self._tracer = self._provider.get_tracer("bigbrain")
        meter = self._meters.get_meter("bigbrain")
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "How long a model took to answer.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens of one call of a model.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
        self._steps: dict[str, _Step] = {}

    def install(self) -> None:
        """Makes these the process's own, for whoever uses OpenTelemetry's API in it."""
        trace.set_tracer_provider(self._provider)
        metrics.set_meter_provider(self._meters)

    def close(self) -> None:
        """Sends what is left."""
        self._provider.shutdown()
        self._meters.shutdown(TIMEOUT * 1000)

    def trace(self, event: TraceEvent) -> None:
        """Hears of an event."""
        match event.kind:
            case "step.start":
                self._steps[event.run] = _Step(event.path)
            case "flow.start":
                self._steps.setdefault(event.run, _Step(event.path)).flows.add(event.path)
            case "flow.end":
                self._flow(event)
            case "step.end":
                self._steps.pop(event.run, None)
                self._step(event)
            case "run.end":
                self._run(event)
            case "model.call":
                self._call(event)
            case "tool.call":
                tool = event.detail["tool"]
                self._end(
                    event,
                    f"execute_tool {tool}",
                    {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool},
                    around=_place(event),
                )

    def _run(self, event: TraceEvent) -> None:
        self._end(
            event,
            f"invoke_workflow {event.flow}",
            {
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.workflow.name": event.flow,
                "bigbrain.run.status": event.detail["status"],
            },
            error=event.detail["code"],
        )

    def _step(self, event: TraceEvent) -> None:
        result = event.detail["result"]
        attributes: Attributes = {"bigbrain.step.result": result, **_usage(event.detail)}
        self._end(
            event,
            f"step {event.path}",
            attributes,
            span=("step", event.path, event.attempt),
            around=(),
            kind=SpanKind.CONSUMER,
            error="" if result == "done" else result,
        )

    def _flow(self, event: TraceEvent) -> None:
        step = self._steps.get(event.run, _Step(event.path))
        # those around it are still open
        around = max((path for path in tuple(step.flows) if event.path.startswith(f"{path}/")), key=len, default=None)
        self._end(
            event,
            f"invoke_agent {event.flow}",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": event.flow, **_usage(event.detail)},
            span=_place(event),
            around=("step", step.path, event.attempt) if around is None else ("flow", around, event.attempt),
        )

    def _call(self, event: TraceEvent) -> None:
        detail = event.detail
        about: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": detail["model"]}
        first: Attributes = {"gen_ai.response.time_to_first_chunk": detail["first"]} if "first" in detail else {}
        stop: Attributes = {"gen_ai.response.finish_reasons": (detail["stop"],)} if detail.get("stop") else {}
        self._end(
            event,
            f"chat {detail['model']}",
            {**about, **first, **stop, **_usage(detail)},
            around=_place(event),
            kind=SpanKind.CLIENT,
        )
        error: Attributes = {"error.type": detail["error"]} if detail.get("error") else {}
        self._seconds.record(detail["seconds"], {**about, **error})
        usage = _usage(detail)
        for kind in ("input", "output"):
            if count := usage.get(f"gen_ai.usage.{kind}_tokens"):
                self._tokens.record(int(str(count)), {**about, "gen_ai.token.type": kind})

    def _end(
        self,
        event: TraceEvent,
        name: str,
        attributes: Attributes,
        *,
        span: tuple[JSON, ...] | None = None,
        around: tuple[JSON, ...] | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        error: str = "",
    ) -> None:
        """Makes the span of what ends with an event and took its `seconds`.

        span: what it is called by those inside it; the run itself when nothing stands around it, and nothing, if nobody can
        be inside. around: what it is inside of; () for the run.
        """
        error = error or event.detail.get("error", "")
        whole = _number(16, event.run)
        parent = None if around is None else _number(8, event.run, *around)
        own = _number(8, event.run, *(span or ())) if span or parent is None else None
        ended = round(event.at * 1e9)
        with self._ids.given(whole, own):
            made = self._tracer.start_span(
                name,
                self._inside(whole, parent),
                kind,
                {
                    **attributes,
                    **({"error.type": error} if error else {}),
                    # without the scope of its key, if it has one
                    "bigbrain.run.id": bare(event.run) or event.run,
                    "bigbrain.path": event.path,
                    "bigbrain.attempt": event.attempt,
                },
                start_time=ended - round(event.detail["seconds"] * 1e9),
            )
        if error:
            made.set_status(Status(StatusCode.ERROR, error))
        made.end(ended)

    def _inside(self, whole: int, parent: int | None) -> Context:
        """The context of a span inside another one of the same trace, all of which are sampled or none."""
        if parent is None:
            return Context()
        decision = self._provider.sampler.should_sample(None, whole, "").decision
        flags = TraceFlags(TraceFlags.SAMPLED if decision is Decision.RECORD_AND_SAMPLE else TraceFlags.DEFAULT)
        around = SpanContext(whole, parent, is_remote=True, trace_flags=flags)
        return trace.set_span_in_context(NonRecordingSpan(around), Context())


@dataclass
class _Step:
    """A step under way: its path, and those of the flows that were begun in it."""

    path: str
    flows: set[str] = field(default_factory=set)


class _Ids(RandomIdGenerator):
    """Ids by chance, but for spans whose ids are known beforehand."""

    def __init__(self) -> None:
        self._given = threading.local()

    @contextmanager
    def given(self, whole: int, span: int | None) -> Iterator[None]:
        """The ids of the trace and, unless it is None, of the span that begin in this block."""
        self._given.ids = (whole, span)
        try:
            yield
        finally:
            self._given.ids = None

    def generate_trace_id(self) -> int:
        """See `IdGenerator`."""
        given = getattr(self._given, "ids", None)
        return given[0] if given else super().generate_trace_id()

    def generate_span_id(self) -> int:
        """See `IdGenerator`."""
        given = getattr(self._given, "ids", None)
        return given[1] if given and given[1] else super().generate_span_id()


def _place(event: TraceEvent) -> tuple[JSON, ...]:
    return ("flow", event.path, event.attempt)


def _number(size: int, *values: JSON) -> int:
    """A number of so many bytes, the same for the same values everywhere, and hardly ever for others; never 0."""
    return int.from_bytes(sha256(repr(values).encode()).digest()[:size]) or 1


def _usage(detail: Mapping[str, JSON]) -> Attributes:
    """Tokens under the names of the conventions, by which the input includes what came from a cache or went to it."""
    usage: Mapping[str, int] = detail.get("usage") or {}
    read, write = usage.get("cache_read", 0), usage.get("cache_write", 0)
    counts = {
        "input_tokens": usage.get("input", 0) + read + write,
        "output_tokens": usage.get("output", 0),
        "cache_read.input_tokens": read,
        "cache_creation.input_tokens": write,
        "reasoning.output_tokens": usage.get("reasoning", 0),
    }
    return {f"gen_ai.usage.{name}": count for name, count in counts.items() if count}
