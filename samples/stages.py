"""Stages: each `respond` delivers what was made since the last one; after the last one, work goes on in the background.

    python -m samples.stages

Asked anything, it says "One moment, please." at once, then the model's answer, "At your service.", and the
client is done. Then somebody is told of it: the log of the process shows "answered: At your service."
Without `BIG_BRAIN_API_KEY` a fixed answer stands in for the model.
"""

import logging
import os

from bigbrain import Brain, Chat, FixedModel, Flow, Model, Notify, Turn, agent, respond

logger = logging.getLogger("samples.stages")


@agent
def greeter(turn: Turn, chat: Chat) -> None:
    turn.reply("One moment, please.")


@agent(role="You are Jarvis: warm, brief, lightly witty.")
def jarvis(turn: Turn, chat: Chat) -> None:
    turn.reply(chat.ask(*turn.request.messages))


def tell(text: str) -> None:
    """Whoever is told; a URL would get a signed POST instead."""
    logger.warning("answered: %s", text)


brain = Brain("stages", Flow(greeter) >> respond >> Flow(jarvis) >> respond >> Notify(tell))
brain.add_model(Model("gpt-4o-mini") if os.environ.get("BIG_BRAIN_API_KEY") else FixedModel("At your service."))

if __name__ == "__main__":
    brain.serve()
