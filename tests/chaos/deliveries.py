"""Deliveries to a webhook of a deployment whose worker is killed meanwhile: each must be one run, and none is lost.

The long form: `python -m tests.chaos.deliveries --count 1000 --kills 2`. A sender sends a delivery again, under its id and signed anew, until it is answered 202, as careful senders do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import msgspec
import redis

from bigbrain.identity import bare
from bigbrain.webhooks.standard import signed
from tests.hooked import SECRET
from tests.stack.deployment import Deployment, deployed, until

AT_ONCE = 16
"""Deliveries that are under way at once."""
TRIES = 20
WORKER = " -Q io"


@dataclass
class Report:
    """What became of the deliveries."""

    ids: list[str] = field(default_factory=list)
    """The run that each was answered with."""
    again: int = 0
    """How often one was sent again."""
    slowest: float = 0.0
    """Seconds that the longest 202 took."""
    killed: int = 0
    executed: Counter[str] = field(default_factory=Counter)
    """How often each run's step left its line, for each run and step."""
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> str:
        """For people."""
        twice = sum(times > 2 for times in self.executed.values())
        return (
            f"{len(self.ids)} deliveries, {len(set(self.ids))} runs, worker killed {self.killed} times, "
            f"{self.again} sent again, slowest 202 {self.slowest:.2f} s, {twice} runs with a step that was begun twice, "
            f"{len(self.wrong)} wrong"
        )


async def _deliver(http: httpx2.AsyncClient, url: str, number: int, report: Report) -> None:
    body = msgspec.json.encode({"number": number})
    for _ in range(TRIES):
        begun = time.monotonic()
        try:
            headers = signed(body, id=f"msg_{number}", at=int(time.time()), secret=SECRET)
            response = await http.post(f"{url}/v1/hooks/work", content=body, headers=headers)
        except httpx2.HTTPError:
            response = None
        if response is not None and response.status_code == 202:
            report.ids.append(response.json()["id"])
            report.slowest = max(report.slowest, time.monotonic() - begun)
            return
        report.again += 1
        await asyncio.sleep(0.5)
    report.wrong.append(f"delivery {number} was never taken")


async def send(url: str, numbers: range, report: Report, kill: dict[int, list[int]] | None = None) -> None:
    """Sends the deliveries of these numbers; before some of them, kills processes by their ids."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        try:
            await _deliver(http, url, number, report)
        finally:
            gate.release()

    async with httpx2.AsyncClient(timeout=60) as http, asyncio.TaskGroup() as group:
        for number in numbers:
            await gate.acquire()
            for pid in (kill or {}).get(number, []):
                os.kill(pid, signal.SIGKILL)
            group.create_task(one(number))


def storm(stack: Deployment, told: Path, *, count: int, kills: int) -> Report:
    """Sends so many deliveries, kills the worker so often on the way, and tells what came of it."""
    report = Report()
    with stack.redis() as client:
        before = _on_record(client)
    part = count // (kills + 1)
    asyncio.run(send(stack.url, range(part), report))
    for number in range(1, kills + 1):
        assert until(lambda: stack.pids(WORKER), 30)
        pids = stack.pids(WORKER)
        last = count if number == kills else (number + 1) * part
        # in the midst of the runs, and again only when there is another worker to kill
        asyncio.run(send(stack.url, range(number * part, last), report, {number * part + 3: pids}))
        report.killed += 1
        assert until(lambda before=pids: set(stack.pids(WORKER)) - set(before), 30)
    with stack.redis() as client:
        assert until(lambda: client.zcard("bb:due") == 0, 120), client.zrange("bb:due", 0, -1)
        _check(client, report, told, before)
    return report


def _on_record(client: redis.Redis) -> set[str]:
    """The runs of `work` that there are."""
    keys = {key.decode().removeprefix("bb:run:") for key in client.scan_iter("bb:run:*:work:msg_*", count=1000)}
    return {key for key in keys if key.count(":") == 2}


def _check(client: redis.Redis, report: Report, told: Path, before: set[str]) -> None:
    report.executed.update(told.read_text().splitlines())
    runs = _on_record(client) - before
    if sorted(bare(run) for run in runs) != sorted(set(report.ids)):
        report.wrong.append(f"{len(runs)} runs on record for {len(set(report.ids))} deliveries")
    for run in runs:
        status = client.hget(f"bb:run:{run}", "status")
        steps = [msgspec.json.decode(line) for line in client.lrange(f"bb:run:{run}:steps", 0, -1)]
        done = Counter(step["path"] for step in steps if step["result"] == "done")
        if status != b"done" or done != {"0": 1, "1": 1}:
            report.wrong.append(f"{run}: {status!r}, {steps}")
        # a step is begun again only when its worker was lost before it was on record
        begun = sum(step["attempt"] for step in steps)
        if not 2 <= report.executed[run] <= begun:
            report.wrong.append(f"{run}: {report.executed[run]} executions of 2 steps in {begun} attempts")


def main() -> int:
    """The exit status: 1 when something was lost or done twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.deliveries", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        told = Path(data) / "told"
        told.touch()
        arguments = ("up", "tests.hooked", "--port", "0", "--web", "2", "--workers", "1")
        with deployed(*arguments, data=Path(data), TOLD=str(told)) as stack:
            report = storm(stack, told, count=options.count, kills=options.kills)
    print(report.lines())
    print(*report.wrong, sep="\n")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
