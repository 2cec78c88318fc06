"""Structured output: a model's answer as a value of your own type, fully checked, repaired if need be.

    python -m samples.structured

Asked "two large pizzas without onions and a coke" it answers "2 × pizza (large, without onions), 1 × coke (small)".
Without `BIG_BRAIN_API_KEY` a stand-in answers, badly at first: it writes `"two"` for the number, reads
what is wrong with that, and corrects it. An answer that stays bad is an error, never a guess.
"""

import json
import os
from dataclasses import dataclass, field
from typing import Annotated, Literal

from bigbrain import Brain, Chat, Doc, Flow, Model, Request, Turn, agent
from bigbrain.testing import ScriptedModel


@dataclass
class Item:
    """One line of an order."""

    name: Annotated[str, Doc("in the singular")]
    quantity: int = 1
    size: Literal["small", "large"] = "small"
    wishes: list[str] = field(default_factory=list)


@dataclass
class Order:
    """What somebody wants to eat and drink."""

    items: list[Item]
    table: int | None = None


@agent(role="Take the order.", schema=Order, repairs=1)
def waiter(turn: Turn, chat: Chat) -> None:
    order = chat.ask(turn.last).extract(Order)
    lines = [f"{one.quantity} × {one.name} ({', '.join((one.size, *one.wishes))})" for one in order.items]
    turn.reply(", ".join(lines))


def learns(request: Request) -> str:
    corrected = len(request.messages) > 2  # the role and the question, then the bad answer and its faults
    pizza = {"name": "pizza", "quantity": 2 if corrected else "two", "size": "large", "wishes": ["without onions"]}
    return json.dumps({"items": [pizza, {"name": "coke"}]})


brain = Brain("structured", Flow(waiter))
key = os.environ.get("BIG_BRAIN_API_KEY")
brain.add_model(Model("gpt-4o-mini") if key else ScriptedModel(learns, repeat=True))

if __name__ == "__main__":
    brain.serve()
