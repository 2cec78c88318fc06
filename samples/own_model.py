"""Your own models behind one brain: any OpenAI-compatible server, and an Anthropic one beside it.

    OPENAI_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=llama3.2 \\
    ANTHROPIC_URL=https://api.anthropic.com ANTHROPIC_MODEL=claude-haiku-4-5 ANTHROPIC_KEY=… \\
    python -m samples.own_model

A request for the model `own` is answered by the first server, one for `second` by the
other, in whichever protocol the client speaks. Each model has its own address and key.
"""

import os

from bigbrain import Brain, Flow, Model, model

brain = Brain("own", Flow(model=model("local")))
brain.add_flow(Flow(role="Answer in one sentence.", model=model("careful")), name="second")

brain.add_model(
    Model(
        os.environ.get("OPENAI_MODEL", "llama3.2"),
        base_url=os.environ.get("OPENAI_URL", "http://127.0.0.1:11434/v1"),
        temperature=0.3,
        timeout=120,
    ),
    tags=("local", "cheap"),
)
brain.add_model(
    Model(
        os.environ.get("ANTHROPIC_MODEL", "claude-haiku-4-5"),
        provider="anthropic",
        base_url=os.environ.get("ANTHROPIC_URL", "https://api.anthropic.com"),
        api_key=os.environ.get("ANTHROPIC_KEY", "none"),
        max_tokens=2000,
        retries=1,
    ),
    tags="careful",
)

if __name__ == "__main__":
    brain.serve()
