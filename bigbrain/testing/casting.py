"""Who answers for a brain's models in a test: the same brain, asked elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TypeAlias

from bigbrain.brain import Brain
from bigbrain.errors import WiringError
from bigbrain.models import Askable, Asks, Model, ModelRef, Models
from bigbrain.models.fallbacks import Fallbacks
from bigbrain.models.registry import in_line
from bigbrain.settings import Settings

Cast: TypeAlias = Asks | Mapping[str, Asks]
"""What answers for every model of a brain, or what answers for each, by the models' names."""


def cast(brain: Brain, models: Cast, settings: Settings) -> Brain:
    """The same brain, its models played by others; the brain itself stays as it is."""
    played = copy(brain)
    played.models = _Played(brain.models, models, settings)
    return played


class _Played(Models):
    """A registry that finds what the real one finds, and gives the one who plays it.

    It inherits because a brain is compiled against `Models` itself; it has no entries of its own.
    """

    def __init__(self, real: Models, models: Cast, settings: Settings) -> None:
        super().__init__()
        self._real = real
        self._models = models
        self._settings = settings

    def ladder(self, *candidates: Askable | ModelRef | None) -> Askable | None:
        """As the real one. Raises `WiringError` for a model that nobody plays: a test must not call a server unawares."""
        found = self._real.ladder(*candidates)
        if found is None and self._settings.model:
            found = Model(self._settings.model)
        if found is None:
            return None
        if not isinstance(self._models, Mapping):
            return self._models
        if not isinstance(found, Model):
            return found
        # the fallbacks of a model that was found are no references any more
        line = [(_name(each), self._player(each, self._models)) for each in in_line(found, self._real.resolve)]
        return Fallbacks(line) if len(line) > 1 else line[0][1]

    @staticmethod
    def _player(model: Askable, models: Mapping[str, Asks]) -> Asks:
        if not isinstance(model, Model):
            return model
        if model.name not in models:
            raise WiringError(f"nobody plays the model `{model.name}`: add it to `models`")
        return models[model.name]


def _name(model: Askable) -> str:
    return str(getattr(model, "name", type(model).__name__))
