"""Very many runs through one deployment, and what is left of them in Redis when their time is over."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2
import msgspec
import redis

from tests.soak.brains import EXPECTED
from tests.stack.deployment import Deployment

KEEP = 15
"""Seconds that the deployment remembers a run after its end: its `BIG_BRAIN_KEEP`."""
CLIENTS = 16
WARM = 260
"""Runs before the first look: they fill what is bounded, such as the trace, and load the scripts."""
SLACK = 512 * 1024
"""Bytes that the data in Redis may vary by without anything being left: allocator, tables that were grown."""
PATIENCE = 60.0
"""Seconds after the end of the runs' time that the last key of theirs may take to be gone."""
LONGEST = 330.0
"""Seconds after which everything that remembers a request is gone; requests without a name are known again for 300."""
RUNS = (b"bb:run:", b"bb:runs:", b"bb:kept", b"bb:due", b"bb:memory:")
"""How the keys begin that runs leave."""
REMEMBERED = b"bb:done:"
"""How the keys begin that remember calls of webhooks for three days, so that one that is repeated does nothing twice."""
BOUNDED = {b"bb:trace"}
"""Keys that are there for good or for a day once anything has happened, and are bounded."""
WAITS = ("left", "cancelled")
"""What becomes of runs that would take long: their client leaves, or they are stopped."""


@dataclass(frozen=True)
class Held:
    """What Redis holds: keys, bytes of data, bytes of everything."""

    keys: int
    data: int
    used: int

    @classmethod
    def of(cls, client: redis.Redis) -> Held:
        memory = client.info("memory")
        return cls(client.dbsize(), memory["used_memory_dataset"], memory["used_memory"])

    def __str__(self) -> str:
        return f"{self.keys} keys, {self.data / 1024:.0f} KiB of data, {self.used / 1024:.0f} KiB used"


@dataclass
class Report:
    """What a soak came to."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    before: Held = Held(0, 0, 0)
    peak: Held = Held(0, 0, 0)
    after: Held = Held(0, 0, 0)
    left: list[str] = field(default_factory=list)
    """Keys that were not there before, each with its lifetime in seconds."""
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether every answer was right and nothing is left."""
        return not self.wrong and not self.left and self.after.data <= self.before.data + SLACK

    def lines(self) -> str:
        """For people."""
        count = self.answers.total()
        return (
            f"{count} runs in {self.seconds:.0f} s ({count / max(self.seconds, 0.1):.0f} a second), "
            f"{len(self.wrong)} wrong: {dict(sorted(self.answers.items()))}\n"
            f"before  {self.before}\npeak    {self.peak}\nafter   {self.after}\nleft    {self.left or 'nothing'}"
        )


class Client:
    """One of the clients; asks for every kind in every way."""

    def __init__(self, number: int, url: str, report: Report) -> None:
        self._number = number
        self._url = url
        self._report = report

    async def run(self, count: int) -> None:
        """Asks so many times."""
        kinds = [*EXPECTED, *WAITS]
        async with httpx2.AsyncClient(timeout=60) as http:
            for number in range(count):
                kind = kinds[(self._number + number) % len(kinds)]
                # each kind comes to be asked for in each way
                way = (number // len(kinds) + self._number) % 8
                run_id = f"soak-{self._report.before.keys}-{self._number}-{number}"
                try:
                    await self._ask(
                        http, kind, run_id, stream=bool(way & 1), anthropic=bool(way & 2), again=bool(way & 4)
                    )
                except (httpx2.HTTPError, msgspec.MsgspecError, KeyError) as exc:
                    self._report.wrong.append(f"{kind} {run_id}: {exc!r}")

    async def _ask(
        self, http: httpx2.AsyncClient, kind: str, run_id: str, *, stream: bool, anthropic: bool, again: bool
    ) -> None:
        self._report.answers[kind] += 1
        if kind == "hook":
            answer = await http.post(f"{self._url}/hooks/hook", json={"is": run_id})
            if "called" not in answer.text:
                self._report.wrong.append(f"{kind} {run_id}: {answer.status_code} {answer.text}")
            return
        if kind in WAITS:
            await self._stop(http, run_id, cancel=kind == "cancelled")
            return
        headers = {"X-Run-Id": run_id} if again else {}
        for _ in range(1 + again):
            text = await self._answer(http, kind, headers, stream=stream, anthropic=anthropic)
            expected = EXPECTED[kind]
            if (text not in expected) if expected else text is not None:
                self._report.wrong.append(f"{kind} {run_id}: {text!r}")

    async def _answer(
        self, http: httpx2.AsyncClient, kind: str, headers: dict[str, str], *, stream: bool, anthropic: bool
    ) -> str | None:
        """The text of an answer, None for one that fails."""
        body = {"model": kind, "stream": stream, "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
        path = "messages" if anthropic else "chat/completions"
        async with http.stream("POST", f"{self._url}/{path}", json=body, headers=headers) as response:
            if response.status_code != 200:
                await response.aread()
                return None
            if stream:
                return await _streamed(response)
            document = msgspec.json.decode(await response.aread())
        if anthropic:
            return "".join(block["text"] for block in document["content"])
        return document["choices"][0]["message"]["content"]

    async def _stop(self, http: httpx2.AsyncClient, run_id: str, *, cancel: bool) -> None:
        """Begins a run that would take long and has it stopped, or leaves it alone."""
        body = {"model": "waits", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        headers = {"X-Run-Id": run_id} if cancel else {}
        async with http.stream("POST", f"{self._url}/chat/completions", json=body, headers=headers) as response:
            await anext(response.aiter_lines())
            if cancel:
                answer = await http.post(f"{self._url}/runs/{run_id}/cancel")
                if answer.json()["status"] != "cancelled":
                    self._report.wrong.append(f"cancelled {run_id}: {answer.text}")


async def _streamed(response: httpx2.Response) -> str | None:
    pieces: list[str] = []
    async for frame in _frames(response):
        if "error" in frame:
            return None
        if "choices" in frame:
            pieces += [choice["delta"].get("content") or "" for choice in frame["choices"]]
        elif frame["type"] == "content_block_delta":
            pieces.append(frame["delta"].get("text", ""))
    return "".join(pieces)


async def _frames(response: httpx2.Response) -> AsyncIterator[dict[str, object]]:
    async for line in response.aiter_lines():
        if line.startswith("data: {"):
            yield msgspec.json.decode(line[6:])


async def _ask_all(url: str, runs: int, report: Report) -> None:
    share, rest = divmod(runs, CLIENTS)
    await asyncio.gather(*(Client(n, url, report).run(share + (n < rest)) for n in range(CLIENTS)))


def _settle(client: redis.Redis, known: set[bytes], *, whole: bool) -> list[str]:
    """Waits until the time of all that is new is over; what is left then, each with its lifetime.

    whole: of everything; else of runs, and what else has a lifetime is not told.
    """
    end = time.monotonic() + KEEP + PATIENCE + (LONGEST if whole else 0)
    while True:
        lifetimes = {key: client.ttl(key) for key in client.scan_iter("*", 1000) if key not in known}
        # -2: gone meanwhile
        left = {
            key: ttl
            for key, ttl in lifetimes.items()
            if ttl != -2 and (ttl < 0 or key.startswith(RUNS) or (whole and not key.startswith(REMEMBERED)))
        }
        if not left or time.monotonic() > end:
            return [f"{key.decode()} ({ttl} s)" for key, ttl in left.items()]
        time.sleep(1.0)


def soak(stack: Deployment, runs: int, *, whole: bool) -> Report:
    """Has a deployment answer so many requests, and looks at what Redis holds before, at the end and after it all.

    whole: waits until really everything is gone, some six minutes instead of one.
    """
    report = Report()
    with stack.redis() as client:
        known = set(client.scan_iter("*", 1000))
        asyncio.run(_ask_all(stack.openai, WARM, Report()))
        _settle(client, known | BOUNDED, whole=False)
        known, report.before = set(client.scan_iter("*", 1000)), Held.of(client)
        begun = time.monotonic()
        asyncio.run(_ask_all(stack.openai, runs, report))
        report.seconds = time.monotonic() - begun
        report.peak = Held.of(client)
        report.left = _settle(client, known, whole=whole)
        report.after = Held.of(client)
    return report
