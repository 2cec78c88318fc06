"""Stages as a caller hears them who waits for nothing else, such as the sender of a webhook.

Such a run is quiet: its answer is what its stages deliver. A `respond` inside a group ends a stage for it as
well, when the group ends; and the answer is complete as soon as no stage can come any more, before the rest is done.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from bigbrain.compiling import Compiled, Members
from bigbrain.engine.plan import Item, Way, marks_in, steps_in
from bigbrain.engine.records import END


def may_respond(flow: Compiled, items: Sequence[Item]) -> bool:
    """Whether a run that goes through these items of a flow may come to a `respond`, those inside groups included."""
    works = (flow.bindings[step.path].work for step in steps_in(tuple(items)))
    groups = (work for work in works if isinstance(work, Members))
    return marks_in(tuple(items)) or any(
        may_respond(flow, member.items) for group in groups for member in group.members
    )


def heard(flow: Compiled, way: Way, *, responded: bool) -> Way:
    """A way of a quiet run. responded: the step that it comes from is a group in which somebody came to a `respond`."""
    more = way.more or (way.path != END and may_respond(flow, flow.plans[way.path].onward(way.path)))
    return replace(way, marks=way.marks or int(responded), more=more, speech=False)
