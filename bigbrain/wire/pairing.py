"""Calls and their results, paired so that every server accepts the conversation.

Servers refuse a conversation in which two calls share an id, a call has no result
right behind it, or a result no call. Histories have all of these: some models use
`call_0` again in every turn, a client breaks off in the middle of a round, an author
cuts the beginning off. Results answer by turn and position, not by id alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from bigbrain.messages import Message, Part, Text, ToolCall, ToolResult

NO_RESULT = "no result"
"""What a call is answered with that nobody answered."""


class _Round:
    """The calls of one assistant message and the results that came for them, in order of arrival."""

    def __init__(self) -> None:
        self.owed: list[tuple[str, str]] = []
        self.results: list[ToolResult] = []

    def answer(self, result: ToolResult) -> bool:
        """Takes the result for the first open call with its id; False when there is none."""
        for place, (old, new) in enumerate(self.owed):
            if old == result.call_id:
                del self.owed[place]
                self.results.append(replace(result, call_id=new))
                return True
        return False

    def message(self) -> Message:
        """All results, also for calls that got none."""
        missing = (ToolResult(new, (Text(NO_RESULT),), is_error=True) for _, new in self.owed)
        return Message("tool", (*self.results, *missing))


def fresh_id(wish: str, taken: set[str]) -> str:
    """The wished id, or one made of it that is not taken yet; it is taken afterwards."""
    wish = wish or "call"
    name, number = wish, 2
    while name in taken:
        name, number = f"{wish}_{number}", number + 1
    taken.add(name)
    return name


def paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same conversation, fit for a server that insists on pairs.

    Ids of calls become unique, changed on call and result alike and only where they
    collide; the results of a round stand in one message right behind it; a call
    without a result gets `NO_RESULT` as an error; a result without a call is left out.
    """
    taken: set[str] = set()
    rounds: list[_Round] = []
    told: list[Message | _Round] = []
    for message in messages:
        for result in message.results:
            any(one.answer(result) for one in reversed(rounds))
        if message.calls:
            rounds.append(_Round())
            told += [replace(message, parts=tuple(_own_ids(message.parts, rounds[-1], taken))), rounds[-1]]
        elif message.role != "tool":
            told.append(message)
    return tuple(one.message() if isinstance(one, _Round) else one for one in told)


def _own_ids(parts: Sequence[Part], of_round: _Round, taken: set[str]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, ToolCall):
            new = fresh_id(part.id, taken)
            of_round.owed.append((part.id, new))
            part = part if new == part.id else replace(part, id=new)
        yield part
