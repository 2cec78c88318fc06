from __future__ import annotations

import io
import os
from contextlib import suppress

from bigbrain.joined_log import JoinedLog


class Terminal(io.StringIO):
    """Text that goes where colours can be seen."""

    def isatty(self) -> bool:
        return True


def test_names_are_aligned() -> None:
    out = io.StringIO()
    log = JoinedLog(["up", "io-1"], out)

    log.write("up", "a")
    log.write("io-1", "b")

    assert out.getvalue() == "up   | a\nio-1 | b\n"


def test_names_have_colours_of_their_own_on_a_terminal() -> None:
    out = Terminal()
    log = JoinedLog(["up", "io-1"], out)

    log.write("up", "a")
    log.write("io-1", "b")

    assert out.getvalue() == "\x1b[36mup   |\x1b[0m a\n\x1b[32mio-1 |\x1b[0m b\n"


def test_blank_lines_are_left_out() -> None:
    out = io.StringIO()

    JoinedLog(["up"], out).write("up", "  ")

    assert out.getvalue() == ""


def test_a_json_log_keeps_objects_and_wraps_other_lines() -> None:
    out = io.StringIO()
    log = JoinedLog(["web"], out, "json")

    log.write("web", '{"level":"info","message":"hello"}')
    log.write("web", "plain [1]")
    log.write("web", "[1]")

    assert out.getvalue().splitlines() == [
        '{"process":"web","level":"info","message":"hello"}',
        '{"process":"web","message":"plain [1]"}',
        '{"process":"web","message":"[1]"}',
    ]


def test_the_last_lines_are_kept_for_an_error() -> None:
    log = JoinedLog(["web"], io.StringIO())

    for number in range(30):
        log.write("web", str(number))

    assert log.tail() == [f"web: {number}" for number in range(10, 30)]


def test_a_reader_that_went_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    out = os.fdopen(write, "w", buffering=1)
    log = JoinedLog(["web"], out)

    log.write("web", "hello")

    assert log.tail() == ["web: hello"]
    with suppress(BrokenPipeError):
        out.close()
