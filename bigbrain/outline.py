"""A run as a tree: the structure of its flow, and what has become of each part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, assert_never

import msgspec

from bigbrain.compiling import Compiled, Members
from bigbrain.engine.plan import Fork, Item, Mark, Step
from bigbrain.messages import Usage
from bigbrain.progress import Attempt


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a run; a field that says nothing is left out. Times in ms since 1970.

    A step's `status` is the result of its last attempt, `kept` when an attempt before the last had done it already, `pending`
    when it may yet come, `skipped` when the run is over without it.
    """

    kind: Literal["step", "select", "member", "respond"]
    path: str = ""
    name: str = ""
    """The ids around it, joined by slashes; of a member, its own."""
    agents: tuple[str, ...] = ()
    status: str = ""
    attempts: int = 0
    begun: int | None = None
    """When its first attempt began."""
    ended: int | None = None
    """When its last one did."""
    usage: Usage = Usage()
    calls: int = 0
    error: str | None = None
    """The code of what its last attempt failed with."""
    inside: tuple[Node, ...] = ()


def tree_of(compiled: Compiled | None, attempts: Sequence[Attempt], *, over: bool) -> tuple[Node, ...]:
    """The tree of a run with these attempts, those of its groups' members among them.

    compiled: its flow, if this process knows it as the run does; else the steps stand side by side, as they came.
    """
    outline = _Outline(attempts, "skipped" if over else "pending")
    if compiled is None:
        return tuple(outline.step(Step(path, "")) for path in outline.attempts)
    return tuple(outline.items(compiled.plan.items, compiled))


class _Outline:
    def __init__(self, attempts: Iterable[Attempt], without: str) -> None:
        """without: the status of a step without an attempt."""
        self.attempts: dict[str, list[Attempt]] = {}
        for one in attempts:
            self.attempts.setdefault(one.path, []).append(one)
        played = [one for steps in self.attempts.values() for one in steps if one.inside]
        self._played: Mapping[str, Attempt] = {
            piece.path: Attempt(
                piece.path,
                one.attempt,
                "kept" if piece.kept else piece.error or "done",
                piece.flow,
                begun=piece.begun,
                ended=piece.ended,
                usage=piece.usage,
            )
            for one in played
            for piece in one.inside
        }
        self._without = without

    def items(self, items: Iterable[Item], compiled: Compiled) -> Iterator[Node]:
        for item in items:
            match item:
                case Step():
                    yield self.step(item, compiled)
                case Mark():
                    yield Node("respond", item.path)
                case Fork():
                    members = (
                        Node("member", name=name, inside=tuple(self.items(member, compiled)))
                        for name, member in item.members.items()
                    )
                    yield Node("select", item.path, item.flow, inside=tuple(members))
                case _:
                    assert_never(item)

    def step(self, step: Step, compiled: Compiled | None = None) -> Node:
        attempts = self.attempts.get(step.path) or [one for one in (self._played.get(step.path),) if one]
        last = attempts[-1] if attempts else Attempt(step.path, 0, self._without)
        failed = last.error.code if last.error else None
        return Node(
            "step",
            step.path,
            step.flow or last.flow,
            step.agents or last.agents,
            last.result,
            len(attempts),
            next((one.begun for one in attempts if one.begun is not None), None),
            last.ended,
            sum((one.usage for one in attempts), Usage()),
            sum(one.calls for one in attempts),
            failed,
            tuple(self._inside(step.path, compiled)) if compiled else (),
        )

    def _inside(self, path: str, compiled: Compiled) -> Iterator[Node]:
        work = compiled.bindings[path].work
        if isinstance(work, Members):
            for member in work.members:
                yield Node("member", name=member.name, inside=tuple(self.items(member.items, compiled)))
