"""Answers of the Responses API that are on record: found by their ids, told again, gone on from.

A response is a run: its id is `resp_` and the run's, and it is there for the key that asked for it, as
long as the run is on record. Items are named after their response, so an item's id leads to its run too.
One that was not to be stored is not there, whatever else its run is needed for.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bigbrain.engine.history import Told
from bigbrain.errors import NotFound, RunCancelled, TooLarge, WireError
from bigbrain.events import Failed, Finished, Started, collect
from bigbrain.identity import Identity, is_run_id
from bigbrain.messages import JSON, Request, Response
from bigbrain.reception import Reception
from bigbrain.wire import openai_responses
from web.arrivals import scope
from web.protocols import RESPONSES


class PreviousNotFound(WireError):
    """Raised when a request goes on from a response that is not stored, or cannot be gone on from."""

    code = "previous_response_not_found"


@dataclass(frozen=True)
class StoredAnswer:
    """One response on record: the run's key, what was asked, what was said so far, and how the run stands."""

    key: str
    asked: Request
    answer: Response
    told: Told

    @property
    def first(self) -> Started:
        """How its stream begins."""
        return Started(self.answer.id, self.answer.model, self.answer.created)

    @property
    def failed(self) -> Failed | None:
        """Why there is no answer."""
        last = self.told.events[-1]
        return last if isinstance(last, Failed) and self.answer.stop is None else None

    @property
    def status(self) -> str:
        """The response's status, which is that of the answer and not of what the run does after it."""
        if self.answer.stop is not None:
            return "incomplete" if openai_responses.reason_of(self.answer) else "completed"
        if self.failed is not None:
            return "cancelled" if self.failed.code == RunCancelled.code else "failed"
        return "queued" if self.told.status == "queued" else "in_progress"

    def document(self) -> dict[str, JSON]:
        """The response object as it is now."""
        failed = None if self.status == "cancelled" else self.failed
        return openai_responses.write_document(self.answer, self.asked, self.status, failed)


class StoredAnswers:
    """The stored responses of the current request's key."""

    def __init__(self, reception: Reception, max_messages: int) -> None:
        """max_messages: of how many a conversation may be."""
        self._history = reception.history
        self._max_messages = max_messages

    def find(self, response_id: str) -> StoredAnswer:
        """One response. Raises `NotFound` when the key has none of that id, or it was not to be stored."""
        found = self._look_up(response_id)
        if found is None:
            raise NotFound(f"Response with id '{response_id[:200]}' not found.", param="response_id")
        return found

    def _look_up(self, response_id: str) -> StoredAnswer | None:
        run_id = response_id.removeprefix(RESPONSES.prefix)
        if run_id == response_id or not is_run_id(run_id):
            return None
        key = Identity(run_id, scope()).key
        told = self._history.told(key)
        if told is None:
            return None
        asked = msgspec.json.decode(told.request, type=Request)
        if not openai_responses.is_kept(asked):
            return None
        answer = msgspec.structs.replace(collect(told.events), id=response_id)
        return StoredAnswer(key, asked, answer, told)

    def read(self, body: JSON) -> Request:
        """A request of the protocol with all that it only names.

        Raises `WireError` when it is none, or names what is not there, `TooLarge` when the conversation is over the cap.
        """
        asked = openai_responses.kept(openai_responses.read_request(openai_responses.with_items(body, self._item)))
        previous = openai_responses.previous_of(asked)
        if not previous:
            return asked
        before = self._previous(previous)
        asked = openai_responses.chained(asked, before.asked, before.answer)
        if len(asked.messages) > self._max_messages:
            said = f"the conversation has {len(asked.messages)} messages, more than {self._max_messages}"
            raise TooLarge(f"{said}; begin a new one, or raise `BIG_BRAIN_MAX_MESSAGES`", param="previous_response_id")
        return asked

    def _previous(self, response_id: str) -> StoredAnswer:
        found = self._look_up(response_id)
        if found is None:
            raise PreviousNotFound(
                f"Previous response with id '{response_id[:200]}' not found.", param="previous_response_id"
            )
        if not any(isinstance(event, Finished) for event in found.told.events):
            raise PreviousNotFound(
                f"Previous response with id '{response_id[:200]}' is {found.status}; only an answer can be gone on from.",
                param="previous_response_id",
            )
        return found

    def _item(self, item_id: str) -> JSON:
        """The item of an id, which names its response and its place there; None when there is none."""
        run_id, _, place = item_id.partition("_")[2].rpartition("_")
        found = self._look_up(f"{RESPONSES.prefix}{run_id}") if place.isdecimal() else None
        items = openai_responses.write_output(found.answer, found.asked) if found else []
        return next((item for item in items if item["id"] == item_id), None)
