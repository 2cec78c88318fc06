"""The smallest brain: a model in a role, served to every OpenAI and Anthropic client.

    python -m samples.hello

Then ask it, in either protocol:

    curl -s localhost:8080/v1/chat/completions -H 'content-type: application/json' \\
         -d '{"messages": [{"role": "user", "content": "hello there"}]}'
    curl -s localhost:8080/v1/messages -H 'content-type: application/json' \\
         -d '{"messages": [{"role": "user", "content": "hello there"}], "max_tokens": 100}'

Without `BIG_BRAIN_API_KEY` a fixed answer stands in for the model: "At your service."
"""

import os

from bigbrain import Brain, FixedModel, Flow, Model

brain = Brain("hello", Flow(role="You are Jarvis: warm, brief, lightly witty."))
brain.add_model(Model("gpt-4o-mini") if os.environ.get("BIG_BRAIN_API_KEY") else FixedModel("At your service."))

if __name__ == "__main__":
    brain.serve()
