"""Memory: what outlives a request is what you put into a store. Transcripts are the client's.

    python -m samples.memory

Tell it "remember that I like tea" and it answers "Noted: I like tea."; ask "what do you know?", also after
a restart or from another client, and it answers "You told me: I like tea." Before, it is "You told me nothing yet."
The facts are files in `BIG_BRAIN_DATA`. With workers on several machines use `brain.memory` instead, which is in Redis.
"""

import os
from pathlib import Path

from bigbrain import Brain, Chat, FileStore, Flow, Turn, agent

memory = FileStore(Path(os.environ.get("BIG_BRAIN_DATA", ".bigbrain")) / "facts")


@agent
def keeper(turn: Turn, chat: Chat) -> None:
    said = turn.last.text
    if said.startswith("remember that "):
        fact = said.removeprefix("remember that ")
        # `update` reads, changes and writes as one act, so that two requests at once lose nothing
        memory.update("facts", lambda facts: [*facts, fact] if fact not in facts else facts, [], kind=list[str])
        turn.reply(f"Noted: {fact}.")
        return
    facts = memory.get("facts", list[str], default=[])
    turn.reply(f"You told me: {'; '.join(facts)}." if facts else "You told me nothing yet.")


brain = Brain("memory", Flow(keeper))

if __name__ == "__main__":
    brain.serve()
