"""Server-sent events survive every way of cutting them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigbrain.errors import ModelBroke
from bigbrain.wire import Frame, sse

STREAM = (
    ": hello\n\n"
    "data: one\n\n"
    "event: two\ndata: fox 🦊\ndata:北\nid: 7\nretry: 10\n\n"
    "event: nothing\n\n"
    "data\n\n"
    "data:  two blanks\n\n"
)
FRAMES = [Frame("", b"one"), Frame("two", "fox 🦊\n北".encode()), Frame("", b""), Frame("", b" two blanks")]

lines = st.binary(max_size=12).map(lambda value: value.replace(b"\r", b"").replace(b"\n", b""))


def each_byte(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_means_the_same(end: str) -> None:
    data = STREAM.replace("\n", end).encode()

    assert list(sse.read([data])) == FRAMES
    assert list(sse.read(each_byte(data))) == FRAMES


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_one_cut_anywhere_makes_no_difference(end: str) -> None:
    data = STREAM.replace("\n", end).encode()

    assert all(list(sse.read([data[:at], b"", data[at:]])) == FRAMES for at in range(len(data) + 1))


@given(
    st.lists(st.tuples(st.sampled_from(["", "ping", "größe"]), st.lists(lines, min_size=1, max_size=3)), max_size=4),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_read(frames: list[tuple[str, list[bytes]]], data: st.DataObject) -> None:
    want = [Frame(event, b"\n".join(parts)) for event, parts in frames]
    sent = b"".join(sse.write(frame.data, frame.event) for frame in want)
    at = data.draw(st.integers(0, len(sent)))

    assert list(sse.read([sent[:at], sent[at:]])) == want


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_frame_comes_as_soon_as_its_blank_line_is_there(end: bytes) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"data: now" + end + end
        raise AssertionError("the reader asked for more before it gave what it had")

    assert next(sse.read(chunks())) == Frame("", b"now")


def test_a_frame_without_its_blank_line_is_dropped() -> None:
    assert list(sse.read([b"data: whole\n\ndata: half\n"])) == [Frame("", b"whole")]


@pytest.mark.parametrize("chunks", [[b"\xef\xbb\xbfdata: x\n\n"], [b"\xef", b"\xbb\xbfda", b"ta: x\n\n"]])
def test_a_byte_order_mark_is_passed_over(chunks: list[bytes]) -> None:
    assert list(sse.read(chunks)) == [Frame("", b"x")]


def test_the_name_of_an_event_holds_for_one_frame_only() -> None:
    assert [frame.event for frame in sse.read([b"event: a\n\ndata: x\n\nevent: b\ndata: y\n\ndata: z\n\n"])] == [
        "",
        "b",
        "",
    ]


@pytest.mark.parametrize(
    "chunks",
    [[b"data: " + b"x" * 60] * 3, [b"data: " + b"x" * 101 + b"\n\n"], [b"data: 123456789\n"] * 20, [b":" * 101]],
)
def test_a_frame_without_end_is_given_up(chunks: list[bytes]) -> None:
    with pytest.raises(ModelBroke, match="100 bytes"):
        list(sse.read(chunks, limit=100))


def test_a_frame_just_within_the_limit_is_read() -> None:
    assert list(sse.read([b"data: " + b"x" * 94, b"\n\n"], limit=100)) == [Frame("", b"x" * 94)]


def test_a_long_line_in_small_pieces_is_joined_once() -> None:
    pieces = [b"data: ", *[b"x" * 64] * 20_000, b"\n\n"]

    assert [len(frame.data) for frame in sse.read(pieces)] == [1_280_000]


def test_line_ends_within_data_become_lines() -> None:
    assert sse.write(b"a\r\nb\rc\nd", "e") == b"event: e\ndata: a\ndata: b\ndata: c\ndata: d\n\n"
