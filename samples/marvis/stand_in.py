"""Who answers where there is no key: a model that knows a few words, and that much of English.

It sees what any model would see, a request with its messages, schema and tools, and answers in the same
form. Copy everything of Marvis but this.
"""

import json
import os
import re

from bigbrain import Model, Request, ToolCall
from bigbrain.testing import Says, ScriptedModel

WORDS = {
    "remember": r"^(please )?(remember|note that|don't forget)\b",
    "recall": r"what do you (know|remember)|did i tell you|do you remember",
    "list": r"\blist\b",
    "house": r"\b(lights?|heater|fan|temperature|warm|cold|humid\w*|switch|turn (on|off))\b",
    "extra": r"\b(calculate|code|essay|explain|prove|why)\b",
}
"""An intent → what in a message stands for it; the first that fits counts."""

DEVICES = ("porch light", "living light", "heater", "fan")


def or_stand_in(model: Model) -> Model | ScriptedModel:
    """The model itself where there is a key, or a server of your own; else the stand-in."""
    environment = os.environ.get("BIG_BRAIN_API_KEY") or os.environ.get("BIG_BRAIN_BASE_URL")
    return model if environment else ScriptedModel(answer, name="stand-in", repeat=True)


def answer(request: Request) -> str | Says:
    """What a model would say, more or less."""
    said = request.messages[-1].text
    match request.schema.name if request.schema else "":
        case "Choice":
            return json.dumps({"intent": intent_of(said), "reason": "a word in it"})
        case "Fact":
            return json.dumps({"fact": re.sub(f"{WORDS['remember']}( that)?\\s*", "", said, flags=re.IGNORECASE)})
        case "Errand":
            return json.dumps(errand_of(said))
    if request.tools:
        return in_the_house(request)
    known = [message.text for message in request.messages if message.text.startswith("What you know:\n")]
    if known:
        return f"You told me: {'; '.join(known[0].splitlines()[1:])}"
    return "Let me think about that." if intent_of(said) == "extra" else "At your service."


def intent_of(said: str) -> str:
    """The intent of a message."""
    return next((intent for intent, words in WORDS.items() if re.search(words, said, re.IGNORECASE)), "talk")


def errand_of(said: str) -> dict[str, str]:
    """What is to be done with which list: "add milk to the shopping list"."""
    found = re.search(r"\b(add|put|remove|take) (.+?) (?:to|on|from|off) (?:the |my )?(\w+) list", said, re.IGNORECASE)
    if found:
        return {"list": found[3], "op": "add" if found[1].lower() in ("add", "put") else "remove", "item": found[2]}
    name = re.search(r"(\w+) list", said, re.IGNORECASE)
    return {"list": name[1] if name else "shopping", "op": "show", "item": ""}


def in_the_house(request: Request) -> str | Says:
    """Calls the tools that fit; says what they said."""
    last = request.messages[-1]
    if last.results:
        told = ", ".join(result.text for result in last.results)
        return f"{told[:1].upper()}{told[1:]}."
    devices = [one for one in DEVICES if one in last.text] or [one for one in DEVICES if one.split()[-1] in last.text]
    wanted = [("set_device", {"device": one, "on": "off" not in last.text}) for one in devices]
    sensor = "humidity" if "humid" in last.text else "temperature"
    calls = wanted or [("read_sensor", {"sensor": sensor})]
    return Says(calls=tuple(ToolCall(f"call-{n}", name, json.dumps(args)) for n, (name, args) in enumerate(calls)))
