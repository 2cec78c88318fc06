"""The spans of runs whose steps several processes do, as a collector gets them over OTLP."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.stack.deployment import Deployment, deployed, until
from tests.upstream import Upstream

pytestmark = pytest.mark.slow


class Collector:
    """What a collector was sent: the spans of each trace, and the paths that were asked for."""

    def __init__(self) -> None:
        self.traces: dict[bytes, list[Span]] = defaultdict(list)
        self.paths: set[str] = set()
        self.url = ""

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Its address while the block runs."""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.paths.add(self.path)
                if self.path.endswith("/v1/traces"):
                    sent = ExportTraceServiceRequest.FromString(body)
                    for span in (
                        span for one in sent.resource_spans for scope in one.scope_spans for span in scope.spans
                    ):
                        collector.traces[span.trace_id].append(span)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}/otel"
            server.shutdown()
            thread.join()

    def whole(self) -> list[list[Span]]:
        """The traces whose run is over."""
        return [spans for spans in list(self.traces.values()) if any(not span.parent_span_id for span in spans)]


def ask(stack: Deployment, model: str) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    assert httpx2.post(f"{stack.openai}/chat/completions", json=body, timeout=30).status_code == 200


def test_a_run_is_one_trace_though_several_processes_do_its_steps(tmp_path: Path) -> None:
    collector = Collector()
    with collector.listening() as url, Upstream() as upstream:
        env = {"BIG_BRAIN_TELEMETRY": "otlp", "BIG_BRAIN_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
        arguments = ("up", "tests.brains", "--port", "0", "--workers", "2")
        with deployed(*arguments, data=tmp_path, UPSTREAM=upstream.url, **env) as stack:
            for _ in range(8):
                ask(stack, "cpu")
                ask(stack, "stages")
            assert until(lambda: len(collector.whole()) == 16, 20)

    assert len(collector.traces) == 16
    steps = {"cpu": 1, "stages": 4}
    for spans in collector.traces.values():
        names = {span.span_id: span.name for span in spans}
        [run] = [span for span in spans if not span.parent_span_id]
        assert len(names) == len(spans)
        assert {span.parent_span_id for span in spans} - {b""} <= set(names)
        assert sum(span.name.startswith("step ") for span in spans) == steps[run.name.removeprefix("invoke_workflow ")]
    # what is left is sent at the end
    assert collector.paths == {"/otel/v1/traces", "/otel/v1/metrics"}


def test_a_collector_that_is_away_holds_nobody_up(tmp_path: Path) -> None:
    env = {"BIG_BRAIN_TELEMETRY": "otlp", "BIG_BRAIN_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with deployed("up", "--port", "0", data=tmp_path, **env) as stack:
        ask(stack, "demo")
        assert stack.stop() == 0
    assert not stack.find("is killed")
