"""Clients that stream without a pause from a deployment whose processes are killed and stopped at random."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from tests.chaos.blows import Blows
from tests.chaos.clients import Client, Seen
from tests.stack.deployment import Deployment, until

TRACEBACK = 60
"""Lines of the log from an error on that are shown."""

CALM = 8.0
"""Seconds after the last blow before the clients' last answers are waited for."""


@dataclass
class Report:
    """What the clients have seen, and what was done to the deployment."""

    seen: Seen = field(default_factory=Seen)
    blows: Blows = field(default_factory=Blows)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    """Seconds from a blow until a durable step that its process held was under way elsewhere, by the kind of blow."""
    single: list[float] = field(default_factory=list)
    """Those of blows that were the only one: neither Redis nor what the step waited for was struck a second time."""
    log: list[str] = field(default_factory=list)
    """What the deployment has logged of streams that broke inside the web side, which no blow excuses."""
    unstruck: int = 0
    """How often a step was lost whose process nobody struck: too busy, or cut off from Redis, for a whole lease."""

    def lines(self) -> str:
        """For people."""
        seen, given = self.seen, self.blows.given
        lost = [seconds for kind, each in self.recoveries.items() if kind != "ended worker" for seconds in each]
        return "\n".join(
            (
                f"{given.total()} blows {dict(given)}",
                f"answers {dict(seen.answers)}, {len(seen.wrong)} wrong, {seen.again.total()} sent again {dict(seen.again)}",
                f"durable steps lost and begun elsewhere: {_spread(lost)}; {self.unstruck} lost without a blow",
                f"  with Redis, and the pool that they wait for, left alone meanwhile: {_spread(self.single)}",
                *(f"  {kind}: {_spread(seconds)}" for kind, seconds in sorted(self.recoveries.items())),
                f"streams of durable runs that ended with `run_interrupted`: {seen.interrupted}",
                f"durable streams held up, with the way back to where the client was: {_spread(seen.pauses)}",
            )
        )


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{len(ordered)}, p50 {statistics.median(ordered):.1f} s, p99 {p99:.1f} s, longest {ordered[-1]:.1f} s"


async def _storm(stack: Deployment, report: Report, blows: int, clients: int, seed: int, every: float) -> None:
    over, chance = asyncio.Event(), random.Random(seed)
    url = stack.openai
    running = [asyncio.create_task(Client(number, url, report.seen).run(over)) for number in range(clients)]
    while report.blows.given.total() < blows:
        await asyncio.sleep(every * chance.uniform(0.7, 1.3))
        await report.blows.strike(stack, chance)
        for task in running:
            if task.done():
                task.result()  # a client that is broken ends the storm
    await asyncio.sleep(CALM)
    over.set()
    await asyncio.gather(*running)


def storm(
    stack: Deployment, *, blows: int, clients: int, seed: int, every: float = 4.0, forgetful: bool = False
) -> Report:
    """Strikes a deployment that many times, every so many seconds, while clients stream; tells what they saw.

    Raises `AssertionError` when the deployment keeps something afterwards that it must not, or did something twice.
    """
    report = Report(blows=Blows(forgetful))
    asyncio.run(_storm(stack, report, blows, clients, seed, every))
    broken = [number for number, line in enumerate(stack.lines) if "the stream broke" in line]
    report.log = [line for number in broken for line in stack.lines[number : number + TRACEBACK]]
    with stack.redis() as client:
        assert until(lambda: client.zcard("bb:due") == 0, 30), client.zrange("bb:due", 0, -1)
        lasting = [key for key in client.scan_iter("bb:run:*") if client.ttl(key) < 0]
        assert lasting == [], lasting
        for key in client.scan_iter("bb:run:*:steps"):
            steps = [msgspec.json.decode(line) for line in client.lrange(key, 0, -1)]
            # nothing of such a run is durable, so that it begins anew when it is asked for again after a failure
            anew = client.hexists(key.removesuffix(b":steps"), "origin")
            done = Counter(
                step["path"] for step in (_since_failure(steps) if anew else steps) if step["result"] == "done"
            )
            assert set(done.values()) <= {1}, (key, steps)
            if not anew:
                _add_recoveries(report, steps)
    return report


def _since_failure(steps: Sequence[dict[str, object]]) -> Sequence[dict[str, object]]:
    failed = [number for number, step in enumerate(steps) if step["result"] != "done"]
    return steps[failed[-1] + 1 :] if failed else steps


def _add_recoveries(report: Report, steps: Sequence[dict[str, object]]) -> None:
    begun = {(step["path"], step["attempt"]): int(str(step["ended"])) - int(str(step.get("took", 0))) for step in steps}
    for step in steps:
        if step["result"] != "lost":
            continue
        pid = int(str(step["process"]).split(".")[-2]) if step["process"] else 0
        at, kind = report.blows.last(pid, int(str(step["ended"])))
        started = begun.get((step["path"], int(str(step["attempt"])) + 1))
        if not kind:
            report.unstruck += 1
        elif started is not None:
            seconds = (started - at) / 1000
            report.recoveries.setdefault(kind, []).append(seconds)
            if kind != "ended worker" and not report.blows.struck_again(kind, at, started):
                report.single.append(seconds)
