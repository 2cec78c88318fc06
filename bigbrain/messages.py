"""What a conversation is, whatever protocol carried it: messages of parts, requests, responses.

All values are frozen. The normal form, which every reader of `wire/` produces and
every writer may rely on:

1. system text is a message of role `system` at its place (writers hoist it where a
   dialect has a field for it);
2. the answers to one round of calls stand in one message of role `tool`;
3. `ToolCall.arguments` is JSON text, verbatim as the model wrote it;
4. the order of parts is kept, neighbouring texts are not merged, empty parts do not exist;
5. usage is disjoint: `input` excludes what was read from or written to a cache.

What only one dialect understands (a thinking signature, a cache marker) rides in
`vendor`, under the dialect's name; only that dialect's module opens it.
Identity of stored things (run ids, keys) is not in these values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeVar, overload

import msgspec

from bigbrain.errors import ToolError
from bigbrain.jsonvalue import JSON as JSON
from bigbrain.schemas import Shape, shape

T = TypeVar("T")

Vendor: TypeAlias = dict[str, JSON]
"""A dialect's name → what only that dialect understands."""

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Stop: TypeAlias = Literal["end", "sequence", "length", "calls", "filter", "refusal", "pause", "context"]
"""Why an answer ended: it was complete; a stop text came; the token limit; calls are owed;
a content filter; the model refused; the model paused its turn; its context is full."""

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Think: TypeAlias = bool | Effort | int
"""How much to think: off or on by the model's default, an effort word, or a budget in tokens."""


class Text(msgspec.Struct, frozen=True, tag="text", omit_defaults=True):
    """Text; `refusal` marks a refusal in words, which OpenAI keeps apart from content."""

    text: str = ""
    refusal: bool = False
    vendor: Vendor = {}


class Image(msgspec.Struct, frozen=True, tag="image", omit_defaults=True):
    """A picture, by exactly one of `data` (base64 of `media_type`), `url` or `file_id`."""

    data: str = ""
    media_type: str = ""
    url: str = ""
    file_id: str = ""
    vendor: Vendor = {}


class File(msgspec.Struct, frozen=True, tag="file", omit_defaults=True):
    """A document, by exactly one of `data` (base64 of `media_type`), `text`, `url` or `file_id`."""

    data: str = ""
    media_type: str = ""
    text: str = ""
    url: str = ""
    file_id: str = ""
    name: str = ""
    vendor: Vendor = {}


class Audio(msgspec.Struct, frozen=True, tag="audio", omit_defaults=True):
    """Sound, base64 in `data`; `format` is the file's ending, such as `wav`."""

    data: str = ""
    format: str = ""
    vendor: Vendor = {}


class Thinking(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True):
    """What a model thought before it answered; may be empty with only a signature in `vendor`."""

    text: str = ""
    vendor: Vendor = {}


class ToolCall(msgspec.Struct, frozen=True, tag="call", omit_defaults=True):
    """A model's wish to have a tool run; `arguments` is JSON text, verbatim, perhaps broken."""

    id: str
    name: str
    arguments: str = ""
    vendor: Vendor = {}

    @property
    def input(self) -> dict[str, JSON]:
        """The arguments as an object; nothing, blanks and `null` count as `{}`, a doubly encoded object is unwrapped once.

        Raises `ToolError` when they are not an object.
        """
        value: JSON = self.arguments
        for _ in range(2):
            if not isinstance(value, str):
                break
            if not value.strip():
                return {}
            try:
                value = msgspec.json.decode(value)
            except msgspec.DecodeError as exc:
                raise ToolError(f"the arguments of `{self.name}` are not JSON: {self.arguments[:200]!r}") from exc
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ToolError(f"the arguments of `{self.name}` are not an object: {self.arguments[:200]!r}")
        return value

    @overload
    def extract(self, kind: type[T] | Shape[T]) -> T: ...
    @overload
    def extract(self, kind: object) -> JSON: ...
    def extract(self, kind: object) -> JSON:
        """The arguments as a value of a type (a dataclass, a pydantic model, a marshmallow Schema), checked fully.

        Raises `SchemaError` when they do not fit it, `ToolError` when they are not an object.
        """
        wanted: Shape[JSON] = kind if isinstance(kind, Shape) else shape(kind)
        return wanted.read(self.input)


class ToolResult(msgspec.Struct, frozen=True, tag="result", omit_defaults=True):
    """The answer to one call; `parts` are texts, and images or files where a dialect carries them."""

    call_id: str
    parts: tuple[Text | Image | File, ...] = ()
    is_error: bool = False
    vendor: Vendor = {}

    @property
    def text(self) -> str:
        """The texts, joined without a separator."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


Part: TypeAlias = Text | Image | File | Audio | Thinking | ToolCall | ToolResult
Growing: TypeAlias = Text | Thinking | ToolCall
"""The parts that a model streams; each has one text that grows."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation."""

    role: Role
    parts: tuple[Part, ...] = ()

    @property
    def text(self) -> str:
        """The texts, joined without a separator; thinking and calls are not in it."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


def system(text: str) -> Message:
    """A message that instructs the model."""
    return Message("system", (Text(text),) if text else ())


def user(text: str) -> Message:
    """A message from the one who asks."""
    return Message("user", (Text(text),) if text else ())


def assistant(text: str) -> Message:
    """A message from the model."""
    return Message("assistant", (Text(text),) if text else ())


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as a model sees it; `schema` is the JSON Schema of its arguments.

    A tool that only one dialect knows (a hosted search, a grammar tool) has its
    own wire form in `vendor` and is not offered to models of another dialect.
    """

    name: str
    description: str = ""
    schema: dict[str, JSON] = {}
    strict: bool | None = None
    vendor: Vendor = {}


class ForcedTool(msgspec.Struct, frozen=True):
    """A tool choice that names the one tool the model must call."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "any", "none"] | ForcedTool


class AnswerSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """The shape an answer must have; without a `schema`, any JSON object."""

    name: str = "answer"
    schema: dict[str, JSON] | None = None
    strict: bool | None = None
    description: str = ""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one or more model calls, disjoint but for `reasoning`, which is part of `output`.

    Zero means "not reported": nothing is ever guessed.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )

    @property
    def total(self) -> int:
        """All tokens; reasoning is not counted twice."""
        return self.input + self.output + self.cache_read + self.cache_write

    @property
    def prompt(self) -> int:
        """All tokens of the prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question, in either direction: a client's to the brain, the brain's to a model.

    Knobs that the asker did not set are None. `extra` holds, under the dialect's
    name, the top-level fields that the normal form has no place for.
    """

    model: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    parallel_calls: bool | None = None
    schema: AnswerSchema | None = None
    stream: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    think: Think | None = None
    user: str = ""
    extra: dict[str, dict[str, JSON]] = {}


class Response(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer, complete or so far; `stop` is None until it is complete, `created` is in seconds since 1970."""

    id: str = ""
    model: str = ""
    created: int = 0
    parts: tuple[Part, ...] = ()
    stop: Stop | None = None
    stop_sequence: str | None = None
    usage: Usage = Usage()
    vendor: Vendor = {}

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def message(self) -> Message:
        return Message("assistant", self.parts)


def unanswered(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls that no later result answers, in order.

    Calls and results are paired by turn and position, not by id alone, because
    some models use the same ids again in every turn: results answer the calls
    of the nearest assistant message before them.
    """
    open_calls: list[ToolCall] = []
    for message in messages:
        answered = {result.call_id for result in message.results}
        if answered:
            open_calls = [call for call in open_calls if call.id not in answered]
        open_calls.extend(message.calls)
    return tuple(open_calls)
