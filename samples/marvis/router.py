"""Who decides: a small model says, in a typed answer, which capability a message is for."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from bigbrain import Chat, Doc, Turn, agent, model


class Intent(StrEnum):
    """The capabilities, by the names of their flows."""

    TALK = "talk"
    REMEMBER = "remember"
    RECALL = "recall"
    LIST = "list"
    HOUSE = "house"
    EXTRA = "extra"


MEANINGS = {
    Intent.TALK: "small talk, a greeting, a question that needs nothing of the others",
    Intent.REMEMBER: "the user states a fact to be kept for later",
    Intent.RECALL: "the user asks for what was to be kept earlier",
    Intent.LIST: "something is to be put on a list, taken off it or read from it",
    Intent.HOUSE: "a device of the house is to be switched, or a sensor to be read",
    Intent.EXTRA: "it takes real thought: mathematics, code, a longer text",
}


@dataclass
class Choice:
    """Which capability a message is for."""

    intent: Annotated[Intent, Doc("; ".join(f"{intent}: {meaning}" for intent, meaning in MEANINGS.items()))]
    reason: Annotated[str, Doc("why, in a few words")]


@agent(
    model=model("cheap", temperature=0),
    role="You sort the messages to a household's assistant. Choose the intent of the newest one.",
    schema=Choice,
    repairs=2,
    selects=tuple(Intent),
)
def router(turn: Turn, chat: Chat) -> None:
    """Selects the flow; says nothing."""
    turn.select(chat.ask(*turn.messages).extract(Choice).intent)
