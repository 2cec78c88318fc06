"""What we send, byte for byte, for a fixed run id and clock: recorded under `tests/golden`, so that no change of it is an accident.

python -m tests.web.golden      # records anew what is sent now; look at the difference before you commit it
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bigbrain import Brain, Flow
from bigbrain.errors import ModelBusy, ModelRefused
from bigbrain.messages import JSON, Image, Response, Text, Thinking, ToolCall, Usage
from tests.scripted import Script
from tests.web.site import ALL, CHAT, MESSAGES, RESPONSES, Pausing, asking_by, serving

FOLDER = Path(__file__).parents[1] / "golden"
NOW = 1_796_000_000.0
NAMES = {CHAT: "chat", MESSAGES: "messages", RESPONSES: "responses"}
USAGE = Usage(input=7, output=3, cache_read=2, cache_write=1, reasoning=1)
TOOL = {"name": "w", "parameters": {"type": "object"}}

ASKED: dict[str, JSON] = {
    "instructions": "Be brief.",
    "metadata": {"a": "b"},
    "tools": [
        {"type": "namespace", "name": "tools", "description": "d", "tools": [{"type": "function", "name": "w"}]},
        {"type": "web_search"},
    ],
    "tool_choice": {"type": "function", "name": "w"},
    "parallel_tool_calls": False,
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}, "verbosity": "low"},
    "max_output_tokens": 99,
    "store": False,
    "include": ["reasoning.encrypted_content"],
}
"""What the answer of the Responses API repeats."""

ANSWERS = {
    "text": Response(parts=(Text("fox 🦊 北"), Text('a "quote"\n')), stop="end", usage=USAGE),
    "nothing": Response(stop="end"),
    "calls": Response(
        parts=(
            Thinking("a plan", {"anthropic": {"signature": "QUJD"}}),
            Thinking("", {"anthropic": {"redacted": "eHg="}}),
            Text("Let me see."),
            ToolCall("c1", "w", '{"city": "Oslo"}'),
            ToolCall("c2", "w"),
        ),
        stop="calls",
        usage=USAGE,
    ),
    "open_thinking": Response(
        parts=(Thinking("hm", {"openai": {"field": "reasoning_content"}}), Text("ok")), stop="end"
    ),
    "length": Response(parts=(Text("half"),), stop="length", usage=USAGE),
    "stop_text": Response(parts=(Text("up to "),), stop="sequence", stop_sequence="END", usage=USAGE),
    "refusal": Response(parts=(Text("I cannot.", refusal=True),), stop="refusal", usage=USAGE),
    "picture": Response(parts=(Image(url="https://a.example/x.png"), Text("see")), stop="end"),
}


def requests() -> Iterator[tuple[str, str, Brain, dict[str, JSON]]]:
    """Each recording's name, its path, the brain that answers and what it is asked beside the usual."""
    for path in ALL:
        for name, answer in ANSWERS.items():
            yield name, path, Brain("b", Flow(model=Script(answer))), {}
        yield "busy", path, Brain("b", Flow(model=Pausing("", error=ModelBusy()))), {}
        yield "broken", path, Brain("b", Flow(model=Pausing(error=ModelRefused()))), {}
        yield "wrong", path, Brain("b", Flow(model=Script("x"))), {"input" if path == RESPONSES else "messages": 3}
    yield "choices", CHAT, Brain("b", Flow(model=Script("hello"))), {"n": 2}
    yield "functions", CHAT, Brain("b", Flow(model=Script(ANSWERS["calls"]))), {"functions": [TOOL]}
    yield "asked", RESPONSES, Brain("b", Flow(model=Script(ANSWERS["calls"]))), ASKED
    yield "later", RESPONSES, Brain("b", Flow(model=Script("x"))), {"background": True}
    yield "warm_up", MESSAGES, Brain("b", Flow(model=Script("x"))), {"max_tokens": 0}


def recordings() -> Iterator[tuple[Path, bytes]]:
    """The file of each recording and what is sent now."""
    for name, path, brain, fields in requests():
        _let_go(brain)
        with serving(brain, now=lambda: NOW) as site:
            for mode, stream in (("whole", False), ("streamed", True)):
                body = {**asking_by(path, stream=stream), **fields}
                response = site.client.post(path, json=body, headers={"X-Run-Id": f"r-{mode}"})
                sent = b"%d\n" % response.status_code + response.get_data()
                ending = "sse" if response.mimetype == "text/event-stream" else "json"
                yield FOLDER / NAMES[path] / f"{name}.{mode}.{ending}", sent


def _let_go(brain: Brain) -> None:
    """Nobody waits here for a model to be told to go on."""
    for flow in brain.flows.values():
        if isinstance(flow.model, Pausing):
            flow.model.may_go_on.set()


def main() -> None:
    for file, sent in recordings():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(sent)
        print(file.relative_to(FOLDER))


if __name__ == "__main__":
    main()
