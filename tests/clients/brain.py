"""Transparent brains for the clients of other people, before each protocol of a model's server at `UPSTREAM`.

stub-model, stub-claude,
stub-responses              a model that does what a request asks of its answer
thinker, thinker-claude     a model that thinks aloud
calls                       a model that calls the first two tools it is offered
busy                        a model that is over its limits once, then answers
"""

from __future__ import annotations

import os

from bigbrain import Brain, Flow, Model

UPSTREAM = os.environ.get("UPSTREAM", "http://127.0.0.1:28700")


def before(name: str, *, claude: bool = False, retries: int = 2) -> Flow:
    """A transparent flow before one model of the server."""
    if claude:
        return Flow(model=Model(name, provider="anthropic", base_url=UPSTREAM, retries=retries))
    return Flow(model=Model(name, base_url=f"{UPSTREAM}/v1", retries=retries))


brain = Brain("stub-model", before("obey"))
brain.add_flow(before("obey", claude=True), name="stub-claude")
brain.add_flow(Flow(model=Model("obey", api="responses", base_url=f"{UPSTREAM}/v1")), name="stub-responses")
brain.add_flow(before("reasoning"), name="thinker")
brain.add_flow(before("reasoning", claude=True), name="thinker-claude")
brain.add_flow(before("tools:2"), name="calls")
brain.add_flow(before("fail:1:status:429", retries=0), name="busy")
