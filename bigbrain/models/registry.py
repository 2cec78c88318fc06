"""A brain's models: registered under tags, found by tags, and the ladder that says which one is asked.

The ladder: the agent's own model, its flow's, the nearest group's, the brain's
default, the first one registered. A reference without tags, such as
`model(temperature=0.9)`, is a rung too: it changes how the model from further down is asked.
"""

from __future__ import annotations

from typing import TypeAlias

from bigbrain.errors import WiringError
from bigbrain.models.asks import Asks
from bigbrain.models.spec import Knobs, Model, ModelRef

Askable: TypeAlias = Model | Asks
"""What can stand for a model: a `Model`, or anything that answers by itself, such as a `FixedModel`."""


class Models:
    """The models of one brain, in the order in which they were added."""

    def __init__(self) -> None:
        self._entries: list[tuple[Askable, set[str]]] = []
        self._default: Askable | None = None

    def add(self, model: Askable, tags: tuple[str, ...] | str = (), *, default: bool = False) -> None:
        """Register a model; adding an equal one again adds to its tags. `default` makes it the brain's default."""
        tags = (tags,) if isinstance(tags, str) else tags
        known = next((known for entry, known in self._entries if entry == model), None)
        if known is None:
            self._entries.append((model, set(tags)))
        else:
            known.update(tags)
        if default:
            self._default = model

    @property
    def default(self) -> Askable | None:
        """The model that is asked when nothing nearer names one: the default, else the first added, else None."""
        if self._default is not None:
            return self._default
        return self._entries[0][0] if self._entries else None

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, sorted."""
        return tuple(sorted(set().union(*(tags for _, tags in self._entries))))

    def resolve(self, wanted: Askable | ModelRef) -> Askable:
        """The model itself: the first added that has all the tags, with the reference's knobs.

        Raises `WiringError` when no model has them, or when there is none at all.
        """
        if not isinstance(wanted, ModelRef):
            return wanted
        found = self._tagged(wanted.tags) if wanted.tags else self.default
        if found is None:
            raise WiringError("no model is registered; add one with `brain.add_model(…)`")
        return _having(found, wanted.knobs)

    def ladder(self, *candidates: Askable | ModelRef | None) -> Askable | None:
        """The model to ask, from the candidates (agent, flow, groups; nearest first), the default, the first added.

        None when there is no model at all. Raises `WiringError` for unknown tags.
        """
        knobs = Knobs()
        for candidate in (*candidates, self.default):
            if isinstance(candidate, ModelRef) and not candidate.tags:
                knobs = {**candidate.knobs, **knobs}
            elif candidate is not None:
                return _having(self.resolve(candidate), knobs)
        return None

    def _tagged(self, wanted: tuple[str, ...]) -> Askable:
        for entry, tags in self._entries:
            if tags.issuperset(wanted):
                return entry
        asked = ", ".join(f"`{tag}`" for tag in wanted)
        known = ", ".join(f"`{tag}`" for tag in self.tags) or "none"
        raise WiringError(f"no model has the tags {asked}; known tags: {known}")


def _having(model: Askable, knobs: Knobs) -> Askable:
    """What answers by itself is not asked otherwise by any knob."""
    return model.having(**knobs) if isinstance(model, Model) and knobs else model
