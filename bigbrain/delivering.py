"""What of a step's words the client is given: live while they come, or when a stage ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bigbrain.answers import Answer
from bigbrain.engine.plan import Plan, Way
from bigbrain.events import Event
from bigbrain.messages import Message
from bigbrain.resuming import Continuing
from bigbrain.steps import OpenStep
from bigbrain.trace import Trail


def _emit(step: OpenStep) -> Callable[[Event], None]:
    """Where what is told live goes; a later attempt goes on where the client is."""
    if not step.claim.loose:
        return step.tape.write
    return Continuing.of(step.tape.write, step.claim.loose, step.state.given.parts, step.tape.rewind)


def live(step: OpenStep, plan: Plan) -> Answer | None:
    """The answer, if this step may give to it live: a stage ends after it, or the whole run without any stage."""
    state, path = step.state, step.claim.path
    if state.answered:
        return None
    if plan.stage_ends_after(path):
        return Answer(state.given, _emit(step), step.messages[state.told :])
    if state.quiet or state.responded or plan.marks_after(path) or plan.speech_after(path):
        return None
    # without any stage the answer is what the last flow says, and the others' words are not part of it
    return Answer(state.given, _emit(step))


def untold(step: OpenStep, way: Way, made: tuple[Message, ...], answer: Answer | None) -> Sequence[Message]:
    """The messages that the client is still to get when a stage or the run ends with this step."""
    earlier = step.messages[step.state.told :]
    if way.marks:
        return answer.backlog if answer is not None else (*earlier, *made)
    if step.state.responded or step.state.quiet:
        return ()
    # without any stage the answer is what the last flow said, or the last word there was when it said nothing
    if made:
        return () if answer is not None else made
    return earlier[-1:]


def tell_way(trail: Trail, selected: str | None, way: Way) -> None:
    """Tells of the way that a run takes: what was selected, what was not, the stages that end."""
    if selected is not None:
        trail.tell("select", id=selected)
    for fork in way.skipped:
        trail.tell("select.none", at=fork)
    for _ in range(way.marks):
        trail.tell("respond")
