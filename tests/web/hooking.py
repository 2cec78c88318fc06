"""A brain with a webhook, and genuine calls of it."""

from __future__ import annotations

import threading
import time

from werkzeug.test import TestResponse

from bigbrain import Brain, Chat, FixedModel, Flow, Turn, Webhook, agent
from bigbrain.engine.records import RunRecord
from tests.web.site import Site
from tests.webhooks.senders import PLAIN, Sender


class Heard:
    """A handler that keeps what it was called with."""

    def __init__(self, answer: str = "", failures: int = 0) -> None:
        self.bodies: list[bytes | None] = []
        self.values: list[object] = []
        self.headers: list[dict[str, str]] = []
        self.answer = answer
        self.failures = failures
        self.may_end = threading.Event()
        self.may_end.set()
        self.began = threading.Event()

    @property
    def flow(self) -> Flow:
        @agent
        def hears(turn: Turn, chat: Chat) -> None:
            self.bodies.append(turn.payload(bytes))
            self.headers.append(turn.metadata(dict[str, str]) or {})
            self.began.set()
            assert self.may_end.wait(10)
            if len(self.bodies) <= self.failures:
                raise RuntimeError("not yet")
            if self.answer:
                turn.reply(self.answer)

        return Flow(hears)


def hooked(flow: Flow, sender: Sender = PLAIN, **fields: object) -> Brain:
    """A brain with one webhook, `hook`, that a sender may call."""
    brain = Brain("b", Flow(model=FixedModel("chatting")))
    brain.add_trigger(Webhook("hook", verify=sender.verifier(sender.secret), **fields) >> flow)
    return brain


def post(
    site: Site, sender: Sender = PLAIN, body: bytes | None = None, *, path: str = "/v1/hooks/hook", **more: str
) -> TestResponse:
    """A genuine delivery; `more`: headers of its own, underscores for hyphens."""
    raw = sender.body if body is None else body
    headers = {**sender.headers(int(time.time()), body=raw, id=more.pop("id", "d-1")), **_headers(more)}
    return site.client.post(path, data=raw, headers=headers)


def _headers(more: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in more.items()}


def ended(site: Site, response: TestResponse) -> RunRecord:
    """The record of the run that an answer names, once it is over."""
    return site.record(response.headers["X-Run-Id"])
