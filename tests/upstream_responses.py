"""How the test model server puts an answer on the wire of the Responses API, by hand.

Source: OpenAI API reference, "Streaming events".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.upstream_answers import Answer, Call

JSONObject = dict[str, Any]

CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
KINDS = {"rate_limit_error": "rate_limit_exceeded", "overloaded_error": "server_error"}


class ResponsesWire:
    """OpenAI responses."""

    def __init__(self, *, model: str, number: int, body: JSONObject) -> None:
        self.model, self.number, self.body = model, number, body
        self.output: list[JSONObject] = []
        self.numbered = 0

    def event(self, kind: str, **fields: Any) -> bytes:
        data = {"type": f"response.{kind}", "sequence_number": self.numbered, **fields}
        self.numbered += 1
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
        return b"event: response.%s\ndata: %s\n\n" % (kind.encode(), text)

    def response(self, status: str, **more: Any) -> JSONObject:
        head = {"id": f"resp_{self.number}", "object": "response", "created_at": 1, "model": self.model}
        return {**head, "status": status, "output": self.output, "error": None, "incomplete_details": None, **more}

    @property
    def place(self) -> int:
        return len(self.output)

    def frames(self, answer: Answer) -> Iterator[tuple[bytes, bool]]:
        yield self.event("created", response=self.response("in_progress")), False
        yield self.event("in_progress", response=self.response("in_progress")), False
        if answer.garbage:
            yield b"event: response.output_item.added\ndata: {oops\n\n", False
        if answer.thinking:
            yield from ((frame, False) for frame in self.thought(answer))
        if answer.tokens:
            item = {"id": f"msg_{self.number}", "type": "message", "role": "assistant", "content": []}
            at = {"item_id": item["id"], "output_index": self.place, "content_index": 0}
            part = {"type": "output_text", "text": "", "annotations": []}
            yield self.event("output_item.added", output_index=self.place, item=item), False
            yield self.event("content_part.added", **at, part=part), False
            for text in answer.tokens:
                yield self.event("output_text.delta", **at, delta=text), True
            whole = "".join(answer.tokens)
            yield self.event("output_text.done", **at, text=whole), False
            yield self.done({**item, "status": "completed", "content": [{**part, "text": whole}]}), False
        for number, call in enumerate(answer.calls):
            yield from ((frame, False) for frame in self.call(number, call))

    def thought(self, answer: Answer) -> Iterator[bytes]:
        item: JSONObject = {"id": f"rs_{self.number}", "type": "reasoning", "summary": []}
        at = {"item_id": item["id"], "output_index": self.place, "summary_index": 0}
        yield self.event("output_item.added", output_index=self.place, item=item)
        yield self.event("reasoning_summary_part.added", **at, part={"type": "summary_text", "text": ""})
        for text in answer.thinking:
            yield self.event("reasoning_summary_text.delta", **at, delta=text)
        yield self.done(self.thought_item(answer))

    def thought_item(self, answer: Answer) -> JSONObject:
        summary = [{"type": "summary_text", "text": "".join(answer.thinking)}]
        return {"id": f"rs_{self.number}", "type": "reasoning", "summary": summary, "encrypted_content": "QUJD"}

    def call(self, number: int, call: Call) -> Iterator[bytes]:
        item = self.call_item(number, call)
        at = {"item_id": item["id"], "output_index": self.place}
        yield self.event("output_item.added", output_index=self.place, item={**item, "arguments": ""})
        middle = len(call.arguments) // 2
        for piece in (call.arguments[:middle], call.arguments[middle:]):
            yield self.event("function_call_arguments.delta", **at, delta=piece)
        yield self.event("function_call_arguments.done", **at, arguments=call.arguments)
        yield self.done(item)

    def call_item(self, number: int, call: Call) -> JSONObject:
        named = {"call_id": call.id or f"call_{number}", "name": call.name, "arguments": call.arguments}
        return {"id": f"fc_{self.number}_{number}", "type": "function_call", "status": "completed", **named}

    def done(self, item: JSONObject) -> bytes:
        self.output.append(item)
        return self.event("output_item.done", output_index=self.place - 1, item=item)

    def end(self, answer: Answer) -> bytes:
        kind = "incomplete" if answer.stop == "length" else "completed"
        return self.event(kind, response=self.ended(answer))

    def ended(self, answer: Answer) -> JSONObject:
        if answer.stop == "length":
            details = {"reason": "max_output_tokens"}
            return self.response("incomplete", incomplete_details=details, usage=self.usage(answer))
        return self.response("completed", usage=self.usage(answer))

    def usage(self, answer: Answer) -> JSONObject | None:
        output = len(answer.tokens) + len(answer.thinking)
        whole = answer.input_tokens + output
        counts = {"input_tokens": answer.input_tokens, "output_tokens": output, "total_tokens": whole}
        return counts if answer.usage else None

    def document(self, answer: Answer) -> JSONObject:
        if answer.thinking:
            self.output.append(self.thought_item(answer))
        if answer.tokens:
            content = [{"type": "output_text", "text": "".join(answer.tokens), "annotations": []}]
            self.output.append({"type": "message", "role": "assistant", "status": "completed", "content": content})
        self.output += [self.call_item(number, call) for number, call in enumerate(answer.calls)]
        return self.ended(answer)

    def error(self, kind: str) -> bytes:
        error = {"code": KINDS.get(kind, kind), "message": f"injected {kind}"}
        return self.event("failed", response=self.response("failed", error=error))

    def refusal(self, status: int, message: str, code: str | None = None) -> JSONObject:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code or CODES.get(status)}}
