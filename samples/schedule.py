"""A brain that acts on its own: reminders when they were asked for, a word each evening, one when it comes up.

    bigbrain up samples.schedule

Asked for "in 10 minutes: tea" it says "I will remind you of tea in 10 minutes.", and then it does, in the log of the
worker. "forget tea" takes it back; to anything else it says "Of what, and in how many minutes?". What is going to happen is
shown by `bigbrain schedules list`; `bigbrain fire samples.schedule evening` has the evening come now.
"""

import re
from datetime import timedelta

from bigbrain import Brain, Chat, Every, Flow, Notify, Once, Turn, agent, respond


def wanted(text: str) -> tuple[int, str]:
    """In how many minutes to remind, 0 for none, and of what."""
    found = re.match(r"in (\d+) minutes?: (.+)", text)
    return (int(found[1]), found[2]) if found else (0, text.removeprefix("forget "))


def when(turn: Turn) -> timedelta | None:
    minutes, _ = wanted(turn.request.messages[-1].text)
    return timedelta(minutes=minutes) if minutes else None


@agent
def secretary(turn: Turn, chat: Chat) -> None:
    minutes, what = wanted(turn.last.text)
    if minutes:
        turn.reply(f"I will remind you of {what} in {minutes} minutes.")
        return
    planned = [one.id for one in brain.schedules.list() if one.trigger == "reminder" and wanted(one.about)[1] == what]
    forgotten = [id for id in planned if brain.schedules.cancel(id)]
    turn.reply(f"Forgotten: {what}." if forgotten else "Of what, and in how many minutes?")


@agent
def reminds(turn: Turn, chat: Chat) -> None:
    turn.reply(f"It is time for {wanted(turn.request.messages[-2].text)[1]}.")


@agent
def evening(turn: Turn, chat: Chat) -> None:
    turn.reply(f"Good night. Off: {', '.join(turn.payload(list[str]) or ['nothing'])}.")


@agent
def awake(turn: Turn, chat: Chat) -> None:
    turn.reply("Awake.")


brain = Brain("schedule", Flow(secretary) >> respond >> Once(when) >> Flow(reminds).named("reminder") >> Notify(print))
nightly = Every("30 22 * * *", tz="Europe/Berlin") >> Flow(evening).named("evening") >> Notify(print)
brain.add_trigger(nightly, seed_payload=["porch", "kitchen"])
brain.add_trigger(Flow(awake).named("up") >> Notify(print))

if __name__ == "__main__":
    brain.serve()
