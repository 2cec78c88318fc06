"""What of a conversation a task takes up: its prompt, and what was said before, as the model of a task can read it.

A task has its own way to call tools. Calls and results of other ways, a client's among them,
are told in words, because providers refuse them where no such tools are offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bigbrain.errors import WiringError
from bigbrain.messages import File, Image, Message, Part, Text, ToolCall, ToolResult, user
from bigbrain.orchestrator.prompting import GO_ON
from bigbrain.orchestrator.results import ToolTrace


def asked_of(messages: Sequence[Message]) -> tuple[tuple[Message, ...], Message]:
    """The history and the prompt of a conversation: the last message is the prompt, if it is a user's."""
    history, prompt = tuple(messages), user(GO_ON)
    if history and history[-1].role == "user" and history[-1].parts:
        history, prompt = history[:-1], history[-1]
    return history, prompt


def plain(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same history without calls, results and thoughts."""
    told = (Message("user" if one.role == "tool" else one.role, tuple(_parts(one))) for one in messages)
    return tuple(message for message in told if message.parts)


def check_given(history: Sequence[Message], traces: Sequence[ToolTrace]) -> None:
    """Raises `WiringError` when one was given in the place of the other, or something else altogether."""
    if isinstance(history, str | Message | ToolTrace) or not all(isinstance(one, Message) for one in history):
        traced = not isinstance(history, str | Message) and any(isinstance(one, ToolTrace) for one in history)
        remedy = "these are tool traces: give them as `tool_traces=…`" if traced else "give a list of `Message`s"
        raise WiringError(f"`history` takes the messages of a conversation; {remedy}")
    if isinstance(traces, str | ToolTrace) or not all(isinstance(one, ToolTrace) for one in traces):
        raise WiringError("`tool_traces` takes the `tool_traces` of earlier results; give a list of `ToolTrace`s")


def _parts(message: Message) -> Iterator[Part]:
    for part in message.parts:
        match part:
            case Text(text):
                if text:
                    yield part
            case Image() | File():
                yield part
            case ToolCall():
                yield Text(f"(Called {part.name} with {part.arguments or '{}'}.)")
            case ToolResult():
                yield Text(f"({'Error' if part.is_error else 'Result'}: {part.text})")
            case _:
                pass
