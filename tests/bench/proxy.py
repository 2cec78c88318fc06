"""What one writes in an afternoon: Flask and the openai SDK, each chunk read and written again."""

from __future__ import annotations

import os
from collections.abc import Iterator

from flask import Flask, Response, request
from openai import OpenAI

app = Flask(__name__)
upstream = OpenAI(base_url=os.environ["UPSTREAM"] + "/v1", api_key="none", max_retries=0)


@app.get("/readyz")
def ready() -> dict[str, str]:
    return {"status": "ready"}


@app.post("/v1/chat/completions")
def chat_completions() -> Response:
    body = request.get_json()
    answer = upstream.chat.completions.create(**body)
    if not body.get("stream"):
        return Response(answer.model_dump_json(), mimetype="application/json")

    def frames() -> Iterator[str]:
        for chunk in answer:
            yield f"data: {chunk.model_dump_json()}\n\n"
        yield "data: [DONE]\n\n"

    return Response(frames(), mimetype="text/event-stream")
