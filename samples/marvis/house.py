"""The house: two sensors and four devices that only pretend, and the agent that works them with tools.

The devices are kept in Marvis's store, so that whatever worker switches one, all see it. A house of
your own goes where `read_sensor` and `set_device` have their bodies.
"""

from typing import Annotated, Literal

from bigbrain import Chat, Doc, Turn, agent, model, tool
from samples.marvis.memory import store

Device = Literal["porch light", "living light", "heater", "fan"]
Sensor = Literal["temperature", "humidity"]


def is_on(device: Device) -> bool:
    """Whether a device is on."""
    return store.get(f"device:{device}", bool, default=False)


@tool
def read_sensor(sensor: Sensor) -> str:
    """Read one of the house's sensors."""
    temperature = 20.0 + 2.5 * is_on("heater") - 1.0 * is_on("fan")
    if sensor == "temperature":
        return f"the temperature is {temperature}°C"
    return f"the humidity is {round(72 - temperature)}%"


@tool
def set_device(device: Device, on: Annotated[bool, Doc("true switches it on, false off")]) -> str:
    """Switch one of the house's devices."""
    store.put(f"device:{device}", on)
    return f"the {device} is {'on' if on else 'off'}"


@agent(
    model=model("fast"),
    role="You run the house. Use the tools, then say in one sentence what is so now. What they cannot do, you cannot.",
)
def house(turn: Turn, chat: Chat) -> None:
    """Lets the model read and switch until it has an answer."""
    turn.reply(chat.resolve(*turn.messages, tools=[read_sensor, set_device], aloud=False))
