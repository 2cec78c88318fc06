"""Which result answers which call in a conversation.

By turn and position, not by id alone, since some models use the same ids again in every
turn: a result answers the first call with its id that is still open, in the nearest
assistant message before it. The wire pairs by the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bigbrain.messages import Message, ToolCall, ToolResult


@dataclass
class _Pair:
    call: ToolCall
    result: ToolResult | None = None


def result_of(call: ToolCall, messages: Sequence[Message]) -> ToolResult | None:
    """The result of a call, None while there is none; of several equal calls the last one is meant.

    A call that is not in the messages is looked for by its id.
    """
    pairs = _pairs(messages)
    for meant in (
        [pair for pair in pairs if pair.call is call],
        [pair for pair in pairs if pair.call == call],
        [pair for pair in pairs if pair.call.id == call.id],
    ):
        if meant:
            return meant[-1].result
    return None


def call_of(result: ToolResult, messages: Sequence[Message]) -> ToolCall:
    """The call that a result answers; a stub with only its id when it is not in the messages."""
    pairs = [pair for pair in _pairs(messages) if pair.result is not None]
    for meant in (
        [pair for pair in pairs if pair.result is result],
        [pair for pair in pairs if pair.result == result],
        [pair for pair in pairs if pair.call.id == result.call_id],
    ):
        if meant:
            return meant[-1].call
    return ToolCall(result.call_id, "")


def _pairs(messages: Sequence[Message]) -> list[_Pair]:
    """Every call, with its result if there is one, in the order of the calls."""
    pairs: list[_Pair] = []
    rounds: list[list[_Pair]] = []
    for message in messages:
        for result in message.results:
            _take(result, rounds)
        if message.calls:
            rounds.append([_Pair(call) for call in message.calls])
            pairs += rounds[-1]
    return pairs


def _take(result: ToolResult, rounds: list[list[_Pair]]) -> None:
    for of_round in reversed(rounds):
        for pair in of_round:
            if pair.result is None and pair.call.id == result.call_id:
                pair.result = result
                return
