"""Reads the answer out of a reply while it is being written, wherever the pieces are cut.

Only what is sure is given: the `answer` of the first action of the reply, once its `action` is
known to be `finish`. What needs the whole reply to be understood (a list, single quotes, a
comment, a value inside a value before the answer) is not given here; whoever has the whole
reply gives the rest then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_PLAIN = re.compile(r'[^"\\]+')
_SPACE = re.compile(r"[\s\ufeff]*")
_OPENING = re.compile(r"[{\[]")
_BARE = re.compile(r"[-+.\w]+", re.ASCII)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,2})?", re.ASCII)
_HEX = re.compile(r"[0-9a-fA-F]{1,4}")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_HALF = "\ufffd"
"""What stands for half of a surrogate pair."""
_LONGEST_SCALAR = 100
"""Characters of a number that are looked at."""


class _Over(Exception):
    """Raised when nothing more can be given for sure."""


class _Wait(Exception):
    """Raised when the rest of the buffer cannot be understood before more of it comes."""


class AnswerStream:
    """Takes the pieces of one reply."""

    def __init__(self) -> None:
        self._buffer = ""
        self._at = 0
        self._state: Callable[[], None] = self._prose
        self._out: list[str] = []
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of the object that begins."""
        self._action = ""
        self._held: list[str] = []
        self._meant = False
        self._answered = False
        self._key = ""
        self._word: list[str] = []
        self._high = ""

    def feed(self, piece: str) -> str:
        """Takes a piece of the reply, and gives what is sure of the answer by now: often nothing."""
        self._buffer = self._buffer[self._at :] + piece
        self._at = 0
        try:
            while self._at < len(self._buffer):
                self._state()
        except _Wait:
            pass
        except _Over:
            self._state = self._nothing
            self._nothing()
        out, self._out = "".join(self._out), []
        return out

    def _nothing(self) -> None:
        self._at = len(self._buffer)

    def _next(self) -> str:
        """The character here. Raises `_Wait` when it has not come yet."""
        if self._at >= len(self._buffer):
            raise _Wait
        return self._buffer[self._at]

    def _next_token(self) -> str:
        found = _SPACE.match(self._buffer, self._at)
        self._at = found.end() if found else self._at
        return self._next()

    def _prose(self) -> None:
        found = _OPENING.search(self._buffer, self._at)
        if found is None:
            self._at = len(self._buffer)
            return
        if found[0] == "[":
            raise _Over
        self._at = found.end()
        self._state = self._behind_brace

    def _behind_brace(self) -> None:
        here = self._next_token()
        if here in "'/":
            raise _Over
        self._begin()
        self._state = self._before_key if here == '"' else self._prose

    def _before_key(self) -> None:
        here = self._next_token()
        if here == "}":
            self._end_object()
        elif here == '"':
            self._at += 1
            self._word = []
            self._state = self._in_key
        else:
            raise _Over

    def _in_key(self) -> None:
        self._string(self._word.append)
        self._key = "".join(self._word)
        self._state = self._before_value

    def _before_value(self) -> None:
        if self._next_token() != ":":
            raise _Over
        self._at += 1
        self._state = self._value

    def _value(self) -> None:
        here = self._next_token()
        self._meant = self._meant or self._key in ("action", "tool")
        # the last of two counts, which cannot be known while the first is written
        if self._key == "answer" and self._answered:
            raise _Over
        self._word = []
        if here == '"':
            self._at += 1
            self._answered = self._answered or self._key == "answer"
            self._state = {"answer": self._in_answer, "action": self._in_action}.get(self._key, self._in_other)
        elif self._key in ("answer", "action") or not _BARE.match(here):
            raise _Over
        else:
            self._state = self._in_scalar

    def _in_answer(self) -> None:
        self._string(self._say)
        self._state = self._after_value

    def _in_action(self) -> None:
        self._string(self._word.append)
        if self._action or "".join(self._word).strip().lower() != "finish":
            raise _Over
        self._action = "finish"
        self._out += self._held
        self._state = self._after_value

    def _in_other(self) -> None:
        self._string(_forget)
        self._state = self._after_value

    def _in_scalar(self) -> None:
        found = _BARE.match(self._buffer, self._at)
        if found:
            self._word.append(found[0])
            self._at = found.end()
        self._next()
        word = "".join(self._word)
        if len(word) > _LONGEST_SCALAR or not _SCALAR.fullmatch(word):
            raise _Over
        self._state = self._after_value

    def _after_value(self) -> None:
        here = self._next_token()
        if here == ",":
            self._at += 1
            self._state = self._before_key
        elif here == "}":
            self._end_object()
        else:
            raise _Over

    def _end_object(self) -> None:
        if self._meant:
            raise _Over
        self._at += 1
        self._state = self._prose

    def _say(self, text: str) -> None:
        (self._out if self._action else self._held).append(text)

    def _string(self, take: Callable[[str], object]) -> None:
        """Hands on what there is of a string, decoded; returns behind its end. Raises `_Wait` while there is none."""
        for text in self._decoded():
            take(text)
        self._at += 1

    def _decoded(self) -> Iterator[str]:
        while (here := self._next()) != '"':
            if here == "\\":
                yield self._escaped()
            elif found := _PLAIN.match(self._buffer, self._at):
                self._at = found.end()
                yield self._flushed() + found[0]
        yield self._flushed()

    def _escaped(self) -> str:
        """The character of one escape; the first half of a pair is held back."""
        code = self._buffer[self._at + 1 : self._at + 2]
        if not code:
            raise _Wait
        if code != "u":
            if code not in _ESCAPES:
                raise _Over
            self._at += 2
            return self._flushed() + _ESCAPES[code]
        digits = self._buffer[self._at + 2 : self._at + 6]
        if digits and not _HEX.fullmatch(digits):
            raise _Over
        if len(digits) < 4:
            raise _Wait
        self._at += 6
        return self._paired(chr(int(digits, 16)))

    def _paired(self, char: str) -> str:
        if "\udc00" <= char <= "\udfff":
            high, self._high = self._high, ""
            return (high + char).encode("utf-16-le", "surrogatepass").decode("utf-16-le") if high else _HALF
        before = self._flushed()
        if "\ud800" <= char <= "\udbff":
            self._high = char
            return before
        return before + char

    def _flushed(self) -> str:
        """What stands for a first half whose second never came."""
        high, self._high = self._high, ""
        return _HALF if high else ""


def _forget(_: str) -> None:
    """Nobody wants it."""
