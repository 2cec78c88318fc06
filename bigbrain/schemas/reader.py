"""Reads one JSON value out of a model's text, forgiving what can be read for sure.

Forgiven are comments, a comma before the end, strings in single quotes and line breaks
inside strings. Strings are tracked, so nothing inside one is ever touched, and what is
valid JSON is read as any other parser reads it. Nothing is completed or guessed: bare
words, smart quotes, a missing quote or bracket are faults. Half a surrogate pair is not
text and becomes U+FFFD.
"""

from __future__ import annotations

import re

from bigbrain.jsonvalue import JSON

DEEPEST = 100
"""Nothing that a model writes for a type is deeper; it keeps hostile text from exhausting the stack."""

_SPACE = re.compile(r"[\s\ufeff]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?(?![\w.+-])", re.ASCII)
_WORD = re.compile(r"[a-z]+(?!\w)")
_STRINGS = {
    '"': re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)("|\\?\Z)', re.DOTALL),
    "'": re.compile(r"'([^'\\]*+(?:\\.[^'\\]*+)*+)('|\\?\Z)", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS: dict[str, JSON] = {"true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}


class Broken(Exception):
    """Raised when text is not JSON at `at`; `cut` says that it ended too early, `begun` that it had been JSON so far."""

    def __init__(self, at: int, wanted: str, *, cut: bool = False) -> None:
        super().__init__(wanted)
        self.at = at
        self.wanted = wanted
        self.cut = cut
        self.begun = False


class Reader:
    """Reads values from `text`; `at` is where it stands, `first` where the brackets that open the value ended."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.first = 0
        self._begun = False

    def read_at(self, start: int) -> JSON:
        """The object or list that begins at `start`; `at` is its end then.

        Raises `Broken` when it is none.
        """
        self.at = start
        self.first = 0
        self._begun = False
        try:
            return self._value(1)
        except Broken as broken:
            broken.begun = self._begun
            raise

    def _value(self, depth: int) -> JSON:
        if depth > DEEPEST and self._next() in ("{", "["):
            self._begun = True
            raise Broken(self.at, f"nothing deeper than {DEEPEST} levels")
        match self._next():
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case '"' | "'":
                return self._string()
            case "":
                raise self._broken("a value")
        return self._number() if self.text[self.at] in "-0123456789" else self._word()

    def _object(self, depth: int) -> dict[str, JSON]:
        self.at += 1
        found: dict[str, JSON] = {}
        while (token := self._token()) != "}":
            if token not in ('"', "'"):
                raise self._broken("a key in quotes or `}`")
            key = self._string()
            # No comment here until it is known to be an object: one could be looked for again and again.
            self.at = _end_of(_SPACE, self.text, self.at)
            if self._next() != ":":
                raise self._broken("`:`")
            self._begun = True
            self.at += 1
            self._skip()
            found[key] = self._value(depth + 1)
            if self._token() == ",":
                self.at += 1
            elif self._next() != "}":
                raise self._broken("`,` or `}`")
        self.at += 1
        return found

    def _list(self, depth: int) -> list[JSON]:
        self.at += 1
        found: list[JSON] = []
        while self._token() != "]":
            found.append(self._value(depth + 1))
            self._begun = True
            if self._token() == ",":
                self.at += 1
            elif self._next() != "]":
                raise self._broken("`,` or `]`")
        self.at += 1
        return found

    def _string(self) -> str:
        quote = self.text[self.at]
        match = _STRINGS[quote].match(self.text, self.at)
        if match is None or match[2] != quote:
            raise Broken(len(self.text), "the end of the string", cut=True)
        start, self.at = self.at, match.end()
        body = _ESCAPE.sub(lambda escape: _unescaped(escape, start), match[1]) if "\\" in match[1] else match[1]
        if _SURROGATE.search(body):
            return body.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return body

    def _number(self) -> int | float:
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self._broken("a number")
        # A number at the very end may have lost digits, but then its brackets are missing as well.
        text = match[0]
        try:
            number = float(text) if match[1] or match[2] else int(text)
        except ValueError as exc:  # Python refuses integers of more than some thousand digits
            raise self._broken("a shorter number") from exc
        if number in (float("inf"), float("-inf")):
            raise self._broken("a number that is not so large")
        self.at = match.end()
        return number

    def _word(self) -> JSON:
        match = _WORD.match(self.text, self.at)
        if match is None or match[0] not in _WORDS:
            raise self._broken("a value")
        self.at = match.end()
        return _WORDS[match[0]]

    def _token(self) -> str:
        """The character behind spaces and comments, empty at the end."""
        self._skip()
        here = self._next()
        if not self.first and here != "[":
            self.first = self.at
        return here

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self) -> None:
        """Goes past spaces and comments."""
        text = self.text
        self.at = _end_of(_SPACE, text, self.at)
        while text.startswith(("//", "/*"), self.at):
            closing = "*/" if text[self.at + 1] == "*" else "\n"
            end = text.find(closing, self.at + 2)
            if end < 0:
                raise Broken(len(text), "the end of the comment", cut=True)
            self.at = _end_of(_SPACE, text, end + len(closing))

    def _broken(self, wanted: str) -> Broken:
        return Broken(self.at, wanted, cut=self.at >= len(self.text))


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _unescaped(escape: re.Match[str], start: int) -> str:
    code = escape[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    if code not in _ESCAPES:
        raise Broken(start + 1 + escape.start(), "an escape that JSON knows")
    return _ESCAPES[code]
