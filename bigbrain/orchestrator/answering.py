"""Gives the answer to whoever listens, while it is written, across the drafts of a task.

What was given cannot be taken back. So a draft that breaks after part of its answer was given
may only be followed by one whose answer begins with that part, of which the rest is given.
"""

from __future__ import annotations

from collections.abc import Callable

from bigbrain.errors import TaskFailed
from bigbrain.orchestrator.streaming import AnswerStream


class Answering:
    """The answer of one task, as far as it was given; without `on_token`, nothing is given before it is complete."""

    def __init__(self, on_token: Callable[[str], None] | None) -> None:
        self._on_token = on_token
        self._given: list[str] = []
        self._draft = AnswerStream()
        self._before = ""
        self._read = 0

    @property
    def given(self) -> str:
        """What was given so far."""
        return "".join(self._given)

    def begin(self) -> None:
        """A draft begins. Everything that it says again is not given again."""
        self._draft = AnswerStream()
        self._before = self.given
        self._read = 0

    def hear(self, piece: str) -> None:
        """Takes a piece of the draft. Raises `TaskFailed` when its answer is not what was given."""
        if self._on_token is not None:
            self._take(self._draft.feed(piece))

    def end(self, answer: str) -> None:
        """The draft is accepted with this answer: what was not given of it yet is given now.

        Raises `TaskFailed` when the answer is not what was given.
        """
        if self._on_token is None:
            return
        given = self.given
        if not answer.startswith(given):
            raise _other()
        self._give(answer[len(given) :])

    def _take(self, text: str) -> None:
        if not text:
            return
        known = self._before[self._read : self._read + len(text)]
        self._read += len(text)
        if not text.startswith(known):
            raise _other()
        self._give(text[len(known) :])

    def _give(self, text: str) -> None:
        if text and self._on_token is not None:
            self._given.append(text)
            self._on_token(text)


def _other() -> TaskFailed:
    return TaskFailed(
        "the reply broke off after part of its answer had been given, and the next reply answers something else"
    )
