"""How tests read a streamed chat completion."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import msgspec


class StreamFailed(Exception):
    """Raised when a stream ends with an error of the protocol."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


async def pieces(response: httpx2.Response) -> AsyncIterator[str]:
    """The text of a streamed chat completion, as it comes; its end is known to be one.

    Raises `StreamFailed` for an error in the stream, `EOFError` for one that breaks off.
    """
    async for line in response.aiter_lines():
        if line == "data: [DONE]":
            return
        if line.startswith("data: "):
            frame = msgspec.json.decode(line[6:])
            if "error" in frame:
                raise StreamFailed(frame["error"]["code"])
            for choice in frame["choices"]:
                yield choice["delta"].get("content") or ""
    raise EOFError("the stream ended without its end")
