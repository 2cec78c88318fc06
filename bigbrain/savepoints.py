"""What a durable step has put by, so that its next attempt does not do it again.

A step is the smallest thing that is committed; inside one, the rounds of its tool loops
and the flows of its groups' members are put by as they end. All of it is forgotten when
the step is committed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
import redis
from msgspec.structs import replace

from bigbrain.budgets import Spent
from bigbrain.engine.records import Deferred
from bigbrain.errors import BrainChanged, BrainError
from bigbrain.messages import Message
from bigbrain.states import VERSION, RunState, unreadable

logger = logging.getLogger(__name__)


class Bill(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was spent by a moment: in the whole run, in this attempt of the step, and under each budget of a flow.

    Each is a sum since the beginning of what it is about, so the last bill of an attempt says all.
    """

    attempt: int
    account: Spent = Spent()
    own: Spent = Spent()
    budgets: dict[str, Spent] = {}


class Saved(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="version", tag=VERSION):
    """One line that was put by: a round of a `loop`, or, without one, a flow that ended with a selection, or a bill."""

    place: str
    messages: tuple[Message, ...]
    loop: str = ""
    selected: str | None = None
    bill: Bill | None = None
    deferred: tuple[Deferred, ...] = ()
    responded: bool = False


_saved = msgspec.json.Decoder(Saved)

BILL = msgspec.json.encode(Saved("", (), bill=Bill(0))).partition(b'{"attempt"')[0]
"""How the line of a bill begins, and no other."""


def read_bills(lines: Iterable[bytes]) -> dict[int, Bill]:
    """The last bill of each attempt, of lines that may hold anything else as well."""
    bills = (_saved.decode(line).bill for line in lines if line.startswith(BILL))
    return {bill.attempt: bill for bill in bills if bill is not None}


def billed(state: RunState, bills: Iterable[Bill]) -> RunState:
    """The state of a run with what attempts of its next step are known to have spent, though they were lost."""
    for bill in bills:
        spent = {key: one.later(state.spent.get(key, Spent())) for key, one in bill.budgets.items()}
        state = replace(state, account=state.account.later(bill.account), spent={**state.spent, **spent})
    return state


def _read(line: bytes) -> Saved:
    try:
        return _saved.decode(line)
    except msgspec.MsgspecError as exc:
        raise BrainChanged(unreadable(line, exc)) from exc


class Savepoints:
    """The savepoints of one step; may be used by the threads of a group."""

    def __init__(self, lines: Iterable[bytes] = (), save: Callable[[bytes], None] | None = None) -> None:
        """lines: what earlier attempts put by. save: keeps a line; None for a step that does not run again.

        Raises `BrainChanged` when another version wrote the lines.
        """
        saved = [_read(line) for line in lines]
        self.flows = {one.place: one for one in saved if not one.loop and one.bill is None}
        self.bills = {one.bill.attempt: one.bill for one in saved if one.bill is not None}
        """The last bill of each earlier attempt that had one."""
        self._rounds = [one for one in saved if one.loop]
        self._save = save
        self._lock = threading.Lock()

    def flow_ended(
        self,
        path: str,
        messages: Sequence[Message],
        selected: str | None,
        deferred: tuple[Deferred, ...] = (),
        *,
        responded: bool = False,
    ) -> None:
        """Puts by what a flow inside a group made, what it put off, and whether a group in it came to a `respond`."""
        self._put(Saved(path, tuple(messages), selected=selected, deferred=deferred, responded=responded))

    def spent(self, sum_up: Callable[[], Bill]) -> None:
        """Puts by what was spent so far; `sum_up` tells. Raises nothing: whoever has lost the step hears so elsewhere."""
        if self._save is None:
            return
        with self._lock:
            try:
                self._save(msgspec.json.encode(Saved("", (), bill=sum_up())))
            except BrainError:
                pass
            except redis.RedisError as exc:
                logger.warning("what a model call cost could not be put by: %s", exc)

    def rounds(self, place: str) -> PlaceRounds:
        """The rounds of the tool loops of one place."""
        return PlaceRounds(self, place)

    def known_rounds(self, place: str, loop: str) -> tuple[tuple[Message, ...], ...]:
        """The rounds that were put by there, in order."""
        return tuple(one.messages for one in self._rounds if (one.place, one.loop) == (place, loop))

    def put_round(self, place: str, loop: str, messages: Sequence[Message]) -> None:
        """Puts one round by."""
        self._put(Saved(place, tuple(messages), loop))

    def _put(self, saved: Saved) -> None:
        if self._save is not None:
            with self._lock:
                self._save(msgspec.json.encode(saved))


@dataclass(frozen=True)
class PlaceRounds:
    """The rounds of one place, as `bigbrain.run.Rounds` wants them."""

    savepoints: Savepoints
    place: str

    def known(self, loop: str) -> Sequence[Sequence[Message]]:
        """The rounds that an earlier attempt settled."""
        return self.savepoints.known_rounds(self.place, loop)

    def settled(self, loop: str, messages: Sequence[Message]) -> None:
        """Puts a round by. Raises what the step's scope was cancelled with, when the step is lost."""
        self.savepoints.put_round(self.place, loop, messages)
