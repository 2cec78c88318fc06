"""What a Chat Completions request wishes of the form of its answer, beside what the answer says.

`n`: an agent's run has one answer, so every one of `n` choices is that answer; its usage is counted once.
`functions`, the deprecated form of `tools`: the answer's first call is told as `function_call`; further ones
have no place there, which is why such a request allows one call at a time.
"""

from __future__ import annotations

from bigbrain.messages import JSON, Request, Response, Text
from bigbrain.wire.openai_content import own


def choice_count(request: Request) -> int:
    """How many times the answer is to be told."""
    count = own(request.extra).get("n")
    return count if isinstance(count, int) else 1


def wants_usage(request: Request) -> bool:
    """Whether a stream is to end with its usage."""
    options = own(request.extra).get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def wants_functions(request: Request) -> bool:
    """Whether calls are told in the deprecated form."""
    return bool(own(request.extra).get("functions")) and not any(own(tool.vendor) for tool in request.tools)


def logprobs_of(response: Response) -> JSON:
    """The log probabilities of the answer's texts, as the model's server told them; None when it told none."""
    told: dict[str, list[JSON]] = {}
    for part in response.parts:
        found = own(part.vendor).get("logprobs") if isinstance(part, Text) else None
        for name, items in found.items() if isinstance(found, dict) else ():
            if isinstance(items, list):
                told.setdefault(name, []).extend(items)
    return {"content": told.get("content"), "refusal": told.get("refusal")} if told else None
