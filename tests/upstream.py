"""A model server to test against: both providers' wire formats, every fault at will.

    with Upstream() as up:          # in a test
        Model("text:hello", base_url=up.openai, api_key="k")

    python -m tests.upstream --port 28700     # as a process of its own

It answers POST /v1/chat/completions, POST /v1/responses and POST /v1/messages, streamed
or not, POST /v1/messages/count_tokens, GET /v1/models and GET /stats. What it answers is set by the request's model name,
so that a process far away needs no other channel, or by `up.script(...)`, whose
answers are used first, one each.

    model name                what comes
    ------------------------  ---------------------------------------------------------
    text:WORDS                WORDS, a token per word
    echo                      the last user text, a token per word
    tokens:N[@RATE]           `w0 w1 w2 …`, N tokens, RATE per second (all at once without)
    tools[:N]                 calls of the first N (1) offered tools; after results, a text
    count:N                   N tokens, to whoever asks for a count only
    obey                      what the request asks for: the forced call, JSON of the schema, else a greeting
    reasoning                 thinking `let me see`, then `done`
    length                    `half`, cut by the token limit
    bytes                     `fox 🦊 北` in raw UTF-8, every byte a chunk of its own
    empty-choices             Azure's empty `choices` first, usage in the last (chat only)
    no-usage                  `ok` without any token counts
    parallel-index0           two whole calls, both with `index` 0 (chat only)
    json                      a JSON document even when a stream was asked for
    html                      status 200 and a web page
    error-document            status 200 and a JSON error
    garbage                   a stream whose second frame is not JSON
    slow:S                    the answer's head S seconds late
    hang                      never an answer
    hang:after:N              N tokens, then silence
    reset:before              the connection is reset instead of an answer
    reset:after:N             … after N tokens
    cut:N                     the connection ends after N tokens, inside the chunked body
    truncate:N                the body ends cleanly after N tokens, without a last event
    error-in-stream:TYPE[:N]  an error event of TYPE after N (0) tokens
    status:CODE[:H=V]…        a refusal with headers, as in `status:429:retry-after=2`
    too-long                  the refusal of a conversation that is too long
    fail:N:NAME               NAME's answer for the first N requests, then `recovered`

Text after `#` in a name is ignored: it keeps the counters of `fail` apart. Any
other name is answered with `hello from NAME`. A 401 repeats the key it was sent,
as some servers do.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import select
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.upstream_answers import Answer, answer_for
from tests.upstream_obedience import obeying
from tests.upstream_wires import WIRES, Wire

HOST = "127.0.0.1"
COUNT = "/v1/messages/count_tokens"


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A request as it came; header names in lower case, the body decoded."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def key(self) -> str:
        """The API key, whichever header carried it."""
        return self.headers.get("authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key", "")


@dataclasses.dataclass
class Stats:
    """What happened so far: `open` answers are being given now, `cancelled` ones lost their client before the end."""

    requests: int = 0
    connections: int = 0
    open: int = 0
    finished: int = 0
    cancelled: int = 0
    broken: int = 0
    refused: int = 0
    tokens: int = 0


class Gone(Exception):
    """Raised when the client went away before the end."""


class Broken(Exception):
    """Raised when the script says that the connection ends here."""


class Handler(BaseHTTPRequestHandler):
    """One connection; `answer` plays one scripted answer on it."""

    protocol_version = "HTTP/1.1"
    # Else a small frame waits for the acknowledgement of the one before, which a client delays by 40 ms.
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle(self) -> None:
        self.server.up.connected(self.connection)
        with contextlib.suppress(ConnectionError, ValueError):
            super().handle()
        self.server.up.disconnected(self.connection)

    def do_GET(self) -> None:
        if self.path == "/stats":
            self.document(200, dataclasses.asdict(self.server.up.stats))
        elif self.path.startswith("/v1/models"):
            model = {"id": "echo", "object": "model", "created": 0, "owned_by": "upstream"}
            self.document(200, {"object": "list", "data": [model]})
        else:
            self.document(404, {"error": {"message": "not found", "type": "invalid_request_error"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if path == COUNT:
            self.count(raw)
            return
        if path not in WIRES:
            self.document(404, {"error": {"message": "not found", "type": "invalid_request_error"}})
            return
        try:
            body = json.loads(raw)
            model = str(body["model"])
        except (ValueError, KeyError, TypeError):
            self.document(400, WIRES[path](model="", number=0, body={}).refusal(400, "the body is not a request"))
            return
        request = Recorded(path, {name.lower(): value for name, value in self.headers.items()}, body)
        number, answer = self.server.up.next_answer(request, model)
        self.answer(answer, WIRES[path](model=model, number=number, body=body), request)

    def count(self, raw: bytes) -> None:
        """Anthropic's count of a prompt: the number in the model's name `count:N`, else a refusal as `status:CODE` says."""
        body = json.loads(raw)
        request = Recorded(COUNT, {name.lower(): value for name, value in self.headers.items()}, body)
        self.server.up.requests.append(request)
        kind, _, number = str(body["model"]).partition(":")
        if kind == "count":
            self.document(200, {"input_tokens": int(number)})
        else:
            status = int(number) if kind == "status" else 404
            self.document(status, {"type": "error", "error": {"type": "not_found_error", "message": request.key}})

    def answer(self, answer: Answer, wire: Wire, request: Recorded) -> None:
        up = self.server.up
        up.count(open=1)
        try:
            self.wait(answer.wait)
            outcome = self.play(answer, wire, request)
        except (Gone, ConnectionError, TimeoutError):
            outcome = "cancelled"
            self.close_connection = True
        except Broken:
            outcome = "broken"
            self.close_connection = True
        up.count(open=-1, **{outcome: 1})

    def play(self, answer: Answer, wire: Wire, request: Recorded) -> str:
        """Gives the answer; what became of it."""
        if answer.reset_after == -1:
            self.reset()
        if answer.status != 200:
            message = answer.message or f"refused with {answer.status}"
            if answer.status == 401:
                message = f"Incorrect API key provided: {request.key}"
            self.document(answer.status, wire.refusal(answer.status, message, answer.code), answer.headers)
            return "refused"
        if answer.refusal_as_200:
            self.document(200, wire.refusal(500, answer.message))
            return "refused"
        if answer.page:
            self.send(200, answer.page.encode(), {"content-type": "text/html"})
            return "finished"
        if answer.as_document or not request.body.get("stream"):
            self.wait(len(answer.tokens) / answer.rate if answer.rate else 0)
            self.document(200, wire.document(answer))
            return "finished"
        self.stream(answer, wire)
        return "finished"

    def stream(self, answer: Answer, wire: Wire) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        started, tokens = time.monotonic(), 0
        for frame, is_token in wire.frames(answer):
            if is_token:
                self.fault(answer, wire, tokens)
                if answer.rate:
                    self.wait(started + tokens / answer.rate - time.monotonic())
                tokens += 1
                self.server.up.count(tokens=1)
            self.chunk(frame, bytewise=answer.bytewise)
        self.fault(answer, wire, tokens)
        self.chunk(wire.end(answer), bytewise=answer.bytewise)
        self.wfile.write(b"0\r\n\r\n")

    def fault(self, answer: Answer, wire: Wire, tokens: int) -> None:
        """Lets the scripted fault happen if it is due after so many tokens."""
        if tokens == answer.reset_after:
            self.wait(0.05)  # a reset overtakes what the client has not read yet
            self.reset()
        if tokens == answer.hang_after:
            self.wait(float("inf"))
        if tokens == answer.cut_after:
            raise Broken
        if tokens == answer.truncate_after:
            self.wfile.write(b"0\r\n\r\n")
            raise Broken
        if tokens == answer.error_after:
            self.chunk(wire.error(answer.error))
            self.wfile.write(b"0\r\n\r\n")
            raise Broken

    def chunk(self, data: bytes, *, bytewise: bool = False) -> None:
        pieces = [data[i : i + 1] for i in range(len(data))] if bytewise else [data]
        for piece in pieces:
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def wait(self, seconds: float) -> None:
        """Waits, but raises `Gone` as soon as the client closes its end."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self.connection], [], [], None if left == float("inf") else left)
            if ready:
                raise Gone  # a waiting client says nothing more, so only its leaving makes the socket readable

    def reset(self) -> None:
        """Closes the connection with RST: lingering zero seconds discards it."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.wfile.close()
        self.connection.close()
        raise Broken

    def document(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(body, ensure_ascii=False).encode()
        self.send(status, raw, {"content-type": "application/json", **(headers or {})})

    def send(self, status: int, raw: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024
    up: Upstream

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class Upstream:
    """A running server on loopback: `openai` and `anthropic` are the base URLs for the two SDKs."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[Recorded] = []
        self.stats = Stats()
        self._changed = threading.Condition()
        self._scripted: deque[Answer] = deque()
        self._seen: Counter[str] = Counter()
        self._sockets: set[socket.socket] = set()
        self._server = Server((HOST, port), Handler)
        self._server.up = self
        self.url = f"http://{HOST}:{self._server.server_port}"
        self.openai = self.url + "/v1"
        self.anthropic = self.url

    def __enter__(self) -> Upstream:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        with self._changed:
            for connection in self._sockets:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def serve_forever(self) -> None:
        self._server.serve_forever()

    def script(self, *answers: Answer) -> None:
        """The next requests get these answers, one each, whatever model they name."""
        self._scripted.extend(answers)

    def until(self, true: Callable[[Stats], bool], within: float = 2.0) -> bool:
        """Waits until the counters satisfy `true`; False when they do not within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: true(self.stats), within)

    def next_answer(self, request: Recorded, model: str) -> tuple[int, Answer]:
        with self._changed:
            self.requests.append(request)
            self.stats.requests += 1
            self._seen[model] += 1
            self._changed.notify_all()
            if self._scripted:
                answer = self._scripted.popleft()
            elif model.partition("#")[0] == "obey":
                answer = obeying(request.body)
            else:
                answer = answer_for(model, request.body, self._seen[model])
            return self.stats.requests, answer

    def count(self, **by: int) -> None:
        with self._changed:
            for name, number in by.items():
                setattr(self.stats, name, getattr(self.stats, name) + number)
            self._changed.notify_all()

    def connected(self, connection: socket.socket) -> None:
        self.count(connections=1)
        with self._changed:
            self._sockets.add(connection)

    def disconnected(self, connection: socket.socket) -> None:
        with self._changed:
            self._sockets.discard(connection)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=28700)
    up = Upstream(parser.parse_args().port)
    print(f"upstream: {up.url}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        up.serve_forever()


if __name__ == "__main__":
    main()
