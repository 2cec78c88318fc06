"""One round of tool calls: the functions run at once, each in a thread, and every call gets a result.

Whatever becomes of a call is told to the model as its result: what the function gives, what
it raises, that it takes too long, that there is no such tool. Only a run that is stopped
breaks a round off. A function cannot be stopped from outside: one that takes too long is
left to itself, and what it comes to is forgotten.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Thread
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from bigbrain.errors import ToolError
from bigbrain.messages import JSON, File, Image, Message, Text, ToolCall, ToolResult
from bigbrain.run import Run
from bigbrain.tools import LONGEST, Tool

MOST_AT_ONCE = 16
"""Functions of one round that run at the same time; the others wait for their turn."""

Tools: TypeAlias = Mapping[str, Tool[..., object]]
"""Tools that have a function, by name."""


def answer(calls: Sequence[ToolCall], tools: Tools, run: Run, deadline: float | None = None) -> Message:
    """Runs the calls and gives one message with all results, in the order of the calls.

    A call that is there twice, alike even in its id, is run once and answered twice: the model has
    said the same thing again. deadline: when all of it must be over, by `time.monotonic`.
    Raises what the run's scope is cancelled with.
    """
    works = {_key(call): _Work(call, tools, deadline) for call in calls}
    _carry_out(list(works.values()), run)
    return Message("tool", tuple(works[_key(call)].result for call in calls))


def _key(call: ToolCall) -> tuple[str, str, str]:
    return call.id, call.name, call.arguments


@dataclass
class _Work:
    """One call while it is run; `until` is when the model is told that it takes too long."""

    call: ToolCall
    tools: Tools
    deadline: float | None
    result: ToolResult = field(init=False)
    future: Future[_Outcome] = field(default_factory=Future)
    begun: float = 0.0
    until: float = 0.0

    def start(self) -> None:
        tool = self.tools.get(self.call.name)
        self.begun = time.monotonic()
        self.until = self.begun + (tool.timeout if tool else 0)
        if self.deadline is not None:
            self.until = min(self.until, self.deadline)
        if tool is None:
            self.future.set_result(_unknown(self.call, self.tools))
            return
        # daemonic, so that a function which never ends does not keep the process
        Thread(target=copy_context().run, args=(self._do, tool), name=f"tool-{tool.name}", daemon=True).start()

    def _do(self, tool: Tool[..., object]) -> None:
        try:
            self.future.set_result(_outcome(tool, self.call))
        except BaseException as exc:
            self.future.set_exception(exc)

    def settle(self, outcome: _Outcome, run: Run) -> None:
        self.result = outcome.result
        error = {"error": outcome.error} if outcome.error else {}
        run.trail.tell("tool.call", tool=self.call.name, seconds=time.monotonic() - self.begun, **error)


@dataclass(frozen=True)
class _Outcome:
    result: ToolResult
    error: str = ""


def _carry_out(works: list[_Work], run: Run) -> None:
    """Runs all, some at a time, and settles each."""
    stopped: Future[None] = Future()
    waiting, running = deque(works), dict[Future[_Outcome], _Work]()
    with run.scope.guard(lambda: stopped.set_result(None)):
        while waiting or running:
            while waiting and len(running) < MOST_AT_ONCE:
                run.scope.check()
                work = waiting.popleft()
                work.start()
                running[work.future] = work
            first = min(work.until for work in running.values())
            either: tuple[Future[JSON], ...] = (*running, stopped)
            wait(either, max(0.0, first - time.monotonic()), FIRST_COMPLETED)
            run.scope.check()
            for future, work in tuple(running.items()):
                if future.done():
                    work.settle(future.result(), run)
                elif time.monotonic() >= work.until:
                    work.settle(_too_long(work), run)
                else:
                    continue
                del running[future]


def _outcome(tool: Tool[..., object], call: ToolCall) -> _Outcome:
    try:
        value = tool.run(call)
        if inspect.isawaitable(value):
            value = asyncio.run(_within(value, tool.timeout))
        return _Outcome(ToolResult(call.id, write_result(value, tool.longest)))
    # SystemExit and a cancelled task are a function's failures like any other: the worker goes on
    except (Exception, SystemExit, asyncio.CancelledError) as exc:
        return _failed(call, f"{type(exc).__name__}: {exc}".removesuffix(": "), type(exc).__name__, tool.longest)


async def _within(value: Awaitable[object], seconds: float) -> object:
    return await asyncio.wait_for(value, seconds)


def _failed(call: ToolCall, text: str, error: str, longest: int = LONGEST) -> _Outcome:
    return _Outcome(ToolResult(call.id, (_cut(text, longest),), is_error=True), error)


def _unknown(call: ToolCall, tools: Tools) -> _Outcome:
    known = ", ".join(f"`{name}`" for name in tools) or "none"
    return _failed(call, f"there is no tool `{call.name}`; the tools are: {known}", ToolError.code)


def _too_long(work: _Work) -> _Outcome:
    seconds = work.until - work.begun
    return _failed(work.call, f"`{work.call.name}` took longer than {seconds:.3g} seconds", "timeout")


def write_result(value: object, longest: int = LONGEST) -> tuple[Text | Image | File, ...]:
    """What a function gave as the parts of a result: text and parts as they are, anything else as its JSON text.

    longest: characters of text; the rest is cut off with a mark that says how much.
    Raises `ToolError` when the value has no JSON.
    """
    match value:
        case str():
            return (_cut(value, longest),) if value else ()
        case Text() | Image() | File():
            return (replace(value, text=_cut(value.text, longest).text) if isinstance(value, Text) else value,)
        case [Text() | Image() | File(), *_]:
            return tuple(part for one in value for part in write_result(one, longest))
        case _:
            return (_cut(_json(value), longest),)


def _cut(text: str, longest: int) -> Text:
    # half a character (a lone surrogate) cannot be sent
    text = text.encode("utf-8", "replace").decode()
    more = len(text) - longest
    return Text(f"{text[:longest]}… [cut: {more} characters more]" if more > 0 else text)


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except (TypeError, ValueError, RecursionError) as exc:
        raise ToolError(
            f"a tool gave a `{type(value).__name__}`, which has no JSON ({exc}); give text or data"
        ) from exc


def _plain(value: JSON) -> JSON:
    """A pydantic model as plain data."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a `{type(value).__name__}` in it has none")
    return dump(mode="json")
