"""Transparent brains for the clients of other people: one before each protocol of a model's server at `UPSTREAM`."""

from __future__ import annotations

import os

from bigbrain import Brain, Flow, Model

UPSTREAM = os.environ.get("UPSTREAM", "http://127.0.0.1:28700")
MODEL = os.environ.get("UPSTREAM_MODEL", "obey")

brain = Brain("stub-model", Flow(model=Model(MODEL, base_url=f"{UPSTREAM}/v1")))
brain.add_flow(Flow(model=Model(MODEL, provider="anthropic", base_url=UPSTREAM)), name="stub-claude")
