"""The brain that runs when none is named: it needs no key, and uses one where there is one."""

from __future__ import annotations

from bigbrain.brain import Brain
from bigbrain.flows import Flow
from bigbrain.models import FixedModel, Model
from bigbrain.settings import Settings

WELCOME = (
    "At your service. I am the demo brain of bigbrain, and this is all that I can say by myself. "
    "Set BIG_BRAIN_API_KEY, and a real model answers through me; write a brain of your own, and it does."
)

settings = Settings.read()
brain = Brain("demo", Flow(role="You are the demo brain of bigbrain: warm and brief.").named("talk"))
if settings.api_key or settings.base_url:
    brain.add_model(Model(settings.model or "gpt-4o-mini"))
elif settings.anthropic_api_key or settings.anthropic_base_url:
    brain.add_model(Model(settings.model or "claude-haiku-4-5", provider="anthropic"))
else:
    brain.add_model(FixedModel(WELCOME, delay=0.02))
