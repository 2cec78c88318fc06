"""How the test model server puts an answer on a provider's wire, by hand, so that it shares no code with what it tests.

Sources: OpenAI API reference, chat completions; Anthropic API reference, messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from tests.upstream_answers import Answer, Call
from tests.upstream_responses import ResponsesWire

JSONObject = dict[str, Any]


def encoded(value: JSONObject) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


class Wire(Protocol):
    """One answer in one protocol."""

    def __init__(self, *, model: str, number: int, body: JSONObject) -> None: ...

    def frames(self, answer: Answer) -> Iterator[tuple[bytes, bool]]:
        """The stream up to its end, each frame with whether it is a token."""

    def end(self, answer: Answer) -> bytes: ...

    def error(self, kind: str) -> bytes: ...

    def document(self, answer: Answer) -> JSONObject: ...

    def refusal(self, status: int, message: str, code: str | None = None) -> JSONObject: ...


CHAT_STOPS = {"end": "stop", "length": "length", "calls": "tool_calls"}
CHAT_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


class ChatWire:
    """OpenAI chat completions."""

    def __init__(self, *, model: str, number: int, body: JSONObject) -> None:
        self.model, self.id, self.body = model, f"chatcmpl-{number}", body

    def frame(self, choices: list[JSONObject], **more: Any) -> bytes:
        chunk = {"id": self.id, "object": "chat.completion.chunk", "created": 1, "model": self.model}
        return b"data: " + encoded({**chunk, "choices": choices, **more}) + b"\n\n"

    def delta(self, delta: JSONObject, finish: str | None = None) -> bytes:
        return self.frame([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])

    def frames(self, answer: Answer) -> Iterator[tuple[bytes, bool]]:
        if answer.empty_choices:
            yield self.frame([], prompt_filter_results=[]), False
        yield self.delta({"role": "assistant", "content": "", "refusal": None}), False
        if answer.garbage:
            yield b"data: {oops\n\n", False
        for text in answer.thinking:
            yield self.delta({"reasoning_content": text}), False
        for text in answer.tokens:
            yield self.delta({"content": text}), True
        for number, call in enumerate(answer.calls):
            yield from ((frame, False) for frame in self.call(number, call, whole=answer.same_index))

    def call(self, number: int, call: Call, *, whole: bool) -> Iterator[bytes]:
        head = {"id": call.id or f"call_{number}", "type": "function"}
        if whole:
            function = {"name": call.name, "arguments": call.arguments}
            yield self.delta({"tool_calls": [{"index": 0, **head, "function": function}]})
            return
        yield self.delta({"tool_calls": [{"index": number, **head, "function": {"name": call.name, "arguments": ""}}]})
        for piece in halves(call.arguments):
            yield self.delta({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})

    def end(self, answer: Answer) -> bytes:
        wanted = (self.body.get("stream_options") or {}).get("include_usage") or answer.empty_choices
        usage = self.frame([], usage=self.usage(answer)) if wanted and answer.usage else b""
        return self.delta({}, CHAT_STOPS[answer.stop]) + usage + b"data: [DONE]\n\n"

    def usage(self, answer: Answer) -> JSONObject:
        output = len(answer.tokens) + len(answer.thinking)
        return {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": output,
            "total_tokens": answer.input_tokens + output,
        }

    def document(self, answer: Answer) -> JSONObject:
        message: JSONObject = {"role": "assistant", "content": "".join(answer.tokens) or None, "refusal": None}
        if answer.thinking:
            message["reasoning_content"] = "".join(answer.thinking)
        if answer.calls:
            message["tool_calls"] = [
                {
                    "id": call.id or f"call_{number}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for number, call in enumerate(answer.calls)
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": CHAT_STOPS[answer.stop]}
        whole: JSONObject = {"id": self.id, "object": "chat.completion", "created": 1, "model": self.model}
        return {**whole, "choices": [choice], **({"usage": self.usage(answer)} if answer.usage else {})}

    def error(self, kind: str) -> bytes:
        return b"data: " + encoded({"error": {"message": f"injected {kind}", "type": kind, "code": None}}) + b"\n\n"

    def refusal(self, status: int, message: str, code: str | None = None) -> JSONObject:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        code = code or CHAT_CODES.get(status)
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


MESSAGES_STOPS = {"end": "end_turn", "length": "max_tokens", "calls": "tool_use"}
MESSAGES_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class MessagesWire:
    """Anthropic messages."""

    def __init__(self, *, model: str, number: int, body: JSONObject) -> None:
        self.model, self.id, self.body = model, f"msg_{number}", body
        self.index = -1

    def event(self, kind: str, **fields: Any) -> bytes:
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), encoded({"type": kind, **fields}))

    def opened(self, block: JSONObject) -> bytes:
        self.index += 1
        return self.event("content_block_start", index=self.index, content_block=block)

    def delta(self, kind: str, **fields: str) -> bytes:
        return self.event("content_block_delta", index=self.index, delta={"type": kind, **fields})

    def closed(self) -> bytes:
        return self.event("content_block_stop", index=self.index)

    def frames(self, answer: Answer) -> Iterator[tuple[bytes, bool]]:
        message = {**self.head(), "content": [], "stop_reason": None, "stop_sequence": None}
        usage = {"input_tokens": answer.input_tokens if answer.usage else 0, "output_tokens": int(answer.usage)}
        yield self.event("message_start", message={**message, "usage": usage}), False
        yield self.event("ping"), False
        if answer.garbage:
            yield b"event: content_block_start\ndata: {oops\n\n", False
        if answer.thinking:
            yield self.opened({"type": "thinking", "thinking": "", "signature": ""}), False
            for text in answer.thinking:
                yield self.delta("thinking_delta", thinking=text), False
            yield self.delta("signature_delta", signature="QUJD") + self.closed(), False
        if answer.tokens:
            yield self.opened({"type": "text", "text": ""}), False
            for text in answer.tokens:
                yield self.delta("text_delta", text=text), True
        for number, call in enumerate(answer.calls):
            yield self.call(number, call), False

    def call(self, number: int, call: Call) -> bytes:
        name = call.id or f"toolu_{number}"
        opened = self.opened({"type": "tool_use", "id": name, "name": call.name, "input": {}})
        pieces = [self.delta("input_json_delta", partial_json=piece) for piece in halves(call.arguments)]
        return b"".join([opened, *pieces, self.closed()])

    def end(self, answer: Answer) -> bytes:
        closed = self.closed() if answer.tokens else b""
        stop = {"stop_reason": MESSAGES_STOPS[answer.stop], "stop_sequence": None}
        output = {"output_tokens": (len(answer.tokens) + len(answer.thinking)) if answer.usage else 0}
        return closed + self.event("message_delta", delta=stop, usage=output) + self.event("message_stop")

    def head(self) -> JSONObject:
        return {"id": self.id, "type": "message", "role": "assistant", "model": self.model}

    def document(self, answer: Answer) -> JSONObject:
        content: list[JSONObject] = []
        if answer.thinking:
            content.append({"type": "thinking", "thinking": "".join(answer.thinking), "signature": "QUJD"})
        if answer.tokens:
            content.append({"type": "text", "text": "".join(answer.tokens)})
        for number, call in enumerate(answer.calls):
            use = {"type": "tool_use", "id": call.id or f"toolu_{number}", "name": call.name}
            content.append({**use, "input": json.loads(call.arguments)})
        usage = {"input_tokens": 0, "output_tokens": 0}
        if answer.usage:
            usage = {"input_tokens": answer.input_tokens, "output_tokens": len(answer.tokens) + len(answer.thinking)}
        stop = {"stop_reason": MESSAGES_STOPS[answer.stop], "stop_sequence": None}
        return {**self.head(), "content": content, **stop, "usage": usage}

    def error(self, kind: str) -> bytes:
        name = kind if kind.endswith("_error") else f"{kind}_error"
        return self.event("error", error={"type": name, "message": f"injected {kind}"})

    def refusal(self, status: int, message: str, code: str | None = None) -> JSONObject:
        kind = MESSAGES_KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": f"req_{self.id}"}


WIRES: dict[str, type[ChatWire] | type[MessagesWire] | type[ResponsesWire]] = {
    "/v1/chat/completions": ChatWire,
    "/v1/responses": ResponsesWire,
    "/v1/messages": MessagesWire,
}
