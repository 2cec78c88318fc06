"""A durable flow: its worker may be killed in mid answer, and the client's stream carries on.

    bigbrain up samples.durable

Asked for "3" it says "Counting to 3." and then, number by number, "1 2 3 and done." To see it survive, ask for "60"
as a stream, which takes twelve seconds, and kill the worker for flows that wait, by its id, while the numbers come:

    curl -N localhost:8080/v1/chat/completions -H 'content-type: application/json' \
         -d '{"stream": true, "messages": [{"role": "user", "content": "60"}]}'
    pgrep -af 'celery.* -Q io'
    kill -9 PID

The stream pauses for some seconds and carries on: a new worker counts from the start of the stage, and the client is
told only what it does not have. The stage before it is on record and is not done again.
"""

import re
import time
from collections.abc import Iterator

from bigbrain import Brain, Chat, Flow, Turn, agent, respond


def asked_for(turn: Turn) -> int:
    """How far to count: the number in the client's question, at most 100."""
    found = re.search(r"\d+", turn.request.messages[-1].text)
    return min(int(found[0]), 100) if found else 10


@agent
def announces(turn: Turn, chat: Chat) -> None:
    turn.reply(f"Counting to {asked_for(turn)}.")


@agent
def counts(turn: Turn, chat: Chat) -> None:
    """Says the same in every attempt: only then does the client notice nothing."""

    def pieces() -> Iterator[str]:
        for number in range(1, asked_for(turn) + 1):
            turn.check()  # raises when the run is to stop
            yield f"{number} "
            time.sleep(0.2)
        yield "and done."

    turn.reply(pieces())


counting = (Flow(announces) >> respond >> Flow(counts) >> respond).named("counting").durable(retries=2)
brain = Brain("durable", counting)

if __name__ == "__main__":
    brain.serve()
