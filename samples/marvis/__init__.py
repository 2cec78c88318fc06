"""Marvis: an intent router and six capabilities, with a memory and a house. Its README says how to talk to it.

    python -m samples.marvis

Each message is classified by a small model, in a typed answer; the capability of that name does the
rest. Without a key a stand-in plays all models, so everything here answers and works.
"""

from bigbrain import Brain, Flow, Model, Select, respond
from samples.marvis.capabilities import errands, extra, recall, remember, talk
from samples.marvis.house import house
from samples.marvis.router import router
from samples.marvis.stand_in import or_stand_in

capabilities = Select(
    Flow(talk).named("talk"),
    Flow(remember).named("remember"),
    Flow(recall).named("recall"),
    Flow(errands).named("list"),
    Flow(house).named("house"),
    Flow(extra).named("extra"),
)

brain = Brain("marvis", Flow(router) >> capabilities >> respond)

# One small model under two tags. `talk` and `extra` bring models of their own; whoever names none gets this one.
brain.add_model(or_stand_in(Model("gpt-4o-mini", temperature=0.3)), tags=("cheap", "fast"))
