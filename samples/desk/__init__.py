"""The desk of a small shop: agents with sub-agents, one orchestrator over each of two backends. Its README says how.

    python -m samples.desk

`desk` asks a model. `desk-claude` is the same desk with the Claude Code CLI in the model's place; it is there
where the CLI is.
"""

import os
import shutil
import uuid

from bigbrain import Brain, Flow, Model, respond
from bigbrain.orchestrator import Orchestrator
from samples.desk.agents import orders, shop
from samples.desk.stand_in import or_stand_in

MANNERS = "Answer in one short sentence. Name every price in EUR."

by_model = Orchestrator([orders, shop], name="desk", optional_prompt=MANNERS, max_steps=12)
brain = Brain("desk", Flow(by_model).named("desk").durable(retries=1) >> respond)
brain.add_model(or_stand_in(Model("gpt-4o")))

if shutil.which("claude"):
    # One session is one conversation: the CLI remembers it, whoever asks. So this one is for yourself alone.
    session = os.environ.get("DESK_SESSION", str(uuid.uuid5(uuid.NAMESPACE_DNS, "desk.bigbrain")))
    by_cli = Orchestrator(
        [orders, shop], name="desk", optional_prompt=MANNERS, max_steps=12, backend="claude_code", session_id=session
    )
    brain.add_flow(Flow(by_cli).named("desk").durable() >> respond, name="desk-claude")
