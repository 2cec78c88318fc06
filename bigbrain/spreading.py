"""A group whose members are runs of their own: which runs these are, and what they came to.

The group's step starts them and lets go of its worker; it runs anew when the last has
ended, or the first has failed. A member's run gives nothing to the client: its messages,
its selection and its usage are the group's to take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bigbrain.compiling import Members
from bigbrain.engine.plan import Plan
from bigbrain.engine.records import Claim, MemberEnd, NewRun, Terms
from bigbrain.errors import BrainError, RunInterrupted, by_code
from bigbrain.events import Started
from bigbrain.messages import Message
from bigbrain.performing import Played, merged
from bigbrain.states import RunState

_state = msgspec.json.Decoder(RunState)
_message = msgspec.json.Decoder(Message)


def runs_of(
    group: Members, claim: Claim, state: RunState, messages: Sequence[Message], *, durable: bool
) -> tuple[NewRun, ...]:
    """The members' runs, under ids that are the same each time; `messages`: what the run has made before them."""
    base = (*state.base, *messages)
    begin = RunState(answered=True, base=base, selected=state.selected, reached=state.reached)
    return tuple(
        NewRun(
            id=(id := f"{claim.run_id}.{claim.path}.{number}"),
            flow=claim.flow,
            plan=claim.plan,
            cursor=Plan(member.items).first(state.selected).path,
            first=Started(id, claim.flow),
            request=claim.request,
            state=msgspec.json.encode(begin),
            terms=Terms(durable=durable, lasting=durable),
            parent=claim.run_id,
        )
        for number, member in enumerate(group.members)
    )


def under_way(ends: Sequence[MemberEnd]) -> bool:
    """Whether the group has to wait, because members are under way and none has failed."""
    over = [end.status == "done" for end in ends]
    return not ends or (not all(over) and not any(_failed(end) for end in ends))


def played(ends: Sequence[MemberEnd], before: RunState, spend: Callable[[RunState], None]) -> Played:
    """What the members came to together, in their order; `spend` is told of each one's last state.

    Raises the error of the first that failed.
    """
    for end in ends:
        if _failed(end):
            raise _error(end)
    out = []
    for end in ends:
        state = _state.decode(end.state)
        spend(state)
        selected = state.selected if state.selected != before.selected else None
        made = tuple(_message.decode(line) for line in end.messages)
        out.append(Played(made, selected, responded=state.responded))
    return merged(out)


def _failed(end: MemberEnd) -> bool:
    return end.status in ("failed", "cancelled")


def _error(end: MemberEnd) -> BrainError:
    if not end.error:
        return RunInterrupted("a member of the group was stopped")
    told = msgspec.json.decode(end.error)
    return by_code(told["code"], told["detail"])
