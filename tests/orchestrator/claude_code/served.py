"""A brain of one durable orchestrator for a deployment, its replies written by the CLI at `FAKE_CLI`."""

from __future__ import annotations

import os

from bigbrain import Brain, Flow
from bigbrain.orchestrator import Agent, Orchestrator, Tool

AGENTS = [Agent("echo", "Says it again.", [Tool("say", "Say it.", "A text", "The text", str)])]
SESSION = "33333333-3333-4333-8333-333333333333"

desk = Orchestrator(
    AGENTS, backend="claude_code", session_id=SESSION, cli_path=os.environ.get("FAKE_CLI", "/not/there")
)
brain = Brain("desk", Flow(desk).named("desk").durable())
