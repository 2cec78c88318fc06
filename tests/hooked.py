"""The brain of the tests that call webhooks of a whole deployment; `TOLD` names the file in which each execution is a line."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bigbrain import Brain, Chat, FixedModel, Flow, Turn, Webhook, agent, respond
from bigbrain.webhooks import github_signature, standard_webhooks

SECRET = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw=="


def tell(line: str) -> None:
    """Adds one line to the file that all processes share."""
    with Path(os.environ["TOLD"]).open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


@agent
def works(turn: Turn, chat: Chat) -> None:
    """Leaves a line, and takes a moment before it is done."""
    tell(turn.run_id)
    time.sleep(0.05)


@agent
def echoes(turn: Turn, chat: Chat) -> None:
    """Says what came, byte for byte, and the headers that a test sends."""
    headers = turn.metadata(dict[str, str]) or {}
    shown = {name: value for name, value in headers.items() if name.startswith("X-")}
    turn.reply(f"{(turn.payload(bytes) or b'').hex()} {dict(sorted(shown.items()))}")


brain = Brain("hooked", Flow(model=FixedModel("here")))
brain.add_trigger(Webhook("work", verify=standard_webhooks(SECRET)) >> Flow(works) >> Flow(works))
brain.add_trigger(Webhook("echo", verify=github_signature("s3cret")) >> Flow(echoes) >> respond)
