"""How far a run has come: every attempt of its steps, with times, costs and errors.

`Done` is what a run's list of steps keeps of an attempt that ended; `Attempt` what people are shown, of those that
ended, of those that were lost with their worker and of the one that is under way. Times are ms since 1970 by the
clock of Redis, durations come from the worker's clock, which never jumps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from bigbrain.budgets import Spent
from bigbrain.engine.records import END, RunRecord
from bigbrain.messages import Usage
from bigbrain.savepoints import Bill, read_bills

OVER = ("done", "failed", "cancelled")


class Fault(msgspec.Struct, frozen=True):
    """What an attempt failed with; `detail` is for the author and for nobody else."""

    code: str
    message: str
    detail: str = ""


class Lost(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of an attempt whose worker was lost: what the calls that had ended by then cost."""

    attempt: int
    spent: Spent = Spent()


class Piece(msgspec.Struct, frozen=True, omit_defaults=True):
    """A flow that was played inside a step, a group's member or a part of one; times in ms, `after` the step's beginning."""

    path: str
    flow: str
    after: int
    took: int
    usage: Usage = Usage()
    error: str = ""
    """The code of what it failed with."""
    kept: bool = False
    """Whether an earlier attempt had done it, and it was not done again."""


class Done(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attempt that ended, as the list of steps keeps it; `result` is `done` or the code of its error."""

    path: str
    attempt: int
    result: str
    flow: str = ""
    agents: tuple[str, ...] = ()
    took: int = 0
    """How long its work took, in ms."""
    waited: int = 0
    """How long it was due before a worker had it, in ms."""
    usage: Usage = Usage()
    calls: int = 0
    error: Fault | None = None
    inside: tuple[Piece, ...] = ()
    lapses: int = 0
    """How many attempts before it were lost with their worker."""
    lost: tuple[Lost, ...] = ()
    """Those of them of which something is known."""
    members: int = 0
    """How many runs of their own the members of its spread group were."""
    process: str = ""
    """Whose it was, of an attempt that was lost: machine, number of the process, and what no other has."""
    ended: int = 0
    """When it was committed; Redis puts it in."""


class Inside(msgspec.Struct, frozen=True, omit_defaults=True):
    """A flow that was played inside a step, as it is shown."""

    path: str
    flow: str
    begun: int
    ended: int
    usage: Usage = Usage()
    error: str | None = None
    kept: bool = False
    """Whether an earlier attempt had done it, and it was not done again."""


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of a step as it is shown.

    `result`: `queued`, `running`, `done`, `lost` with its worker, or the code of its error. Of a lost one, `usage` is what
    the model calls cost that had ended and were put by: a durable flow's only, and never what was under way.
    """

    path: str
    attempt: int
    result: str
    flow: str = ""
    agents: tuple[str, ...] = ()
    begun: int | None = None
    ended: int | None = None
    waited: int | None = None
    usage: Usage = Usage()
    calls: int = 0
    error: Fault | None = None
    inside: tuple[Inside, ...] = ()
    members: int = 0


def attempts_of(record: RunRecord) -> list[Attempt]:
    """All attempts of a run's steps, in the order in which they ended; the one under way comes last."""
    bills = read_bills(record.saved)
    done = [msgspec.convert(step, Done) for step in record.steps]
    known = {(one.path, lost.attempt): lost.spent for one in done for lost in one.lost}
    known |= {(record.cursor, number): bill.own for number, bill in bills.items()}
    out = [_billed(_ended(one), known) for one in done]
    if out and out[-1].result == "lost" and record.status == "failed":
        # the one that the run was given up for
        out[-1] = replace(out[-1], error=_fault(record))
    listed = {(one.path, one.attempt) for one in done}
    return [*out, *_under_way(record, bills, listed)]


def spent_of(attempts: Iterable[Attempt]) -> Spent:
    """What a run has cost so far in all its attempts, with what is known of those that were lost."""
    attempts = tuple(attempts)
    return Spent(sum((one.usage for one in attempts), Usage()), sum(one.calls for one in attempts))


def _ended(one: Done) -> Attempt:
    begun = one.ended - one.took if one.ended else None
    inside = tuple(
        Inside(
            piece.path,
            piece.flow,
            (begun or 0) + piece.after,
            (begun or 0) + piece.after + piece.took,
            piece.usage,
            piece.error or None,
            piece.kept,
        )
        for piece in one.inside
    )
    return Attempt(
        one.path,
        one.attempt,
        one.result,
        one.flow,
        one.agents,
        begun,
        one.ended or None,
        one.waited,
        one.usage,
        one.calls,
        one.error,
        inside,
        one.members,
    )


def _billed(one: Attempt, known: dict[tuple[str, int], Spent]) -> Attempt:
    """An attempt with what is known of its cost, if it was lost: it could not tell itself."""
    spent = known.get((one.path, one.attempt), Spent())
    return replace(one, usage=spent.usage, calls=spent.calls) if one.result == "lost" else one


def _under_way(record: RunRecord, bills: dict[int, Bill], listed: set[tuple[str, int]]) -> Iterator[Attempt]:
    """The attempt of the step that is next, if it is not listed: it is under way, or nobody was left to list it."""
    path, attempt = record.cursor, record.attempt
    if path == END or (path, attempt) in listed:
        return
    spent = bills[attempt].own if attempt in bills else Spent()
    now = Attempt(path, attempt, "", usage=spent.usage, calls=spent.calls)
    if record.status not in OVER:
        begun = record.sent + record.waited if record.claimed else None
        result = "running" if record.claimed else "queued"
        yield replace(now, result=result, begun=begun, waited=record.waited if record.claimed else None)
    elif record.status == "failed" and (fault := _fault(record)) is not None:
        yield replace(now, result=fault.code, ended=record.ended, error=fault)


def _fault(record: RunRecord) -> Fault | None:
    return msgspec.convert(record.error, Fault) if isinstance(record.error, dict) else None
