"""A transparent brain that is silent for `SILENCE` seconds before it asks the model's server at `UPSTREAM`."""

from __future__ import annotations

import os
import time
from collections.abc import Generator

from bigbrain import Brain, Flow, Model
from bigbrain.events import Event
from bigbrain.messages import Request
from bigbrain.models import Asks, connect
from bigbrain.scope import Scope
from bigbrain.settings import Settings

SECONDS = float(os.environ.get("SILENCE", "615"))
UPSTREAM = os.environ.get("UPSTREAM", "http://127.0.0.1:28700")
NAMES = ("stub-model", "claude-sonnet-4-5", "claude-opus-4-8")
"""Some clients ask for models that they know, and no other."""


class Silent:
    """A model that thinks long before it says anything."""

    def __init__(self, model: Asks) -> None:
        self._model = model

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            scope.check()
            time.sleep(0.2)
        yield from self._model.ask(request, scope)


def flow() -> Flow:
    return Flow(model=Silent(connect(Model("obey", base_url=f"{UPSTREAM}/v1"), Settings.read())))


brain = Brain(NAMES[0], flow())
for name in NAMES[1:]:
    brain.add_flow(flow(), name=name)
