"""A model server that writes the time into each token, so that a token's way can be measured to the microsecond.

    python -m tests.bench.upstream PORT

The model name `stamps:N@RATE` gives N tokens, RATE a second (0: as fast as they go), the first
one at once. All processes of one machine share the monotonic clock that the stamps are read from.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
BATCH = 20
"""Tokens that one write holds when they go as fast as they can."""


def now() -> int:
    """Microseconds of the monotonic clock."""
    return time.monotonic_ns() // 1000


def frame(delta: dict[str, str], finish: str | None = None, **more: object) -> bytes:
    chunk = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "bench",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def answer(writer: asyncio.StreamWriter, count: int, rate: float) -> None:
    writer.write(HEAD + chunked(frame({"role": "assistant", "content": ""})))
    begun = asyncio.get_running_loop().time()
    for number in range(count):
        writer.write(chunked(frame({"content": f"{now()} "})))
        if rate:
            await asyncio.sleep(max(0.0, begun + (number + 1) / rate - asyncio.get_running_loop().time()))
        elif number % BATCH == 0:
            await writer.drain()
    usage = {"prompt_tokens": 5, "completion_tokens": count, "total_tokens": count + 5}
    writer.write(chunked(frame({}, "stop", usage=usage)) + chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    await writer.drain()


async def whole(writer: asyncio.StreamWriter, count: int) -> None:
    message = {"role": "assistant", "content": "".join(f"{now()} " for _ in range(count))}
    body = json.dumps(
        {
            "id": "chatcmpl-bench",
            "object": "chat.completion",
            "created": 1,
            "model": "bench",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": count, "total_tokens": count + 5},
        }
    ).encode()
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
            )
            asked = json.loads(await reader.readexactly(length))
            count, _, rate = asked["model"].partition(":")[2].partition("@")
            if asked.get("stream"):
                await answer(writer, int(count), float(rate or 0))
            else:
                await whole(writer, int(count))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(port: int) -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=2000)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
