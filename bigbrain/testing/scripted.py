"""A model that answers what a test says, one answer after the other, and remembers what it was asked."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import TypeAlias

from bigbrain.errors import ModelBroke
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started, replay_part
from bigbrain.messages import Request, Stop, Text, Thinking, ToolCall, Usage
from bigbrain.scope import Scope

_WORDS = re.compile(r"\s*\S+|\s+")


@dataclass(frozen=True)
class Says:
    """An answer with all that one may have; `text` comes word by word, `chunks` in its place come as they are."""

    text: str = ""
    _: KW_ONLY
    chunks: Iterable[str] = ()
    """The text in pieces, taken one by one: a generator may wait between them for whatever the test does."""
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    """What the model thinks before it speaks."""
    usage: Usage = field(default_factory=Usage)
    stop: Stop | None = None
    """Why the answer ends; by default `calls` when there are some, else `end`."""
    delay: float = 0.0
    """Seconds before each piece of text; whoever cancels the call ends the wait at once."""


@dataclass(frozen=True)
class Breaks:
    """An answer that breaks off with an error: after it has begun, and after the text `after`, if any."""

    after: str = ""
    error: Exception = field(default_factory=ModelBroke)


Script: TypeAlias = str | Iterable[str] | Says | Breaks | Exception | type[Exception] | Callable[[Request], "Script"]
"""What a scripted model may be told to do: say a text or pieces of text, `Says`, break off with `Breaks`, fail
with an error before anything of an answer came, or whatever a function of the request gives."""


class ScriptedModel:
    """Gives one answer after the other and keeps what it was asked; for any number of threads.

    It goes wherever a model goes. Who asks first gets the first answer.

    >>> from bigbrain import Chat
    >>> from bigbrain.errors import ModelBusy
    >>> model = ScriptedModel("Good evening.", ModelBusy, lambda request: request.messages[-1].text.upper())
    >>> Chat(model).ask("hello").text
    'Good evening.'
    >>> Chat(model).ask("hello?").text
    Traceback (most recent call last):
    bigbrain.errors.ModelBusy: Raised when a model's server is over its limits or overloaded.
    >>> Chat(model).ask("are you there?").text
    'ARE YOU THERE?'
    >>> [request.messages[-1].text for request in model.asked]
    ['hello', 'hello?', 'are you there?']
    """

    def __init__(self, *answers: Script, name: str = "scripted", repeat: bool = False) -> None:
        """answers: in the order of the questions. repeat: the last one is given again to every further question;
        without it, a question too many fails with an `AssertionError`.
        """
        self.name = name
        self._answers = answers
        self._repeat = repeat
        self._lock = threading.Lock()
        self._asked: list[Request] = []
        self._closed = 0

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r})"

    @property
    def asked(self) -> list[Request]:
        """What was asked so far, in order."""
        with self._lock:
            return list(self._asked)

    @property
    def last(self) -> Request:
        """What was asked last. Raises `AssertionError` when nothing was."""
        asked = self.asked
        if not asked:
            raise AssertionError(f"`{self.name}` was not asked anything")
        return asked[-1]

    @property
    def closed(self) -> int:
        """How many answers were not wanted to their end: closed or cancelled while they came."""
        return self._closed

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        """The next answer; see `bigbrain.models.Asks`."""
        scope.check()
        number, answer = self._next(request)
        complete = False
        try:
            for event in self._events(number, request, answer, scope):
                complete = isinstance(event, Finished)
                yield event
        except BaseException as exc:
            if not complete and (scope.cancelled or isinstance(exc, GeneratorExit)):
                with self._lock:
                    self._closed += 1
            raise

    def _next(self, request: Request) -> tuple[int, Script]:
        with self._lock:
            self._asked.append(request)
            number = len(self._asked)
        if number <= len(self._answers):
            return number, self._answers[number - 1]
        if self._repeat and self._answers:
            return number, self._answers[-1]
        raise AssertionError(
            f"`{self.name}` has {len(self._answers)} answers and was asked {number} times: "
            "give it another answer, or `repeat=True`"
        )

    def _events(self, number: int, request: Request, answer: Script, scope: Scope) -> Iterator[Event]:
        # functions may give functions, but not for ever
        for _ in range(10):
            if isinstance(answer, type) or not callable(answer):
                break
            answer = answer(request)
        if isinstance(answer, Exception) or (isinstance(answer, type) and issubclass(answer, Exception)):
            raise answer
        yield Started(f"{self.name}-{number}", self.name)
        match answer:
            case str():
                yield from _spoken(Says(answer), scope)
            case Says():
                yield from _spoken(answer, scope)
            case Breaks(after, error):
                if after:
                    yield Opened(0, Text())
                    yield from _pieces(0, _WORDS.findall(after), 0.0, scope)
                raise error
            case Iterable():
                yield from _spoken(Says(chunks=answer), scope)
            case _:
                raise TypeError(
                    f"`{self.name}` cannot answer {answer!r}: give a text, `Says(…)`, `Breaks(…)` or an error"
                )


def _spoken(says: Says, scope: Scope) -> Iterator[Event]:
    index = 0
    for part, pieces in (
        (Thinking(), _WORDS.findall(says.thinking)),
        (Text(), says.chunks or _WORDS.findall(says.text)),
    ):
        opened = False
        for event in _pieces(index, pieces, says.delay, scope):
            if not opened:
                yield Opened(index, part)
                opened = True
            yield event
        if opened:
            yield Closed(index)
            index += 1
    for number, call in enumerate(says.calls, index):
        scope.check()
        yield from replay_part(number, call)
    scope.check()
    yield Finished(says.stop or ("calls" if says.calls else "end"), says.usage)


def _pieces(index: int, pieces: Iterable[str], delay: float, scope: Scope) -> Iterator[Delta]:
    for piece in pieces:
        scope.wait(delay) if delay else scope.check()
        # an empty delta is none
        if piece:
            yield Delta(index, piece)
