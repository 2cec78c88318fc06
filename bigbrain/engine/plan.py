"""What a brain's tree comes down to: steps with fixed paths, and the one way from each to the next.

A plan is a sequence of `Step`s (work to do), `Mark`s (a stage of the answer ends
here) and `Fork`s (one of several sequences is taken). Paths are positions, such as
`2` or `2/house/0`: the same tree gives the same paths in every process. Where a run
goes from a step is a function of the plan, the path and the choice made; a queue's
message, a chain and a recovery are all projections of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias, assert_never

import msgspec

from bigbrain.engine.records import END

SEAM = 8
"""Steps after which what is ahead is named anew."""


class Step(msgspec.Struct, frozen=True, tag=True):
    """A piece of work: `flow` and `agents` are names for people, `shape` what the fingerprint keeps of it.

    `cpu` sends it to the workers for work that keeps a processor busy. `mute`: it adds nothing to the conversation.
    """

    path: str
    flow: str
    agents: tuple[str, ...] = ()
    shape: str = ""
    durable: bool = False
    cpu: bool = False
    mute: bool = False


class Mark(msgspec.Struct, frozen=True, tag=True):
    """The end of a stage: what was produced since the last one goes to the client."""

    path: str


class Fork(msgspec.Struct, frozen=True, tag=True):
    """Several sequences under their ids, of which the run takes the chosen one, `default` without a choice, or none."""

    path: str
    flow: str
    members: dict[str, Sequence]
    default: str = ""


Item: TypeAlias = Step | Mark | Fork
Sequence: TypeAlias = tuple[Item, ...]


class Way(msgspec.Struct, frozen=True):
    """Where a run goes: `path` of the next step or `END`, what it passes on the way.

    `marks`: how many stages end. `used`: the choice was taken. `entered`: the members that were entered
    on the way, by choice or default; `skipped`: the forks that nothing was chosen for. `more`: whether
    another stage may yet end; `speech`: whether a step may yet add to the conversation.
    """

    path: str
    marks: int = 0
    used: bool = False
    entered: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    more: bool = False
    speech: bool = False


class UnknownChoice(Exception):
    """Raised when a fork has no member of the chosen id."""

    def __init__(self, fork: Fork, choice: str) -> None:
        known = ", ".join(f"`{name}`" for name in fork.members)
        super().__init__(f"`{choice}` is no member of `{fork.flow or fork.path}`; its members are {known}")


class Plan(msgspec.Struct, frozen=True):
    """A whole plan."""

    items: Sequence

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change when the structure does: kinds, order, names, ids."""
        return hashlib.sha256(msgspec.json.encode(self.items)).hexdigest()[:16]

    def steps(self) -> Iterator[Step]:
        """All steps, in the order of the tree."""
        return steps_in(self.items)

    def step(self, path: str) -> Step:
        """The step at `path`. Raises `KeyError` when there is none."""
        for step in self.steps():
            if step.path == path:
                return step
        raise KeyError(path)

    @property
    def single(self) -> bool:
        """Whether there is only one step, so that a run is over with its commit and nothing is left to close."""
        return len(list(islice(self.steps(), 2))) == 1

    def first(self, choice: str | None = None) -> Way:
        """Where a run begins. Raises `UnknownChoice` when a fork that comes first has no such member."""
        return _go(self.items, (), choice)

    def after(self, path: str, choice: str | None = None) -> Way:
        """Where a run goes from the step at `path`.

        Raises `UnknownChoice` when the fork that comes next has no such member.
        """
        rest = _rest(self.items, path)
        if rest is None:
            raise KeyError(path)
        return _go((), rest, choice)

    def ahead(self, path: str) -> list[Step]:
        """The steps from `path` on that are sure to come: all, those up to the next fork, or up to the next seam.

        A seam is behind each `SEAM`th step of the tree. A queue's messages name what is ahead, each one again what the
        one before it named, so without seams they would grow with the square of the plan.

        Raises `KeyError` when there is no such step.
        """
        numbers = {step.path: number for number, step in enumerate(self.steps(), 1)}
        out = [self.step(path)]
        for item in self._later(path):
            match item:
                case Step():
                    if numbers[out[-1].path] % SEAM == 0:
                        break
                    out.append(item)
                case Mark():
                    pass
                case Fork():
                    break
                case _:
                    assert_never(item)
        return out

    def leads_on(self, path: str) -> bool:
        """Whether a step, or a choice of one, comes after the step at `path`."""
        return any(not isinstance(item, Mark) for item in self._later(path))

    def stage_ends_after(self, path: str) -> bool:
        """Whether a stage ends with the step at `path`, whatever is chosen."""
        return isinstance(next(self._later(path), None), Mark)

    def onward(self, path: str) -> Sequence:
        """Everything that may come from the step at `path` on, that step first."""
        return (self.step(path), *self._later(path))

    def marks_after(self, path: str) -> bool:
        """Whether a stage may yet end after the step at `path`."""
        return marks_in(tuple(self._later(path)))

    def speech_after(self, path: str) -> bool:
        """Whether a step after the one at `path` may yet add to the conversation."""
        return _speech_in(tuple(self._later(path)))

    def next_fork(self, path: str) -> Fork | None:
        """The fork that takes what the step at `path` chooses: the first one after it. None when there is none."""
        return next((item for item in self._later(path) if isinstance(item, Fork)), None)

    def _later(self, path: str) -> Iterator[Item]:
        for sequence in _rest(self.items, path) or ():
            yield from sequence


def steps_in(items: Sequence) -> Iterator[Step]:
    """All steps among these items, in the order of the tree."""
    for item in items:
        match item:
            case Step():
                yield item
            case Mark():
                pass
            case Fork():
                for member in item.members.values():
                    yield from steps_in(member)
            case _:
                assert_never(item)


def _rest(items: Sequence, path: str) -> tuple[Sequence, ...] | None:
    """What comes after `path`: the rests of the sequences around it, innermost first."""
    for index, item in enumerate(items):
        after = items[index + 1 :]
        if item.path == path:
            return (after,)
        if isinstance(item, Fork) and path.startswith(item.path + "/"):
            for member in item.members.values():
                inner = _rest(member, path)
                if inner is not None:
                    return (*inner, after)
    return None


def _go(items: Sequence, rest: tuple[Sequence, ...], choice: str | None) -> Way:
    marks, used = 0, False
    entered: list[str] = []
    skipped: list[str] = []
    todo = [*items, *(item for sequence in rest for item in sequence)]
    while todo:
        item = todo.pop(0)
        match item:
            case Step():
                ahead = (item, *todo)
                return Way(item.path, marks, used, tuple(entered), tuple(skipped), marks_in(ahead), _speech_in(ahead))
            case Mark():
                marks += 1
            case Fork():
                member = item.default if choice is None else choice
                if not member:
                    skipped.append(item.flow or item.path)
                    continue
                if member not in item.members:
                    raise UnknownChoice(item, member)
                todo = [*item.members[member], *todo]
                entered.append(member)
                choice, used = None, used or choice is not None
            case _:
                assert_never(item)
    return Way(END, marks, used, tuple(entered), tuple(skipped))


def _speech_in(items: Sequence) -> bool:
    return any(not step.mute for step in steps_in(items))


def marks_in(items: Sequence) -> bool:
    """Whether a stage may end in these items."""
    return any(
        isinstance(item, Mark) or (isinstance(item, Fork) and any(marks_in(member) for member in item.members.values()))
        for item in items
    )
