"""What a run carries from step to step beside its messages."""

from __future__ import annotations

import msgspec

from bigbrain.answers import Given
from bigbrain.budgets import Spent
from bigbrain.messages import Message


class RunState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a run between two steps.

    `told`: how many of its messages the client has got; `responded`: whether a stage has
    ended; `answered`: whether the answer is complete; `selected`: the choice that no Select
    has taken yet; `account`: what the
    whole run spent on models; `spent`: the same under each budget, by the path of its flow;
    `reached`: the checkpoints; `base`: for a member of a
    spread group, what was said before it.
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
