"""Clients that stream without a pause from a deployment whose processes are killed and stopped at random.

A client sends a request again under the same id when its connection breaks, as a careful one does, and
once a run that is not durable tells that it was interrupted. A durable one must never say so.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2
import msgspec

from tests.stack.deployment import Deployment, until

EXPECTED = {
    "lasting": "first\n\n" + " ".join(f"w{number}" for number in range(80)),
    "tokens:40@20": " ".join(f"w{number}" for number in range(40)),
    "stages": "first\n\nsecond",
}
"""The models that are asked for, and the only right answer of each."""

PAUSE = 1.0
"""Seconds without a word after which a client's stream counts as held up; the model says 20 words a second."""

STOPPED = 7.0
"""Seconds that a stopped process is stopped for: longer than a lease."""

CALM = 8.0
"""Seconds between two blows: a step whose owner is lost three times in a row is given up, and rightly so."""

TRIES = 20

MARKS = {"worker": " -Q io", "pool": " -Q cpu", "web": "gunicorn", "beat": " beat "}
"""What is in the command lines of the processes that may be struck."""


@dataclass
class Report:
    """What the clients have seen, and what was done to the deployment."""

    blows: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Answers that were not what they had to be, or ended in an error that a client must not see."""
    pauses: list[float] = field(default_factory=list)
    """Seconds for which the open stream of a durable run was held up."""
    again: int = 0
    """How often a request was sent again."""

    def lines(self) -> str:
        """For people."""
        held = sorted(self.pauses) or [0.0]
        p99 = held[min(len(held) - 1, int(len(held) * 0.99))]
        return (
            f"blows {dict(self.blows)}\nanswers {dict(self.answers)}, {len(self.wrong)} wrong, {self.again} sent again\n"
            f"durable streams held up {len(self.pauses)} times: p50 {statistics.median(held):.1f} s, p99 {p99:.1f} s"
        )


class Client:
    """One client; asks for one answer after the other."""

    def __init__(self, number: int, url: str, report: Report) -> None:
        self._number = number
        self._url = url
        self._report = report

    async def run(self, over: asyncio.Event) -> None:
        """Asks until it is over, the last answer to its end."""
        models = list(EXPECTED)
        async with httpx2.AsyncClient(timeout=60) as http:
            count = 0
            while not over.is_set():
                model = models[(self._number + count) % len(models)]
                await self._ask(http, model, f"chaos-{self._number}-{count}")
                count += 1

    async def _ask(self, http: httpx2.AsyncClient, model: str, run_id: str) -> None:
        seen = ""
        for _ in range(TRIES):
            try:
                text, seen = await self._stream(http, model, run_id)
            except (httpx2.HTTPError, EOFError) as exc:
                seen = repr(exc)
            else:
                if not seen:
                    self._report.answers[model] += 1
                    if text.strip() != EXPECTED[model]:
                        self._report.wrong.append(f"{run_id} {model}: {text!r}")
                    return
                if model == "lasting" and seen == "run_interrupted":
                    self._report.wrong.append(f"{run_id} {model}: {seen} after {text!r}")
                    return
            self._report.again += 1
            await asyncio.sleep(0.5)
        self._report.wrong.append(f"{run_id} {model}: no answer in {TRIES} tries, at last {seen}")

    async def _stream(self, http: httpx2.AsyncClient, model: str, run_id: str) -> tuple[str, str]:
        """The text of an answer and the code of its error, if it has one. Raises `EOFError` for one that breaks off."""
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        pieces: list[str] = []
        heard = time.monotonic()
        async with http.stream(
            "POST", f"{self._url}/chat/completions", json=body, headers={"X-Run-Id": run_id}
        ) as response:
            if response.status_code != 200:
                assert response.status_code >= 500, await response.aread()
                return "", str(response.status_code)
            async for frame in _frames(response):
                if frame == "[DONE]":
                    return "".join(pieces), ""
                document = msgspec.json.decode(frame)
                if "error" in document:
                    return "".join(pieces), document["error"]["code"]
                pieces += [choice["delta"].get("content") or "" for choice in document["choices"]]
                now = time.monotonic()
                if model == "lasting" and now - heard > PAUSE:
                    self._report.pauses.append(now - heard)
                heard = now
        raise EOFError("the stream ended without its end")


async def _frames(response: httpx2.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")


async def _strike(stack: Deployment, chance: random.Random, report: Report) -> None:
    """One blow: a process is killed, or stopped for longer than its leases last."""
    what = chance.choice([*MARKS, "stopped worker"])
    found = sorted(stack.pids(MARKS.get(what, MARKS["worker"])))
    if what == "web":
        found = found[1:]  # the first is the master, whose death is the supervisor's business and not a client's
    if not found:
        return
    pid = chance.choice(found)
    report.blows[what] += 1
    if what != "stopped worker":
        os.kill(pid, signal.SIGKILL)
        return
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(STOPPED)
    os.kill(pid, signal.SIGCONT)


async def _storm(stack: Deployment, blows: int, clients: int, seed: int) -> Report:
    report, over, chance = Report(), asyncio.Event(), random.Random(seed)
    url = stack.openai
    running = [asyncio.create_task(Client(number, url, report).run(over)) for number in range(clients)]
    for _ in range(blows):
        await asyncio.sleep(CALM * chance.uniform(0.8, 1.2))
        await _strike(stack, chance, report)
    await asyncio.sleep(CALM)
    over.set()
    await asyncio.gather(*running)
    return report


def storm(stack: Deployment, *, blows: int, clients: int, seed: int) -> Report:
    """Strikes a deployment that many times while clients stream, and tells what they saw.

    Raises `AssertionError` when the deployment keeps something afterwards that it must not.
    """
    report = asyncio.run(_storm(stack, blows, clients, seed))
    with stack.redis() as redis:
        assert until(lambda: redis.zcard("bb:due") == 0, 30), redis.zrange("bb:due", 0, -1)
        lasting = [key for key in redis.scan_iter("bb:run:*") if redis.ttl(key) < 0]
        assert lasting == [], lasting
        for key in redis.scan_iter("bb:run:*:steps"):
            steps = [msgspec.json.decode(line) for line in redis.lrange(key, 0, -1)]
            done = Counter(step["path"] for step in steps if step["result"] == "done")
            assert set(done.values()) <= {1}, (key, steps)
    return report
