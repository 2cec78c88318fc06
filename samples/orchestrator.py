"""An orchestrator: a model that finds its way through agents and their tools, served as a model itself.

    python -m samples.orchestrator

Asked "When was User 1 born?" the model asks what the user agent can do, calls its tool and answers
"User 1 was born in 2001." Asked "When was User 9 born?" it finds nobody and says "I know no such user."
Without `BIG_BRAIN_API_KEY` a stand-in replies as a model would, step by step.
"""

import json
import os
import re

from bigbrain import Brain, Flow, Model, Request
from bigbrain.orchestrator import Agent, Orchestrator, Tool
from bigbrain.testing import ScriptedModel

USERS = {"User 1": {"name": "User 1", "born": 2001, "wife": "User 2"}}


def retrieve(name: str) -> str:
    return json.dumps(USERS[name]) if name in USERS else ""


retriever = Tool(
    tag="user-retriever",
    description="Retrieve a user's information from its name",
    input="The user's name",
    output="A JSON object with the user's info, or empty string if not found",
    call=retrieve,
)
users = Agent("user-agent", "You are a useful assistant that answers questions about users.", [retriever])


def steps(request: Request) -> str:
    """What a model would reply: it describes, calls and finishes."""
    talk = [message.text for message in request.messages]
    if not talk[-1].startswith("Result of"):
        return '{"action": "describe", "agent": "user-agent"}'
    if "describe" in talk[-1].partition("\n")[0]:
        asked = re.findall(r"User \d+", talk[-3])[0]
        return json.dumps({"action": "call", "agent": "user-agent", "tool": "user-retriever", "input": asked})
    found = talk[-1].partition("\n")[2]
    user = json.loads(found) if found else None
    answer = f"{user['name']} was born in {user['born']}." if user else "I know no such user."
    return json.dumps({"action": "finish", "answer": answer})


key = os.environ.get("BIG_BRAIN_API_KEY")
model = Model("gpt-4o") if key else ScriptedModel(steps, repeat=True)
orchestrator = Orchestrator([users], model=model, max_steps=10)
brain = Brain("orchestrator", Flow(orchestrator).named("users").durable())

if __name__ == "__main__":
    brain.serve()
