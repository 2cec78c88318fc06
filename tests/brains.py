"""Brains for the tests and benchmarks that run in processes of their own: `relay` for the latter, `brain` with all flows.

relay       a transparent brain: the client's model name is what the server at
            `UPSTREAM` (a root URL) is asked for, so that a client chooses what comes
relay for   a name that begins with `anthropic:` is asked for in Anthropic's protocol, one with `responses:` in OpenAI's other one
stages      three flows in two stages, then one in the background
lasting     a durable flow: a first stage, then 80 words of the server's at 20 a second
counting    a durable flow of the pool of processes: 40 words at 20 a second
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator

from bigbrain import All, Brain, Chat, FixedModel, Flow, Model, Select, Turn, agent, respond
from bigbrain.events import Event
from bigbrain.messages import Request
from bigbrain.models import connect
from bigbrain.scope import Scope
from bigbrain.settings import Settings

UPSTREAM = os.environ.get("UPSTREAM", "http://127.0.0.1:28700")
SETTINGS = Settings()


class Relay:
    """Asks for whatever model the client named."""

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        name = request.model.removeprefix("relay/")
        timeout = float(os.environ.get("UPSTREAM_TIMEOUT", "60"))
        if name.startswith("anthropic:"):
            model = Model(
                name.removeprefix("anthropic:"), provider="anthropic", base_url=UPSTREAM, retries=0, timeout=timeout
            )
        elif name.startswith("responses:"):
            named = name.removeprefix("responses:")
            model = Model(named, api="responses", base_url=f"{UPSTREAM}/v1", retries=0, timeout=timeout)
        else:
            model = Model(name, base_url=f"{UPSTREAM}/v1", retries=0, timeout=timeout)
        return connect(model, SETTINGS).ask(request, scope)


@agent
def nothing(turn: Turn, chat: Chat) -> None:
    """Does nothing."""


@agent(selects=("left", "right"))
def choose(turn: Turn, chat: Chat) -> None:
    """Goes where the client says."""
    turn.select(turn.last.text)


@agent
def where(turn: Turn, chat: Chat) -> None:
    """Says which process it runs in, once there is another one that could."""
    time.sleep(0.2)
    turn.reply(str(os.getpid()))


@agent(cpu=True)
def think(turn: Turn, chat: Chat) -> None:
    """Keeps a processor busy for a moment."""
    turn.reply(str(sum(range(1000))))


@agent(cpu=True)
def count(turn: Turn, chat: Chat) -> None:
    """Counts, and computes a little for each number."""

    def counted() -> Iterator[str]:
        for number in range(40):
            time.sleep(0.05)
            yield f"{' ' * (number > 0)}c{number + 0 * sum(range(1000))}"

    turn.reply(counted())


def hops(count: int) -> Flow:
    """A chain of `count` flows, all but the last doing nothing."""
    flow = Flow(nothing)
    for _ in range(count - 2):
        flow = flow >> Flow(nothing)
    return flow >> Flow(model=FixedModel("there"))


relay = Brain("relay", Flow(model=Relay()))
relay.add_flow(hops(20), name="hops")

brain = Brain("relay", Flow(model=Relay()))
brain.add_flow(
    Flow(model=FixedModel("first"))
    >> respond
    >> Flow(nothing).named("idle")
    >> Flow(model=FixedModel("second"))
    >> respond
    >> Flow(nothing),
    name="stages",
)
brain.add_flow(
    (
        Flow(model=FixedModel("first"))
        >> respond
        >> Flow(model=Model("tokens:80@20", base_url=f"{UPSTREAM}/v1"))
        >> respond
    )
    .named("lasting")
    .durable(),
    name="lasting",
)
brain.add_flow(hops(20), name="hops")
brain.add_flow(Flow(think).named("think"), name="cpu")
brain.add_flow(Flow(count).named("counting").durable() >> respond, name="counting")
brain.add_flow(
    Flow(choose)
    >> Select(
        Flow(model=FixedModel("left")).named("left"), (Flow(nothing) >> Flow(model=FixedModel("right"))).named("right")
    )
    >> respond,
    name="choice",
)
brain.add_flow(
    All(Flow(where), Flow(where), Flow(where), spread=True) >> respond,
    name="spread",
)
