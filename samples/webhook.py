"""A webhook: somebody outside calls, proves who it is, and a run begins; with the one who calls.

    python -m samples.webhook            # serves the brain
    python -m samples.webhook Sam        # rings its bell, signed

Ringing prints "Sam is at the door." Chatting gives "Ring my bell." A call without the signature, or with one that is older
than five minutes, is answered 401; the same call twice is one ring. The parcel's webhook answers 202 at once, because
it comes to no `respond`; what it does goes on in the background.
"""

import json
import logging
import os
import sys
import time
import urllib.request
from dataclasses import dataclass
from uuid import uuid4

from bigbrain import Brain, Chat, FixedModel, Flow, Turn, Webhook, agent, respond
from bigbrain.webhooks import signed, standard_webhooks

SECRET = os.environ.get("DOORBELL_SECRET", "whsec_b25seSBmb3IgdGhpcyBzYW1wbGU=")


@dataclass
class Ring:
    visitor: str


@agent
def opens(turn: Turn, chat: Chat) -> None:
    turn.reply(f"{(turn.payload(Ring) or Ring('Somebody')).visitor} is at the door.")


@agent
def notes(turn: Turn, chat: Chat) -> None:
    logging.getLogger("samples.webhook").warning("a parcel for %s", turn.payload(dict[str, str]))


brain = Brain("webhook", Flow(model=FixedModel("Ring my bell.")))
brain.add_trigger(Webhook("doorbell", verify=standard_webhooks(SECRET)) >> Flow(opens) >> respond)
brain.add_trigger(Webhook("parcel", verify=standard_webhooks(SECRET)) >> Flow(notes))


def call(url: str, payload: dict[str, str], secret: str = SECRET) -> tuple[int, str]:
    """Calls a webhook as a sender does; the status and the text of its answer."""
    body = json.dumps(payload).encode()
    headers = signed(body, id=f"call_{uuid4().hex}", at=int(time.time()), secret=secret)
    request = urllib.request.Request(url, body, {"content-type": "application/json", **headers})
    with urllib.request.urlopen(request) as answer:
        return answer.status, answer.read().decode()


if __name__ == "__main__":
    if visitor := " ".join(sys.argv[1:]):
        print(call("http://127.0.0.1:8080/v1/hooks/doorbell", {"visitor": visitor})[1])
    else:
        brain.serve()
