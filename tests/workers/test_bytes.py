"""How much a long run writes: every byte that reaches Redis, with a real worker and a real Celery chain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from bigbrain.embedded import EmbeddedRedis
from tests.workers.processes import Worker
from tests.workers.test_tasks import Office

pytestmark = pytest.mark.slow

WORDS = "word " * 1_600
"""What each step says: 8,000 characters, some 2,000 tokens."""

LONG = f"""
from functools import reduce

from bigbrain import Brain, FixedModel, Flow

WORDS = {WORDS!r}


def chain(count):
    return reduce(lambda flow, step: flow >> step, [Flow(model=FixedModel(WORDS)) for _ in range(count)])


brain = Brain("long")
for count in (25, 50, 100):
    brain.add_flow(chain(count).named("kept").durable(), name=f"kept{{count}}")
    brain.add_flow(chain(count), name=f"plain{{count}}")
"""


class Cost(NamedTuple):
    """What one run of so many steps wrote, and how many bytes of text it made."""

    written: int
    text: int


def cost(office: Office, flow: str, steps: int) -> Cost:
    def written() -> int:
        return int(office.store.client.info("stats")["total_net_input_bytes"])

    before = written()
    office.answer(flow, flow, seconds=60)
    assert office.record(flow).status == "done"
    return Cost(written() - before, steps * len(WORDS))


@pytest.mark.parametrize("kind", ["kept", "plain"])
def test_a_run_of_100_steps_and_200_000_tokens_writes_in_proportion_to_what_it_says(
    kind: str, worker: Callable[..., Worker], redis_server: EmbeddedRedis, tmp_path: Path
) -> None:
    worker("io", LONG)
    office = Office(redis_server.url, tmp_path, LONG)
    try:
        costs = {steps: cost(office, f"{kind}{steps}", steps) for steps in (25, 50, 100)}
    finally:
        office.close()

    # each text is written once, to the messages; what comes to it is the same for each step, some 5 kB
    assert all(cost.written < 2 * cost.text for cost in costs.values()), costs
    assert costs[100].written < 2.2 * costs[50].written, costs
    assert costs[50].written < 2.2 * costs[25].written, costs
