"""The shapes of what is sent and answered here, as marshmallow schemas for `/openapi.json`.

They describe and do not check: requests are read by `bigbrain.wire`, which knows every form that clients send.
"""

from __future__ import annotations

from marshmallow import INCLUDE, Schema, fields, validate


class Open(Schema):
    """A shape that may have further fields."""

    class Meta:
        unknown = INCLUDE


class ErrorSchema(Open):
    """An error in the shape of OpenAI."""

    error = fields.Dict(required=True, metadata={"description": "`message`, `type`, `param` and `code`"})


class AnthropicErrorSchema(Open):
    """An error in the shape of Anthropic."""

    type = fields.Constant("error", required=True)
    error = fields.Dict(required=True, metadata={"description": "`type` and `message`"})
    request_id = fields.String(required=True)


class ChatMessageSchema(Open):
    role = fields.String(
        required=True, validate=validate.OneOf(["developer", "system", "user", "assistant", "tool", "function"])
    )
    content = fields.Raw(allow_none=True, metadata={"description": "a text, or a list of parts"})


class ChatRequestSchema(Open):
    """A request to OpenAI's Chat Completions."""

    model = fields.String(required=True, metadata={"description": "the flow that is to answer"})
    messages = fields.List(fields.Nested(ChatMessageSchema), required=True, validate=validate.Length(min=1))
    stream = fields.Boolean(load_default=False)
    stream_options = fields.Dict()
    tools = fields.List(fields.Dict())
    tool_choice = fields.Raw()
    parallel_tool_calls = fields.Boolean()
    response_format = fields.Dict()
    max_completion_tokens = fields.Integer(validate=validate.Range(min=1))
    max_tokens = fields.Integer(validate=validate.Range(min=1), metadata={"deprecated": True})
    stop = fields.Raw(metadata={"description": "a text, or a list of texts"})
    n = fields.Integer(
        validate=validate.Range(min=1, max=128),
        metadata={"description": "a run has one answer, so every choice is the same"},
    )
    temperature = fields.Float()
    top_p = fields.Float()
    reasoning_effort = fields.String()
    logprobs = fields.Boolean()
    top_logprobs = fields.Integer(validate=validate.Range(min=0, max=20))
    user = fields.String()


class ChatCompletionSchema(Open):
    """An answer of Chat Completions that is not streamed."""

    id = fields.String(required=True)
    object = fields.Constant("chat.completion", required=True)
    created = fields.Integer(required=True)
    model = fields.String(required=True)
    choices = fields.List(fields.Dict(), required=True)
    usage = fields.Dict(required=True)


class ResponsesRequestSchema(Open):
    """A request to OpenAI's Responses."""

    model = fields.String(metadata={"description": "the flow that is to answer"})
    input = fields.Raw(metadata={"description": "a text, or a list of items"})
    instructions = fields.String()
    previous_response_id = fields.String(metadata={"description": "a stored response that this one goes on from"})
    store = fields.Boolean(load_default=True)
    background = fields.Boolean(load_default=False)
    stream = fields.Boolean(load_default=False)
    tools = fields.List(fields.Dict())
    tool_choice = fields.Raw()
    parallel_tool_calls = fields.Boolean()
    text = fields.Dict(metadata={"description": "`format` is the shape of the answer"})
    reasoning = fields.Dict()
    include = fields.List(fields.String())
    max_output_tokens = fields.Integer(validate=validate.Range(min=1))
    temperature = fields.Float()
    top_p = fields.Float()
    metadata = fields.Dict()


class ResponseSchema(Open):
    """A response: an answer, or what there is of it."""

    id = fields.String(required=True)
    object = fields.Constant("response", required=True)
    created_at = fields.Integer(required=True)
    status = fields.String(
        required=True,
        validate=validate.OneOf(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]),
    )
    model = fields.String(required=True)
    output = fields.List(fields.Dict(), required=True)
    error = fields.Dict(required=True, allow_none=True)
    usage = fields.Dict(required=True, allow_none=True)


class ItemsSchema(Open):
    """A page of the items that a response answers."""

    data = fields.List(fields.Dict(), required=True)
    has_more = fields.Boolean(required=True)


class MessageSchema(Open):
    role = fields.String(required=True, validate=validate.OneOf(["user", "assistant", "system"]))
    content = fields.Raw(required=True, metadata={"description": "a text, or a list of blocks"})


class CountRequestSchema(Open):
    """A request whose tokens are to be counted."""

    model = fields.String(required=True, metadata={"description": "the flow that is to answer"})
    messages = fields.List(fields.Nested(MessageSchema), required=True, validate=validate.Length(min=1))
    system = fields.Raw(metadata={"description": "a text, or a list of text blocks"})
    tools = fields.List(fields.Dict())
    tool_choice = fields.Dict()
    thinking = fields.Dict()
    output_config = fields.Dict()


class MessagesRequestSchema(CountRequestSchema):
    """A request to Anthropic's Messages."""

    max_tokens = fields.Integer(required=True, validate=validate.Range(min=0))
    stream = fields.Boolean(load_default=False)
    stop_sequences = fields.List(fields.String())
    temperature = fields.Float()
    metadata = fields.Dict()


class MessageAnswerSchema(Open):
    """An answer of Messages that is not streamed."""

    id = fields.String(required=True)
    type = fields.Constant("message", required=True)
    role = fields.Constant("assistant", required=True)
    model = fields.String(required=True)
    content = fields.List(fields.Dict(), required=True)
    stop_reason = fields.String(required=True)
    stop_sequence = fields.String(required=True, allow_none=True)
    usage = fields.Dict(required=True)


class CountSchema(Schema):
    """A number of tokens; the header `X-Brain-Tokens-By` says whether a model's server counted them."""

    input_tokens = fields.Integer(required=True)


class ModelsSchema(Open):
    """The flows that are served, in the shape of whoever asks: Anthropic's for clients that send `anthropic-version`."""

    data = fields.List(fields.Dict(), required=True)


class ModelSchema(Open):
    """One flow that is served."""

    id = fields.String(required=True)


class HealthSchema(Schema):
    """Whether a process lives, or is ready."""

    status = fields.String(required=True)
    missing = fields.List(fields.String())
