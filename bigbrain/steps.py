"""A step of a run while it is carried out: opened from what its run has on record, recorded when it ends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter

import msgspec

from bigbrain.budgets import Purse, Spent
from bigbrain.engine.records import Claim
from bigbrain.engine.writer import Tape
from bigbrain.errors import BrainChanged
from bigbrain.messages import Message, Request
from bigbrain.progress import Done, Fault, Lost, Piece
from bigbrain.savepoints import Bill, Savepoints, billed
from bigbrain.scope import Scope
from bigbrain.states import RunState, read_state
from bigbrain.trace import Trail

_message = msgspec.json.Decoder(Message)
_request = msgspec.json.Decoder(Request)


@dataclass
class OpenStep:
    """One step while it is carried out."""

    claim: Claim
    state: RunState
    request: Request
    messages: tuple[Message, ...]
    tape: Tape
    scope: Scope
    purse: Purse
    """The whole run's."""
    own: Purse
    """This attempt's, inside the run's."""
    trail: Trail
    savepoints: Savepoints
    names: tuple[str, tuple[str, ...]] = ("", ())
    """What people call it: its flow and its agents."""
    began: float = field(default_factory=perf_counter)
    pieces: list[Piece] = field(default_factory=list)
    """The flows that were played inside this step."""

    def bill(self, budgets: dict[str, Spent]) -> Bill:
        """What was spent so far; budgets: under each budget of a flow."""
        return Bill(self.claim.attempt, self.purse.account, self.own.account, budgets)


def opened(step: OpenStep, *, durable: bool) -> OpenStep:
    """The step with what its run has on record. Raises `BrainChanged` when another version wrote it."""
    claim = step.claim
    savepoints = Savepoints(claim.saved, step.tape.save if durable else None)
    state = billed(read_state(claim.state), savepoints.bills.values())
    try:
        return replace(
            step,
            state=state,
            savepoints=savepoints,
            purse=(purse := Purse(step.purse.budget, before=state.account)),
            own=Purse(around=purse),
            request=_request.decode(claim.request),
            messages=tuple(_message.decode(line) for line in claim.messages),
        )
    except msgspec.MsgspecError as exc:
        raise BrainChanged(f"the record of run {claim.run_id} cannot be read: {exc}") from exc


def recorded(step: OpenStep, result: str, failed: bytes = b"") -> dict[str, object]:
    """What the list of steps keeps of this attempt; failed: its error, as records keep it."""
    claim, began = step.claim, step.began
    lost = tuple(Lost(number, bill.own) for number, bill in sorted(step.savepoints.bills.items()))
    done = Done(
        claim.path,
        claim.attempt,
        result,
        *step.names,
        took=round((perf_counter() - began) * 1000),
        waited=claim.waited,
        usage=step.own.spent,
        calls=step.own.calls,
        error=msgspec.json.decode(failed, type=Fault) if failed else None,
        inside=tuple(step.pieces),
        lapses=claim.lapses,
        lost=lost,
        members=len(claim.members),
    )
    # its usage is there in any case, for those who count
    return {**msgspec.to_builtins(done), "usage": msgspec.to_builtins(done.usage)}
