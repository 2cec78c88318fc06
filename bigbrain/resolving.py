"""The tool loop: a model is asked, its calls are run, it is asked again, until it answers without calls.

The rounds make one answer, which flows as it is written. Its text is what the model said
in all rounds, a blank line between them; thinking likewise. The calls that were run here,
and their results, are not part of it. So a client that streams and one that waits read the
same, and nobody has to know beforehand which round is the last. Without `aloud` the text is
that of the last round alone, which is known only when that round ends.

A round is all or nothing: when one of its calls is somebody else's to run, none is run and
all are part of the answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from msgspec.structs import replace

from bigbrain.answers import BETWEEN
from bigbrain.errors import ToolError
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started, replay
from bigbrain.messages import ForcedTool, Message, Response, Text, ToolCall, ToolChoice
from bigbrain.replies import Reply
from bigbrain.rounds import Tools, answer
from bigbrain.run import Run

CUT = ("length", "context", "filter")
"""Why an answer ended whose last call may be half a call: none of its calls is run, and it is the loop's answer."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What one loop needs.

    id: the same in every attempt that asks the same. ask: asks about the conversation as it is.
    add: adds to the conversation. tools: those that are run here. theirs: names of those that
    somebody else runs. timeout: seconds for all rounds together.
    """

    id: str
    ask: Callable[[ToolChoice], Reply]
    add: Callable[[Message], object]
    tools: Tools
    theirs: frozenset[str]
    run: Run
    choice: ToolChoice
    max_rounds: int
    timeout: float | None
    aloud: bool

    def events(self) -> Generator[Event]:
        """The answer, as it comes; the usage is the last round's own.

        Raises `ToolError` when the model still calls tools in the last round that it may have, or when time is up.
        """
        voice = _Voice(self)
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        count, choice = 0, self.choice
        for known in self.run.rounds.known(self.id):
            yield from voice.hear(replay(Response(parts=known[0].parts)))
            yield from voice.settle(last=False)
            for message in known:
                self.add(message)
            count, choice = count + 1, _after_first(choice)
        while True:
            self._check(count, deadline)
            with closing(self.ask(choice)) as reply:
                yield from voice.hear(reply.events())
                response = reply.response
            if not response.calls or voice.handed or response.stop in CUT:
                yield from voice.settle(last=True)
                yield Finished(response.stop or "end", response.usage, response.stop_sequence, response.vendor)
                return
            yield from voice.settle(last=False)
            count, choice = count + 1, _after_first(choice)
            self._check_cap(count, response)
            self._settle(response, deadline)

    def _check(self, count: int, deadline: float | None) -> None:
        self.run.scope.check()
        if count >= self.max_rounds:
            raise ToolError(f"`max_rounds={self.max_rounds}`: an earlier attempt had {count}; allow more rounds")
        if deadline is not None and time.monotonic() >= deadline:
            raise ToolError(f"`timeout={self.timeout}` seconds are over after {count} rounds of tool calls")

    def _check_cap(self, count: int, response: Response) -> None:
        if count >= self.max_rounds:
            names = ", ".join(sorted({f"`{call.name}`" for call in response.calls}))
            raise ToolError(
                f"`max_rounds={self.max_rounds}`: the model still calls {names} in the last round; allow more rounds, "
                "or tell the model when to stop"
            )

    def _settle(self, response: Response, deadline: float | None) -> None:
        """Runs a round's calls, and puts the calls and the results on the conversation and on record."""
        # as they came, thinking and all: a provider refuses a round whose thinking was changed
        parts = tuple(part for part in response.parts if not (isinstance(part, Text) and not part.text))
        messages = (Message("assistant", parts), answer(response.calls, self.tools, self.run, deadline))
        self.run.rounds.settled(self.id, messages)
        for message in messages:
            self.add(message)

    def is_theirs(self, call: ToolCall) -> bool:
        """Whether somebody else runs a call."""
        return call.name in self.theirs


def _after_first(choice: ToolChoice) -> ToolChoice:
    """A forced choice holds for the first round: a model that must call can never answer."""
    return "auto" if choice == "any" or isinstance(choice, ForcedTool) else choice


class _Voice:
    """Makes one answer of the rounds' answers.

    What comes after a round's first call is held back until it is known whose the calls are.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._index = -1
        self._started = False
        self._text = False
        self._in_text = False
        self._between = ""
        self._held: list[Event] = []
        self._holding = False
        self.handed = False
        """Whether the round's calls are part of the answer."""

    def hear(self, events: Iterable[Event]) -> Iterator[Event]:
        """What can be told of a round as it comes."""
        self._holding, self._between = not self._loop.aloud, BETWEEN if self._text else ""
        for event in events:
            if isinstance(event, Started):
                if not self._started:
                    self._started = True
                    yield event
                continue
            if isinstance(event, Finished):
                continue
            if isinstance(event, Opened) and isinstance(event.part, ToolCall):
                self._holding = True
                self.handed = self.handed or self._loop.is_theirs(event.part)
            self._held.append(event)
            if not self._holding or (self.handed and self._loop.aloud):
                yield from self._flush(calls=self.handed)

    def settle(self, *, last: bool) -> Iterator[Event]:
        """What was held back of a round, now that it is over."""
        if last or self._loop.aloud:
            yield from self._flush(calls=self.handed)
        self._held.clear()

    def _flush(self, *, calls: bool) -> Iterator[Event]:
        held, self._held = self._held, []
        skipping = False
        for event in held:
            if isinstance(event, Opened):
                skipping = isinstance(event.part, ToolCall) and not calls
            if not skipping:
                yield self._numbered(event)

    def _numbered(self, event: Event) -> Event:
        match event:
            case Opened():
                self._index += 1
                self._in_text = isinstance(event.part, Text)
                return replace(event, index=self._index)
            case Delta() if self._in_text:
                between, self._between, self._text = self._between, "", True
                return Delta(self._index, between + event.text)
            case Delta() | Closed():
                return replace(event, index=self._index)
            case _:
                return event
