"""Several flows at once: `All` keeps every reply, `One` the first that succeeds, `Group` lets members hear each other.

    python -m samples.concurrency

Whatever it is asked, it answers in three stages. Two models at once, in the order in which they are written:
"Tea." and "Coffee." The faster one of two, the other is stopped: "Now." Then a reader and a narrator who waits for it:
"21 degrees" and "It is warm: 21 degrees." Only fixed answers stand in for models here.
"""

from bigbrain import All, Brain, Chat, Checkpoint, FixedModel, Flow, Group, One, Turn, agent, respond

asked = All(
    Flow(model=FixedModel("Tea.", delay=0.05)),
    Flow(model=FixedModel("Coffee.")),
)
fastest = One(
    Flow(model=FixedModel("Much later.", delay=30)),
    Flow(model=FixedModel("Now.")),
)

measured = Checkpoint("measured")
"""Declared once; every run has its own."""


@agent
def reader(turn: Turn, chat: Chat) -> None:
    turn.reply("21 degrees")
    turn.reach(measured)


@agent
def narrator(turn: Turn, chat: Chat) -> None:
    turn.wait_for(measured)
    turn.reply(f"It is warm: {turn.last.text}.")


briefing = Group(Flow(narrator), Flow(reader))

brain = Brain("concurrency", asked >> respond >> fastest >> respond >> briefing >> respond)

if __name__ == "__main__":
    brain.serve()
