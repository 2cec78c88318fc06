"""What is counted, for Prometheus: the metrics, how trace events become numbers, how they are shown.

The processes of one machine share a folder (`PROMETHEUS_MULTIPROC_DIR`), so that any of them
shows all; without one, a process shows its own. Which of the two prometheus-client decides when
it is imported, so the variable has to be set before that. One `Meters` for each process: a
second one in the same folder would overwrite the first one's numbers.

No label has a value that a client can choose. What an author chooses (models, error codes)
is bounded: beyond `NAMES` different ones the rest counts as `other`. Tools have no name here,
because a client may bring its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from bigbrain.messages import JSON
from bigbrain.trace import TraceEvent

NAMES = 100
"""Different values of one label."""

LONG = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)
"""Buckets in seconds for what ends with a model's answer: from a cached answer to a long chain of thought."""
FIRST = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 30)
"""Buckets in seconds for the way to a first token; each is twice the one before, as people feel delays."""
SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Buckets in seconds for tools and queues: from a function call to a worker that was lost."""


class Meters:
    """The metrics of one process, and the tracer that keeps them; a registry of their own, not the global one."""

    def __init__(self, folder: Path | None = None) -> None:
        """folder: where the processes of this machine share their numbers, as `PROMETHEUS_MULTIPROC_DIR` says."""
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self.registry = CollectorRegistry()
        self._names: dict[str, set[str]] = {}
        self._make_web()
        self._make_runs()
        self._make_models()
        self._hear: dict[str, Callable[[Mapping[str, JSON]], None]] = {
            "run.end": self._end,
            "step.start": lambda detail: self.queue_wait.observe(detail["waited"]),
            "step.end": self._step,
            "model.call": self._call,
            "tool.call": self._tool,
            "notify": lambda detail: self.notices.labels("ok" if detail["ok"] else "error").inc(),
            "retry": lambda _: self.retries.inc(),
            "recovered": lambda _: self.recoveries.inc(),
        }

    def trace(self, event: TraceEvent) -> None:
        """Counts an event; one that has nothing to be counted is nothing."""
        hear = self._hear.get(event.kind)
        if hear is not None:
            hear(event.detail)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"bigbrain_{name}", about, labels, registry=self.registry)

    def _seconds(self, name: str, about: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"bigbrain_{name}_seconds", about, labels, registry=self.registry, buckets=buckets)

    def _make_web(self) -> None:
        asked = ("protocol", "stream")
        self.requests = self._counter(
            "requests",
            "Requests for answers, by the HTTP status that they ended with; 499: the client left, and a stream that broke has the status that its error would have had.",
            *asked,
            "status",
        )
        self.request_seconds = self._seconds("request", "From a request until its answer's end.", LONG, *asked)
        self.request_first = self._seconds(
            "request_first_token", "From a streamed request until its answer's first token.", FIRST, "protocol"
        )
        self.open = Gauge(
            "bigbrain_open_streams",
            "Requests whose answer is not complete, streamed or not.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        # a process that has the pid of one that was killed finds what that one left
        self.open.set(0)

    def _make_runs(self) -> None:
        self.runs = self._counter("runs", "Runs that ended in a step, by how.", "status")
        self.steps = self._counter("steps", "Steps of runs that were done, by their result.", "result")
        self.step_seconds = self._seconds("step", "How long a step took its worker.", LONG)
        self.queue_wait = self._seconds("queue_wait", "From when a step was due until a worker had it.", SHORT)
        self.retries = self._counter("retries", "Failed steps that were tried again.")
        self.recoveries = self._counter("recoveries", "Steps that were taken over from a lost worker.")
        self.errors = self._counter("run_errors", "Runs that failed in a step, by the code of the error.", "code")
        self.notices = self._counter("notices", "Notices to others, by outcome.", "outcome")

    def _make_models(self) -> None:
        self.calls = self._counter(
            "model_calls", "Questions to models, by outcome: `ok` or the error's code.", "model", "outcome"
        )
        self.call_seconds = self._seconds("model_call", "From a question to a model until its end.", LONG, "model")
        self.call_first = self._seconds(
            "model_first_token", "From a question to a model until its first token.", FIRST, "model"
        )
        self.tokens = self._counter(
            "tokens", "Tokens that models reported, by kind; the kinds add up to all tokens.", "model", "kind"
        )
        self.reasoning = self._counter(
            "reasoning_tokens", "Tokens of thinking, which are among the output tokens.", "model"
        )
        self.unreported = self._counter("model_usage_missing", "Answers whose model reported no tokens.", "model")
        self.tools = self._counter("tool_calls", "Calls of tools' handlers, by outcome.", "outcome")
        self.tool_seconds = self._seconds("tool_call", "How long a tool's handler took.", SHORT)

    def _end(self, detail: Mapping[str, JSON]) -> None:
        self.runs.labels(detail["status"]).inc()
        if detail["status"] == "failed":
            self.errors.labels(self._bounded("code", detail["code"])).inc()

    def _step(self, detail: Mapping[str, JSON]) -> None:
        self.steps.labels(self._bounded("result", detail["result"])).inc()
        self.step_seconds.observe(detail["seconds"])

    def _call(self, detail: Mapping[str, JSON]) -> None:
        model = self._bounded("model", detail["model"])
        error = detail.get("error")
        self.calls.labels(model, self._bounded("outcome", error) if error else "ok").inc()
        self.call_seconds.labels(model).observe(detail["seconds"])
        if "first" in detail:
            self.call_first.labels(model).observe(detail["first"])
        usage: Mapping[str, int] = detail.get("usage", {})
        for kind in ("input", "output", "cache_read", "cache_write"):
            if count := usage.get(kind, 0):
                self.tokens.labels(model, kind).inc(count)
        if count := usage.get("reasoning", 0):
            self.reasoning.labels(model).inc(count)
        if not usage and not error:
            self.unreported.labels(model).inc()

    def _tool(self, detail: Mapping[str, JSON]) -> None:
        self.tools.labels("error" if detail.get("error") else "ok").inc()
        self.tool_seconds.observe(detail["seconds"])

    def _bounded(self, label: str, name: str) -> str:
        names = self._names.setdefault(label, set())
        if name in names:
            return name
        if len(names) >= NAMES:
            return "other"
        names.add(name)
        return name


class Exposition(Collector):
    """What is shown: the numbers of this machine's processes, and what others add at the moment of looking."""

    def __init__(self, meters: Meters, *others: Collector) -> None:
        self._meters = meters
        self._others = others

    def collect(self) -> Iterable[Metric]:
        """All metrics, as they are now."""
        if self._meters.folder is None:
            yield from self._meters.registry.collect()
        else:
            sweep(self._meters.folder)
            yield from MultiProcessCollector(None, str(self._meters.folder)).collect()  # type: ignore[no-untyped-call]
        for other in self._others:
            yield from other.collect()

    def text(self) -> bytes:
        """The page that Prometheus reads."""
        return generate_latest(self)


def sweep(folder: Path) -> None:
    """Forgets the live gauges of processes that are gone, and the files that one of them had only just begun.

    What they counted stays: a counter must not fall. A process that was killed could not tidy up itself.
    """
    for file in folder.glob("*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not _lives(int(pid)):
            with suppress(OSError):
                if file.name.startswith("gauge_live") or file.stat().st_size == 0:
                    file.unlink()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
