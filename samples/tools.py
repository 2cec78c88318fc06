"""Inner tools: the model calls them, your functions run, and the client sees only the answer.

    python -m samples.tools

Asked "how warm is it?" the model reads a sensor first and answers "The temperature is 21.5."
Asked "how loud is it?" it asks for a sensor that is not there, reads that it is not, and says so:
"I have no such sensor." Without `BIG_BRAIN_API_KEY` a stand-in calls the tool as a model would.
"""

import json
import os
from typing import Annotated

from bigbrain import Brain, Chat, Doc, Flow, Model, Request, ToolCall, Turn, agent, tool
from bigbrain.testing import Says, ScriptedModel

SENSORS = {"temperature": 21.5, "humidity": 40.0}


@tool
def read_sensor(sensor: Annotated[str, Doc("its name, such as temperature or humidity")]) -> float:
    """Read one of the house sensors."""
    if sensor not in SENSORS:
        raise ValueError(f"there is no sensor {sensor}; there are {', '.join(SENSORS)}")  # the model reads this
    return SENSORS[sensor]


@tool(timeout=5)
def set_device(device: str, on: bool) -> dict[str, bool]:
    """Switch a device on or off."""
    return {device: on}


@agent(role="You run the house.")
def house(turn: Turn, chat: Chat) -> None:
    turn.reply(chat.resolve(*turn.messages, tools=[read_sensor, set_device]))


def uses_the_sensor(request: Request) -> str | Says:
    last = request.messages[-1]
    if not last.results:
        sensor = "loudness" if "loud" in last.text else "temperature"
        return Says(calls=(ToolCall("call-1", "read_sensor", json.dumps({"sensor": sensor})),))
    result = last.results[0]
    return "I have no such sensor." if result.is_error else f"The temperature is {result.text}."


brain = Brain("tools", Flow(house))
key = os.environ.get("BIG_BRAIN_API_KEY")
brain.add_model(Model("gpt-4o-mini") if key else ScriptedModel(uses_the_sensor, repeat=True))

if __name__ == "__main__":
    brain.serve()
