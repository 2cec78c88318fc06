"""What the test model server is told to answer, as a value, and the model names that stand for such answers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` is JSON text, sent in two pieces."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True)
class Answer:
    """One answer. The faults count tokens: `reset_after=3` means that three tokens go out before."""

    tokens: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    stop: str = "end"
    """`end`, `length` or `calls`."""
    rate: float = 0
    """Tokens per second; 0 sends all at once."""
    wait: float = 0
    """Seconds before the head of the answer; infinite for ever."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    code: str | None = None
    reset_after: int | None = None
    """-1 resets the connection before the head."""
    hang_after: int | None = None
    cut_after: int | None = None
    truncate_after: int | None = None
    error_after: int | None = None
    error: str = "server_error"
    usage: bool = True
    input_tokens: int = 7
    bytewise: bool = False
    same_index: bool = False
    empty_choices: bool = False
    garbage: bool = False
    as_document: bool = False
    page: str = ""
    refusal_as_200: bool = False


def words(count: int) -> tuple[str, ...]:
    """Numbered words, `w0 w1 …`, so that a reader can prove that it got every one, once, in order."""
    return tuple(f"w{number} " for number in range(count))


def split(text: str) -> tuple[str, ...]:
    """A token per word, the blank before it; joined they are the text again."""
    return tuple(re.findall(r"\s*\S+|\s+$", text))


def content_text(content: Any) -> str:
    """The text of a message's content, in either protocol's forms."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def conversation(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages, or, in the Responses API, the items."""
    found = body.get("messages") or body.get("input") or []
    return [{"role": "user", "content": found}] if isinstance(found, str) else found


def last_user_text(body: dict[str, Any]) -> str:
    texts = [content_text(message.get("content")) for message in conversation(body) if message.get("role") == "user"]
    return next((text for text in reversed(texts) if text), "")


def answers_results(body: dict[str, Any]) -> bool:
    """Whether the last message brings the results of tool calls."""
    last = (conversation(body) or [{}])[-1]
    content = last.get("content")
    blocks = content if isinstance(content, list) else []
    return "output" in last or last.get("role") == "tool" or any(block.get("type") == "tool_result" for block in blocks)


def tool_calls(body: dict[str, Any], count: int) -> tuple[Call, ...]:
    tools = [(tool.get("function") or tool)["name"] for tool in body.get("tools", [])]
    return tuple(Call(name, json.dumps({"n": number}), f"call_{number}") for number, name in enumerate(tools[:count]))


def refused(arguments: list[str]) -> Answer:
    headers = dict(argument.split("=", 1) for argument in arguments[1:])
    if "should-retry" in headers:
        headers["x-should-retry"] = headers.pop("should-retry")
    return Answer(status=int(arguments[0]), headers=headers)


def paced(argument: str) -> Answer:
    count, _, rate = argument.partition("@")
    return Answer(words(int(count)), rate=float(rate or 0))


def after(arguments: list[str], fault: str, tokens: int = 20) -> Answer:
    """A text of numbered words with a fault after as many of them as the last argument says."""
    return replace(Answer(words(tokens)), **{fault: int(arguments[-1])})


def with_tools(body: dict[str, Any], count: int) -> Answer:
    calls = () if answers_results(body) else tool_calls(body, count)
    return Answer(calls=calls, stop="calls") if calls else Answer(split("the tools have answered"))


TOO_LONG = Answer(
    status=400, message="prompt is too long: 250000 tokens > 200000 maximum", code="context_length_exceeded"
)
SAME_INDEX = (Call("w", '{"c":"Oslo"}', "call_a"), Call("w", '{"c":"Rome"}', "call_b"))

FIXED = {
    "reasoning": Answer(("done",), thinking=("let me", " see")),
    "length": Answer(("half",), stop="length"),
    "bytes": Answer(("fox ", "🦊 北"), bytewise=True),
    "empty-choices": Answer(("ok",), empty_choices=True),
    "no-usage": Answer(("ok",), usage=False),
    "parallel-index0": Answer(calls=SAME_INDEX, stop="calls", same_index=True),
    "json": Answer(("ok",), as_document=True),
    "html": Answer(page="<html>a proxy's page</html>"),
    "error-document": Answer(refusal_as_200=True, message="no such luck"),
    "garbage": Answer(("ok",), garbage=True),
    "too-long": TOO_LONG,
}


def answer_for(model: str, body: dict[str, Any], nth: int) -> Answer:
    """The answer that a model name stands for; `nth` counts the requests that named it, from 1."""
    name, *arguments = model.partition("#")[0].split(":")
    if name == "fail":
        failing = answer_for(":".join(arguments[1:]), body, nth)
        return failing if nth <= int(arguments[0]) else Answer(("recovered",))
    if name in FIXED:
        return FIXED[name]
    match [name, *arguments]:
        case ["text", *_]:
            return Answer(split(model.partition(":")[2]))
        case ["echo"]:
            return Answer(split(last_user_text(body)))
        case ["tokens", argument]:
            return paced(argument)
        case ["tools", *count]:
            return with_tools(body, int(count[0]) if count else 1)
        case ["slow", seconds]:
            return Answer(("late",), wait=float(seconds))
        case ["hang"]:
            return Answer(wait=float("inf"))
        case ["hang", "after", _]:
            return after(arguments, "hang_after")
        case ["reset", "before"]:
            return Answer(reset_after=-1)
        case ["reset", "after", _]:
            return after(arguments, "reset_after")
        case ["cut", _]:
            return after(arguments, "cut_after")
        case ["truncate", _]:
            return after(arguments, "truncate_after")
        case ["error-in-stream", kind, *count]:
            return replace(Answer(words(20)), error=kind, error_after=int(count[0]) if count else 0)
        case ["status", *_]:
            return refused(arguments)
        case _:
            return Answer(split(f"hello from {model}"))
