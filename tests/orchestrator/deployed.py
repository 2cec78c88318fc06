"""A brain of one durable orchestrator, for a deployment: its model is at `UPSTREAM`, its tools write to `DESK_LOG`."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bigbrain import Brain, Flow, Model
from bigbrain.orchestrator import Agent, Field, Orchestrator, Tool

LOG = Path(os.environ.get("DESK_LOG", "/nowhere"))


def note(text: str) -> str:
    """Writes a line: the proof that the tool was called."""
    with LOG.open("a") as log:
        log.write(f"{text} {os.getpid()}\n")
    return f"noted {text}"


def hold(text: str) -> str:
    """Writes a line, then waits until there is a file that lets it go on."""
    note(text)
    end = time.monotonic() + 60
    while not LOG.with_name("go").exists() and time.monotonic() < end:
        time.sleep(0.02)
    return f"held {text}"


def add(given: dict[str, float]) -> str:
    return str(given["a"] + given["b"])


agents = [
    Agent(
        "notes",
        "Keeps notes.",
        [Tool("note", "Note it.", "A text", "OK", note), Tool("hold", "Wait.", "A", "OK", hold)],
    ),
    Agent(
        "math",
        "Routes sums.",
        [],
        [Agent("basic", "Adds.", [Tool("add", "Add.", [Field("a", "one"), Field("b", "other")], "Sum", add)])],
    ),
]
model = Model("desk", base_url=os.environ.get("UPSTREAM", "http://127.0.0.1:1") + "/v1", api_key="k")
brain = Brain("desk", Flow(Orchestrator(agents, model=model)).named("desk").durable())
