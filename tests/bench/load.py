"""Clients that measure: each token's way from the model's server to here, by the stamps in the tokens."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
from dataclasses import dataclass, field

from tests.bench.upstream import now

STAMP = re.compile(rb"(\d{6,}) ")


@dataclass
class Seen:
    """What the clients of one workload saw, times in ms."""

    first: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    tokens: int = 0
    wrong: int = 0
    """Answers that were not exact or not complete."""
    seconds: float = 0.0

    def quantile(self, values: list[float], share: float) -> float:
        ordered = sorted(values)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")

    @property
    def first_p50(self) -> float:
        return statistics.median(self.first) if self.first else float("nan")


class Client:
    """One client with one kept connection."""

    def __init__(self, port: int, seen: Seen) -> None:
        self.port = port
        self.seen = seen
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, model: str, *, stream: bool = True) -> None:
        """Asks once and takes the figures of the answer."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        assert self.reader is not None
        body = json.dumps({"model": model, "stream": stream, "messages": [{"role": "user", "content": "go"}]}).encode()
        begun = now()
        self.writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer k\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        )
        head = await self.reader.readuntil(b"\r\n\r\n")
        chunked = b"chunked" in head.lower()
        stamps: list[bytes] = []
        ended = False
        while not ended:
            data, ended = await self._more(head, chunked)
            at = now()
            found = STAMP.findall(data)
            if found and not stamps:
                self.seen.first.append((at - begun) / 1000)
            stamps += found
            self.seen.delays += [(at - int(stamp)) / 1000 for stamp in found]
        expected = int(model.partition(":")[2].partition("@")[0])
        self.seen.tokens += len(stamps)
        self.seen.wrong += len(stamps) != expected or stamps != sorted(stamps)

    async def _more(self, head: bytes, chunked: bool) -> tuple[bytes, bool]:
        assert self.reader is not None
        if chunked:
            size = int(await self.reader.readline(), 16)
            data = await self.reader.readexactly(size + 2)
            return data, size == 0
        match = re.search(rb"content-length: (\d+)", head.lower())
        if match:
            return await self.reader.readexactly(int(match[1])), True
        data = await self.reader.read(65536)
        if not data:
            self.close()
        return data, not data

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


async def run(port: int, model: str, *, clients: int, each: int, stream: bool = True, ramp: float = 0.0) -> Seen:
    """`each` requests from each of `clients` clients, which start spread over `ramp` seconds."""
    seen = Seen()

    async def one(number: int) -> None:
        await asyncio.sleep(ramp * number / clients)
        client = Client(port, seen)
        try:
            for _ in range(each):
                await client.ask(model, stream=stream)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            seen.wrong += 1
        finally:
            client.close()

    begun = now()
    await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(clients))), timeout=120)
    seen.seconds = (now() - begun) / 1e6
    return seen
