"""Structured answers: a model is told the shape, its answer is checked fully, and a bad one is put back to it.

The schema goes along twice: natively, where strict modes accept it, and in words,
because not every server that speaks a protocol knows its native form. An answer that was
cut off is an error at once: a repair would have to guess what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from bigbrain import schemas
from bigbrain.errors import SchemaError
from bigbrain.events import replay
from bigbrain.messages import JSON, AnswerSchema, Message, Response, Stop, Text, Thinking, Usage, user
from bigbrain.models import Asks
from bigbrain.models.connection import Connection
from bigbrain.replies import Reply
from bigbrain.schemas import Shape

UNFIT: dict[Stop, str] = {
    "length": "is cut off: its token limit was reached; give the model a larger `max_tokens`",
    "context": "is cut off: the model's context is full; shorten the conversation",
    "filter": "was held back by a content filter",
    "refusal": "is a refusal",
}
"""Why an answer ended → what is wrong with it, where asking again would not help."""


def answer_schema(shape: Shape[JSON], model: Asks) -> AnswerSchema:
    """What is sent natively.

    Without a strict form only JSON of any shape is asked for, since providers refuse open schemas;
    so it is with a type that contains itself, which Anthropic refuses, unless the model is known to be another's.
    """
    takes_recursion = isinstance(model, Connection) and model.model.provider == "openai"
    if shape.strict is None or (shape.recursive and not takes_recursion):
        return AnswerSchema(shape.name)
    return AnswerSchema(shape.name, shape.strict, strict=True, description=shape.description)


def told(shape: Shape[JSON]) -> str:
    """The shape in words, for the system text."""
    schema = msgspec.json.encode(shape.schema).decode()
    return f"Answer with one JSON object and nothing else: no other text, no fence. It must fit this JSON Schema:\n{schema}"


def fitted(ask: Callable[[Sequence[Message]], Reply], shape: Shape[JSON], repairs: int) -> Reply:
    """A reply whose text is the JSON of a value of the shape, whole; one that calls tools is given as it is.

    ask: asks with these messages after the conversation. repairs: how often a bad answer is put back.
    The reply's usage is that of all tries.
    Raises `SchemaError` with the faults when the last one is bad too.
    """
    usage = Usage()
    more: tuple[Message, ...] = ()
    for left in range(repairs, -1, -1):
        response = ask(more).response
        usage = usage + response.usage
        if response.calls:
            return Reply(replay(replace(response, usage=usage)))
        try:
            return Reply(replay(_checked(replace(response, usage=usage), shape)))
        except SchemaError as error:
            if not left or response.stop in UNFIT:
                raise
            more = (*more, *_put_back(response, error))
    raise SchemaError(f"`repairs` is {repairs}: give 0 or more")


def _checked(response: Response, shape: Shape[JSON]) -> Response:
    if response.stop in UNFIT:
        raise SchemaError(f"the answer {UNFIT[response.stop]}; it ends with {response.text[-40:]!r}")
    value = schemas.extract(response.text, shape)
    text = msgspec.json.encode(shape.write(value)).decode()
    thoughts = (part for part in response.parts if isinstance(part, Thinking))
    return replace(response, parts=(*thoughts, Text(text)))


def _put_back(response: Response, error: SchemaError) -> tuple[Message, ...]:
    """The bad answer and its faults, as the next turn of the conversation."""
    fault = user(f"This is not what was asked for: {error}\nAnswer again, with the corrected JSON only.")
    return (response.message, fault) if response.parts else (fault,)
