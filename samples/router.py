"""A router: a model says in a typed answer what is wanted, and the one flow of that name takes over.

    python -m samples.router

Asked "good morning" it talks: "At your service." Asked "turn on the light" the house answers: "The light is on."
Asked "note: buy milk" it takes a note: "Noted: buy milk."
Without `BIG_BRAIN_API_KEY` a stand-in looks for words where a model would understand.
"""

import os
from dataclasses import dataclass
from typing import Annotated, Literal

from bigbrain import Brain, Chat, Doc, FixedModel, Flow, Model, Request, Select, Turn, agent, model, respond
from bigbrain.testing import ScriptedModel


@dataclass
class Intent:
    """What the user wants."""

    intent: Annotated[Literal["talk", "house", "note"], Doc("talk: anything else; house: devices; note: keep a text")]
    reason: str


@agent(model=model("cheap"), role="Say what the user wants.", schema=Intent, selects=("talk", "house", "note"))
def router(turn: Turn, chat: Chat) -> None:
    turn.select(chat.ask(turn.last).extract(Intent).intent)


@agent
def house(turn: Turn, chat: Chat) -> None:
    turn.reply(f"The light is {'off' if 'off' in turn.last.text else 'on'}.")


@agent
def note(turn: Turn, chat: Chat) -> None:
    turn.reply(f"Noted: {turn.last.text.removeprefix('note: ')}.")


def looks_for_words(request: Request) -> str:
    text = request.messages[-1].text
    intent = "house" if "light" in text else "note" if "note" in text else "talk"
    return f'{{"intent": "{intent}", "reason": "a word in it"}}'


talk = Flow(role="You are Jarvis: warm, brief, lightly witty.", model=model("smart")).named("talk")
capabilities = Select(talk, Flow(house).named("house"), Flow(note).named("note"), default="talk")

brain = Brain("router", Flow(router) >> capabilities >> respond)
key = os.environ.get("BIG_BRAIN_API_KEY")
brain.add_model(
    Model("gpt-4o-mini", temperature=0) if key else ScriptedModel(looks_for_words, repeat=True), tags="cheap"
)
brain.add_model(Model("gpt-4o") if key else FixedModel("At your service."), tags="smart")

if __name__ == "__main__":
    brain.serve()
