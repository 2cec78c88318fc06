"""A brain's models: registered under tags, found by tags, and the ladder that says which one is asked.

The ladder: the agent's own model, its flow's, the nearest group's, the brain's
default, the first one registered. A reference without tags, such as
`model(temperature=0.9)`, is a rung too: it changes how the model from further down is asked.

What is found brings its fallbacks with it, their references looked up. A fallback of a
fallback comes after it; a model that comes twice is asked once, so two may stand in for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, get_type_hints

from bigbrain.errors import WiringError
from bigbrain.messages import JSON
from bigbrain.models.asks import Asks
from bigbrain.models.spec import Knobs, Manner, Model, ModelRef

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
        """The model itself: the first added that has all the tags, with the reference's knobs, and its fallbacks in line.

        Raises `WiringError` when no model has them, when there is none at all, or when a fallback's tags are unknown.
        """
        return self._in_line(self._found(wanted), wanted.knobs if isinstance(wanted, ModelRef) else Knobs())

    def ladder(self, *candidates: Askable | ModelRef | None) -> Askable | None:
        """The model to ask, from the candidates (agent, flow, groups; nearest first), the default, the first added.

        None when there is no model at all. Raises `WiringError` for unknown tags, also those of fallbacks.
        """
        knobs = Knobs()
        for candidate in (*candidates, self.default):
            if candidate is None:
                continue
            if isinstance(candidate, ModelRef):
                knobs = {**candidate.knobs, **knobs}
                if not candidate.tags:
                    continue
            return self._in_line(self._found(candidate), knobs)
        return None

    def _found(self, wanted: Askable | ModelRef) -> Askable:
        if not isinstance(wanted, ModelRef):
            return wanted
        found = self._tagged(wanted.tags) if wanted.tags else self.default
        if found is None:
            raise WiringError("no model is registered; add one with `brain.add_model(…)`")
        return found

    def _in_line(self, model: Askable, knobs: Knobs) -> Askable:
        """A model asked with these knobs, its fallbacks all of them and without references.

        What answers by itself is not asked otherwise by any knob.
        """
        if not isinstance(model, Model):
            return model
        asked = model.having(**knobs)
        _, *others = in_line(asked, lambda ref: _having(self._found(ref), ref.knobs))
        manner: dict[str, JSON] = {name: value for name, value in knobs.items() if name in _MANNER}
        return asked.having(fallbacks=tuple(_having(other, manner) for other in others))

    def _tagged(self, wanted: tuple[str, ...]) -> Askable:
        for entry, tags in self._entries:
            if tags.issuperset(wanted):
                return entry
        asked = ", ".join(f"`{tag}`" for tag in wanted)
        known = ", ".join(f"`{tag}`" for tag in self.tags) or "none"
        raise WiringError(f"no model has the tags {asked}; known tags: {known}")


_MANNER = frozenset(get_type_hints(Manner))


def _having(model: Askable, knobs: dict[str, JSON] | Knobs) -> Askable:
    return model.having(**knobs) if isinstance(model, Model) else model


def in_line(model: Model, resolve: Callable[[ModelRef], Askable]) -> list[Askable]:
    """The model and its fallbacks as they are asked: each before its own fallbacks, each once and without any.

    Raises `WiringError`, with the model whose fallback it is, when `resolve` does.
    """
    line: list[Askable] = []

    def add(each: Askable) -> None:
        if not isinstance(each, Model):
            line.extend([each] if each not in line else [])
            return
        alone = each.having(fallbacks=())
        if alone in line:
            return
        line.append(alone)
        for fallback in each.fallbacks:
            add(_looked_up(each, fallback, resolve))

    add(model)
    return line


def _looked_up(model: Model, fallback: Askable | ModelRef, resolve: Callable[[ModelRef], Askable]) -> Askable:
    try:
        return resolve(fallback) if isinstance(fallback, ModelRef) else fallback
    except WiringError as exc:
        raise WiringError(*(f"a fallback of model `{model.name}`: {fault}" for fault in exc.faults)) from exc
