"""A brain behind its web tier inside one test, and a loopback server for clients that need sockets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import fakeredis
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import make_server

from bigbrain.brain import Brain
from bigbrain.engine.records import RunRecord
from bigbrain.errors import BrainError
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started
from bigbrain.flows import Flow
from bigbrain.identity import OPEN, Identity
from bigbrain.messages import JSON, Request, Text
from bigbrain.models import FixedModel
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.wire import Dialect, anthropic, openai_chat, openai_responses
from tests.house import House
from web import create_app
from web.serving import Handler

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
BOTH = (CHAT, MESSAGES)
ALL = (*BOTH, RESPONSES)
DIALECTS: dict[str, Dialect] = {CHAT: openai_chat, MESSAGES: anthropic, RESPONSES: openai_responses}


@dataclass(frozen=True)
class Site:
    """One brain, its web tier and the Redis behind both."""

    house: House
    app: Flask
    server: fakeredis.FakeServer

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    def record(self, run_id: str, scope: str = OPEN) -> RunRecord:
        """The record of a run once it is over; run_id: as its client knows it."""
        return self.house.record(Identity(run_id, scope).key)


@contextmanager
def serving(
    brain: Brain,
    settings: Settings | None = None,
    *,
    heartbeat: float = 10.0,
    patience: float = 20.0,
    now: Callable[[], float] = time.time,
) -> Iterator[Site]:
    """A site for a brain, closed at the end; now: the clock that its answers are dated with."""
    server = fakeredis.FakeServer()
    house = House(brain, fakeredis.FakeRedis(server=server))
    limits = settings or Settings()
    app = create_app(house.reception, settings=limits, heartbeat=heartbeat, patience=patience, now=now)
    try:
        yield Site(house, app, server)
    finally:
        house.close()


@contextmanager
def listening(app: Flask) -> Iterator[str]:
    """The base URL of a threaded server for the application."""
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asking(text: str = "hi", **fields: JSON) -> dict[str, JSON]:
    """A body that both protocols understand."""
    return {"model": "b", "max_tokens": 99, "messages": [{"role": "user", "content": text}], **fields}


def asking_by(path: str, text: str = "hi", *, stream: bool = False) -> dict[str, JSON]:
    """A body of the protocol of a path; a stream tells its usage."""
    if path == RESPONSES:
        return {"model": "b", "input": text, "stream": stream}
    return asking(
        text, stream=stream, **({"stream_options": {"include_usage": True}} if stream and path == CHAT else {})
    )


def saying(text: str) -> Brain:
    """A brain that answers with a text."""
    return Brain("b", Flow(model=FixedModel(text)))


class Pausing:
    """A model that says `begun`, then waits until it may go on or is stopped; `reached` tells that it waits."""

    def __init__(self, first: str = "begun", error: BrainError | None = None) -> None:
        self.reached = threading.Event()
        self.may_go_on = threading.Event()
        self.asked = 0
        self._first = first
        self._error = error

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        self.asked += 1
        yield Started("up", "up")
        if self._first:
            yield Opened(0, Text())
            yield Delta(0, self._first)
        self.reached.set()
        for _ in range(1000):
            if self.may_go_on.is_set():
                break
            scope.wait(0.01)
        if self._error:
            raise self._error
        if self._first:
            yield Closed(0)
        yield Finished("end")
