"""What Marvis can do besides the house: talk, remember, recall, keep lists, think."""

from dataclasses import dataclass
from typing import Annotated, Literal

from bigbrain import Agent, Chat, Doc, Model, Turn, agent, model
from samples.marvis import memory
from samples.marvis.stand_in import or_stand_in


def persona(turn: Turn) -> str:
    """Who Marvis is, and what it knows of whom it talks to: made anew for each question."""
    known = "".join(f"\n- {fact}" for fact in memory.facts())
    return "You are Marvis: warm, brief, lightly witty." + (f" You know of the user:{known}" if known else "")


# Without a handler an agent answers as its model does, live. Its model is written right here, under no tag.
talk = Agent(name="talk", role=persona, model=or_stand_in(Model("gpt-4o", temperature=0.8)))

extra = Agent(name="extra", role=persona, model=or_stand_in(Model("o4-mini", think="medium", timeout=180)))


@dataclass
class Fact:
    """What the user wants to be remembered."""

    fact: Annotated[str, Doc("one sentence about the user, from the user's mouth; empty when there is none")]


@agent(model=model("cheap"), role="Take down what is to be remembered.", schema=Fact)
def remember(turn: Turn, chat: Chat) -> None:
    """Keeps one fact."""
    fact = chat.ask(turn.last).extract(Fact).fact
    if not fact:
        turn.reply("Remember what, exactly?")
        return
    memory.keep(fact)
    turn.reply(f"Noted: {fact}")


@agent(model=model("fast"), role="Answer from what you know of the user, and from nothing else.")
def recall(turn: Turn, chat: Chat) -> None:
    """Answers from the facts."""
    facts = memory.facts()
    if not facts:
        turn.reply("You haven't told me anything to keep yet.")
        return
    chat.add("What you know:\n" + "\n".join(facts))
    turn.reply(chat.ask(turn.last))


@dataclass
class Errand:
    """What is to be done with a list."""

    list: Annotated[str, Doc("the list's name in one word, such as shopping")]
    op: Literal["add", "remove", "show"] = "show"
    item: str = ""


@agent(model=model("cheap"), role="Say what is to be done with which list.", schema=Errand)
def errands(turn: Turn, chat: Chat) -> None:
    """Keeps the lists."""
    errand = chat.ask(turn.last).extract(Errand)
    turn.reply(done(errand))


def done(errand: Errand) -> str:
    """Does it, and says what came of it."""
    match errand.op:
        case "add" if errand.item:
            count = memory.put(errand.list, errand.item)
            return f"Added {errand.item} to {errand.list} ({count} item{'s' if count > 1 else ''})."
        case "remove" if errand.item:
            taken = memory.take(errand.list, errand.item)
            return f"Removed {', '.join(taken)}." if taken else f"{errand.item} isn't on the {errand.list} list."
    items = memory.items(errand.list)
    return f"{errand.list}: {', '.join(items)}." if items else f"The {errand.list} list is empty."
