"""Server-sent events: bytes ⇄ frames, for whatever way a network cuts the bytes.

Nothing is decoded here but the names of events: data stays bytes, so a character
that is cut in two between chunks cannot be harmed. A line ends with LF, CR or CRLF;
comments and the fields `id` and `retry` mean nothing to us and are passed over.
Source: WHATWG HTML, "Server-sent events", §9.2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bigbrain.errors import ModelBroke
from bigbrain.wire import Frame

LIMIT = 16 * 1024 * 1024
"""Bytes of one frame, whole or still coming; room for a picture in base64, and an end to a server gone mad."""

_BOM = b"\xef\xbb\xbf"


def _lines(chunks: Iterable[bytes], limit: int) -> Iterator[list[bytes]]:
    """The complete lines that each chunk brings, without their ends.

    The pieces of an unfinished line are joined only when its end comes, so that
    a long line in small chunks costs time in its length, not in its square.
    """
    pieces: list[bytes] = [b""]
    size = 0
    after_cr = False
    begun = False
    for chunk in chunks:
        if not chunk:
            continue
        if after_cr:
            # A CR ends its line at once; an LF right behind it belongs to it, also in the next chunk.
            chunk = chunk.removeprefix(b"\n")
        after_cr = chunk.endswith(b"\r") if chunk else False
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            lines = b"".join((*pieces, head)).split(b"\n")
            if not begun:
                lines[0] = lines[0].removeprefix(_BOM)
                begun = True
            yield lines
            pieces, size = [], 0
        pieces.append(tail)
        size += len(tail)
        if size > limit:
            raise ModelBroke(f"a line of the event stream is longer than {limit} bytes")


def read(chunks: Iterable[bytes], limit: int = LIMIT) -> Iterator[Frame]:
    """The frames of a stream of bytes, each as soon as its blank line is there.

    chunks: the stream in any pieces. A frame that has no `data` line is none, and
    one that the end of the input cuts off is dropped.

    Raises `ModelBroke` when a frame is larger than `limit` bytes.
    """
    data: list[bytes] = []
    event = ""
    size = 0
    for lines in _lines(chunks, limit):
        for line in lines:
            if not line:
                if data:
                    yield Frame(event, data[0] if len(data) == 1 else b"\n".join(data))
                    data = []
                event, size = "", 0
                continue
            # `partition` allocates; nearly every line is this one.
            if line.startswith(b"data: "):
                value = line[6:]
            else:
                name, _, value = line.partition(b":")
                value = value.removeprefix(b" ")
                if name == b"event":
                    event = value.decode("utf-8", "replace")
                if name != b"data":
                    continue
            size += len(value) + 1
            if size > limit + 1:
                raise ModelBroke(f"a frame of the event stream is larger than {limit} bytes")
            data.append(value)


def write(data: bytes, event: str = "") -> bytes:
    """One frame; data with line ends in it becomes several `data` lines, as the protocol wants."""
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    if event:
        return b"event: %b\ndata: %b\n\n" % (event.encode(), data)
    return b"data: %b\n\n" % data
