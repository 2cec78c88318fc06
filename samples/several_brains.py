"""Several flows behind one address: the client picks one with the `model` of its request.

    python -m samples.several_brains

`chat`, and every name that is not known, answers "At your service."; `acme/coder` answers "def answer(): return 42";
`acme/adder` needs no model: asked "1 and 2 and 39" it answers "42". `GET /v1/models` lists the three.
With `Brain(…, strict_models=True)` an unknown name would be refused with 404.
Without `BIG_BRAIN_API_KEY` fixed answers stand in for the models.
"""

import os
import re

from bigbrain import Brain, Budget, Chat, FixedModel, Flow, Model, Turn, agent, model


@agent
def adder(turn: Turn, chat: Chat) -> None:
    turn.reply(str(sum(int(number) for number in re.findall(r"\d+", turn.last.text))))


talk = Flow(role="You are Jarvis: warm, brief, lightly witty.", model=model("smart", temperature=0.7))
coder = Flow(role="Answer with code and nothing else.", model=model("code"), budget=Budget(tokens=50_000))

brain = Brain("chat", talk)  # the default flow
brain.add_flow(coder, name="acme/coder")
brain.add_flow(Flow(adder), name="acme/adder")

key = os.environ.get("BIG_BRAIN_API_KEY")
small = Model("gpt-4o-mini")
brain.add_model(Model("gpt-4o", fallbacks=[small]) if key else FixedModel("At your service."), tags="smart")
brain.add_model(small if key else FixedModel("def answer(): return 42"), tags=("code", "cheap"))

if __name__ == "__main__":
    brain.serve()
