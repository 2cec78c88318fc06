"""Three ways to answer live; the client sees each word as it is made, and nobody writes a second branch for it.

    python -m samples.streaming

A bare flow streams what its model says. `turn.reply` takes any pieces of text. `turn.stream()`
is for a handler that wants to know whether it is live, here to shout the words as they come.
Asked for "go", the brain answers in three stages: "one two three", "4 5 6 ", "SEVEN EIGHT".
"""

from collections.abc import Iterator

from bigbrain import Brain, Chat, FixedModel, Flow, Turn, agent, respond

counting = Flow(model=FixedModel("one two three", delay=0.05))


@agent
def more(turn: Turn, chat: Chat) -> None:
    """Replies with pieces that it makes itself."""

    def pieces() -> Iterator[str]:
        for number in (4, 5, 6):
            yield f"{number} "

    turn.reply(pieces())


@agent(model=FixedModel("seven eight", delay=0.05))
def loud(turn: Turn, chat: Chat) -> None:
    """Changes each piece on its way to the client."""
    reply = chat.ask(turn.last)
    stream = turn.stream()
    if stream is None:
        turn.reply(reply.text.upper())
        return
    with stream:
        for piece in reply:
            stream.write(piece.upper())


brain = Brain("streaming", counting >> respond >> Flow(more) >> respond >> Flow(loud) >> respond)

if __name__ == "__main__":
    brain.serve()
