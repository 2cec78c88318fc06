"""Who replies where there is no key: a model that knows a few words, and goes its way as any model would.

It sees the task as a model sees it and replies with the same JSON, one step at a time.
"""

import json
import os
import re
from collections.abc import Callable, Sequence

from bigbrain import Model, Request
from bigbrain.testing import ScriptedModel

Action = dict[str, object]
End = Callable[[Sequence[str]], Action]

SUM = {"two": 2, "three": 3, "four": 4}


def or_stand_in(model: Model) -> Model | ScriptedModel:
    """The model itself where there is a key, or a server of your own; else the stand-in."""
    environment = os.environ.get("BIG_BRAIN_API_KEY") or os.environ.get("BIG_BRAIN_BASE_URL")
    return model if environment else ScriptedModel(step, name="stand-in", repeat=True)


def step(request: Request) -> str:
    """The next step: what is planned and not done yet, then the end."""
    talk = [message.text for message in request.messages if message.role == "user"]
    results: list[str] = []
    while talk and talk[-1].startswith(("Result of", "Error of")):
        results.insert(0, talk.pop().partition("\n")[2])
    actions, end = planned(talk[-1] if talk else "")
    return json.dumps(actions[len(results)] if len(results) < len(actions) else end(results))


def planned(asked: str) -> tuple[Sequence[Action], End]:
    """What is done for a question, one after the other, and how it ends: a function of what came of it."""
    number = (re.search(r"\d+", asked) or [""])[0]
    thing = "teapot" if "teapot" in asked else "cup"
    amount = next((count for word, count in SUM.items() if word in asked), 1)
    if "cost" in asked:
        way = [describe("shop"), describe("shop/prices"), call("shop/prices", "price", thing=thing, amount=amount)]
        return way, lambda results: finish(f"{amount} × {thing}: {results[-1]} EUR.")
    if "how many" in asked:
        way = [describe("shop"), describe("shop/stock"), call("shop/stock", "in_stock", thing=thing)]
        return way, lambda results: finish(f"There are {results[-1]}.")
    if "cancel" in asked:
        way = [describe("orders"), call("orders", "cancel-order", number=number, reason="too late")]
        return way, lambda results: finish(f"Done: {results[-1]}.")
    if number:
        find: Action = {"action": "call", "agent": "orders", "tool": "find-order", "input": number}
        return [describe("orders"), find], lambda results: finish(f"Order {number}: {state(results[-1])}.")
    return [], lambda _: {"action": "abort", "reason": "This desk knows orders, stock and prices only."}


def state(found: str) -> str:
    return str(json.loads(found)["state"]) if found.startswith("{") else found


def describe(agent: str) -> Action:
    return {"action": "describe", "agent": agent}


def call(agent: str, tool: str, **given: object) -> Action:
    return {"action": "call", "agent": agent, "tool": tool, "input": given}


def finish(answer: str) -> Action:
    return {"action": "finish", "answer": answer}
