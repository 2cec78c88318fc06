"""What a run carries from step to step beside its messages."""

from __future__ import annotations

import msgspec

from bigbrain.answers import Given
from bigbrain.budgets import Spent
from bigbrain.errors import BrainChanged
from bigbrain.messages import Message

VERSION = 1
"""The version of what is kept of a run: its state, its messages and what its steps put by. Counted up when an older
version of this package could no longer read it rightly."""


class RunState(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="version", tag=VERSION):
    """The state of a run between two steps, with the version of what is kept.

    `told`: how many of its messages the client has got; `responded`: whether a stage has
    ended; `answered`: whether the answer is complete; `selected`: the choice that no Select
    has taken yet; `account`: what the
    whole run spent on models; `spent`: the same under each budget, by the path of its flow;
    `reached`: the checkpoints; `base`: for a member of a
    spread group, what was said before it; `quiet`: the answer is what stages deliver and nothing else, and is complete
    as soon as no stage can come any more.
    """

    given: Given = Given()
    told: int = 0
    responded: bool = False
    answered: bool = False
    account: Spent = Spent()
    selected: str | None = None
    spent: dict[str, Spent] = {}
    reached: tuple[str, ...] = ()
    base: tuple[Message, ...] = ()
    quiet: bool = False


class _Versioned(msgspec.Struct, frozen=True):
    version: int = VERSION


def read_state(state: bytes) -> RunState:
    """The state of a run. Raises `BrainChanged` when it cannot be read, because another version wrote it."""
    try:
        return _state.decode(state)
    except msgspec.MsgspecError as exc:
        raise BrainChanged(unreadable(state, exc)) from exc


def is_readable(state: bytes) -> bool:
    """Whether this version can read the state of a run."""
    try:
        _state.decode(state)
    except msgspec.MsgspecError:
        return False
    return True


def unreadable(kept: bytes, error: msgspec.MsgspecError) -> str:
    """Why what is kept of a run cannot be read, and what helps."""
    try:
        version = msgspec.json.decode(kept, type=_Versioned).version
    except msgspec.MsgspecError:
        version = VERSION
    if version > VERSION:
        return (
            f"it is kept in version {version} and this bigbrain reads versions up to {VERSION}: update all workers, "
            "or let such runs end before you go back to an older version"
        )
    return f"what is kept of it cannot be read: {error}"


_state = msgspec.json.Decoder(RunState)
