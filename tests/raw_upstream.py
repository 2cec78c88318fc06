"""A model server that sends the very bytes that a test gives it, in the pieces in which they are given."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Raw(ThreadingHTTPServer):
    """Answers each POST with the next of `answers`, the last one for ever; `bodies` has what it was asked."""

    daemon_threads = True

    def __init__(self, *answers: Sequence[bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers
        self.bodies: list[dict[str, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Raw

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        pieces = self.server.answers[min(len(self.server.bodies), len(self.server.answers)) - 1]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


@contextmanager
def raw(*answers: Sequence[bytes]) -> Iterator[Raw]:
    """A server that gives these answers while the block runs."""
    server = Raw(*answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def chat_frames(*choices: dict[str, Any], last: bytes = b"data: [DONE]\n\n") -> list[bytes]:
    """Chunks of a chat completion; one that has no `choices` of its own is the delta of a choice."""
    told = [choice if "choices" in choice else {"choices": [{"index": 0, **choice}]} for choice in choices]
    return [*(b"data: %b\n\n" % json.dumps({"id": "c", **chunk}, ensure_ascii=False).encode() for chunk in told), last]


def message_frames(*events: dict[str, Any]) -> list[bytes]:
    """Events of a message, each under its own name."""
    return [b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode()) for event in events]
