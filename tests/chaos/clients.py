"""Clients that stream without a pause, and what they saw.

A client sends a request again under the same id when its connection breaks, as a careful one does, and when its stream
ends with an error that may be tried again. Each text must be right in the end.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2
import msgspec

EXPECTED = {
    "lasting": "first\n\n" + " ".join(f"w{number}" for number in range(80)),
    "tokens:40@20": " ".join(f"w{number}" for number in range(40)),
    "counting": " ".join(f"c{number}" for number in range(40)),
    "stages": "first\n\nsecond",
}
"""The models that are asked for, and the only right answer of each."""

DURABLE = ("lasting", "counting")
"""Those whose clients must not notice anything but a pause."""

MAY_END = ("server_ending", "run_interrupted")
"""Errors with which the stream of a durable run may end while the run goes on: the same request has its answer, whole."""

PAUSE = 1.0
"""Seconds without a word after which a client's stream counts as held up; the model says 20 words a second."""

TRIES = 40


@dataclass
class Seen:
    """What the clients have seen."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Answers that were not what they had to be, or ended in an error that a client must not see."""
    pauses: list[float] = field(default_factory=list)
    """Seconds for which the open stream of a durable run was held up."""
    again: Counter[str] = field(default_factory=Counter)
    """How often a request was sent again, by what had ended the one before."""
    interrupted: int = 0
    """Streams of durable runs that ended with `run_interrupted`: a killed Redis had forgotten what they had told."""
    heard: int = 0
    """Frames that came, of all answers together."""


class Client:
    """One client; asks for one answer after the other."""

    def __init__(self, number: int, url: str, seen: Seen) -> None:
        self._number = number
        self._url = url
        self._seen = seen

    async def run(self, over: asyncio.Event) -> None:
        """Asks until it is over, the last answer to its end."""
        models = list(EXPECTED)
        async with httpx2.AsyncClient(timeout=60) as http:
            count = 0
            while not over.is_set():
                model = models[(self._number + count) % len(models)]
                await self._ask(http, model, f"chaos-{self._number}-{count}")
                count += 1

    async def ask_once(self, model: str, run_id: str) -> tuple[str, str]:
        """The text of one answer and the code of its error, or its status, if it has one."""
        async with httpx2.AsyncClient(timeout=60) as http:
            return await self._stream(http, model, run_id)

    async def _ask(self, http: httpx2.AsyncClient, model: str, run_id: str) -> None:
        last = ""
        for _ in range(TRIES):
            try:
                text, last = await self._stream(http, model, run_id)
            except (httpx2.HTTPError, EOFError) as exc:
                last = repr(exc)
            else:
                if not last:
                    self._seen.answers[model] += 1
                    if text.strip() != EXPECTED[model]:
                        self._seen.wrong.append(f"{run_id} {model}: {text!r}")
                    return
                self._seen.interrupted += model in DURABLE and last == "run_interrupted"
                if model in DURABLE and last not in MAY_END and not last.isdigit():
                    self._seen.wrong.append(f"{run_id} {model}: {last} after {text!r}")
                    return
            self._seen.again[last] += 1
            await asyncio.sleep(0.5)
        self._seen.wrong.append(f"{run_id} {model}: no answer in {TRIES} tries, at last {last}")

    async def _stream(self, http: httpx2.AsyncClient, model: str, run_id: str) -> tuple[str, str]:
        """The text of an answer and the code of its error, or its status, if it has one.

        Raises `EOFError` for an answer that breaks off.
        """
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
                self._seen.heard += 1
                document = msgspec.json.decode(frame)
                if "error" in document:
                    return "".join(pieces), document["error"]["code"]
                pieces += [choice["delta"].get("content") or "" for choice in document["choices"]]
                now = time.monotonic()
                if model in DURABLE and now - heard > PAUSE:
                    self._seen.pauses.append(now - heard)
                heard = now
        raise EOFError("the stream ended without its end")


async def _frames(response: httpx2.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")
