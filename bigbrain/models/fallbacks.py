"""Several models for one question: the next one is asked when one fails before any of its answer was used.

Every `ModelError` counts, because each may be this one server's alone: its limits, its
faults, our key there, a request that only it refuses, a context that is only its own
too small. Each model first makes its own retries; one that should give up sooner has
fewer. Once something of an answer was given, its failure is raised and nobody else is
asked. What the answer's `Started` names is the model that gave it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import closing
from copy import copy

from bigbrain.errors import ContextTooLong, ModelError
from bigbrain.events import Event
from bigbrain.messages import Request
from bigbrain.models.asks import Asks, settled
from bigbrain.scope import Scope

logger = logging.getLogger(__name__)


class Fallbacks:
    """Models, each under a name for people, in the order in which they are asked; keeps the promises of `Asks.ask`."""

    def __init__(self, line: Sequence[tuple[str, Asks]]) -> None:
        """line: at least one."""
        self._line = tuple(line)

    def __repr__(self) -> str:
        return f"Fallbacks({', '.join(name for name, _ in self._line)})"

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        """Ask the models until one answers; see `Asks.ask`.

        Raises, when all failed, the most telling error with the words of each: one after
        which a retry may help, else that the conversation is too long, else the last one.
        """
        failures: list[tuple[str, ModelError]] = []
        for name, asked in self._line:
            given = False
            try:
                with closing(asked.ask(request, scope)) as events:
                    for event in settled(events):
                        given = True
                        yield event
                return
            except ModelError as error:
                if given:
                    raise
                logger.warning("model `%s` failed and its fallback is asked, if it has one: %s", name, error)
                failures.append((name, error))
            scope.check()
        cause = _most_telling([error for _, error in failures])
        raise _of_all(cause, failures) from cause


def _most_telling(errors: Sequence[ModelError]) -> ModelError:
    for error in errors:
        if error.retryable:
            return error
    return next((error for error in errors if isinstance(error, ContextTooLong)), errors[-1])


def _of_all(cause: ModelError, failures: Sequence[tuple[str, ModelError]]) -> ModelError:
    """The error that stands for all: of the kind of `cause`, to be tried again when the first of them may be."""
    error = copy(cause)
    words = "; ".join(f"`{name}`: {type(each).__name__}: {each}" for name, each in failures)
    error.args = (f"none of {len(failures)} models answered: {words}",)
    # Of the retryable ones only: a refusal's waiting time, if it has one, leads to the same refusal.
    waits = [each.retry_after for _, each in failures if each.retryable and each.retry_after is not None]
    error.retry_after = min(waits, default=None)
    return error
