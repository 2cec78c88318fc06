"""Outer tools: the client's own tools reach the model, and the model's calls reach the client.

    python -m samples.forward_tools

A client that sends the tool `get_weather` and asks "will it rain?" gets the call `get_weather(city="Paris")`; it
runs it and sends the conversation again with the result "sunny", and reads "In Paris: sunny." Nothing is kept here
in between. The brain's own tool `today` never reaches the client: asked "what day is it?" the answer is "It is Monday."
Without `BIG_BRAIN_API_KEY` a stand-in calls the tools as a model would.
"""

import os

from bigbrain import Brain, Chat, Flow, Model, Request, ToolCall, Turn, agent, tool
from bigbrain.testing import Says, ScriptedModel


@tool
def today() -> str:
    """Tell which day of the week it is."""
    return "Monday"


@agent
def assistant(turn: Turn, chat: Chat) -> None:
    reply = chat.resolve(*turn.messages, tools=[today], forward=True)  # forward: the client's tools and choice, too
    turn.reply(reply)
    turn.call(*reply.calls)  # what no function here could run is the client's to run


def calls_what_fits(request: Request) -> str | Says:
    last = request.messages[-1]
    tools = {one.name for one in request.tools}
    if last.results:
        result = last.results[0].text
        return "It is Monday." if result == "Monday" else f"In Paris: {result}."
    if "rain" in last.text and "get_weather" in tools:
        return Says(calls=(ToolCall("call-1", "get_weather", '{"city": "Paris"}'),))
    if "day" in last.text:
        return Says(calls=(ToolCall("call-1", "today", "{}"),))
    return "I cannot tell without a tool for it."


# A flow without an agent, `Flow()`, forwards just as well: it is as transparent as the model behind it.
brain = Brain("forward_tools", Flow(assistant))
key = os.environ.get("BIG_BRAIN_API_KEY")
brain.add_model(Model("gpt-4o-mini") if key else ScriptedModel(calls_what_fits, repeat=True))

if __name__ == "__main__":
    brain.serve()
