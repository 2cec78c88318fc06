"""The routes of OpenAI's Responses API: asked, shown, followed again, stopped, deleted.

A response is one of our runs (`stored.py`), so one in the background goes on without its client, outlives
a worker as its flows do, and is stopped as a run is. A stream that was cut is taken up with
`?stream=true&starting_after=N`: its frames are made anew from the run's log, the same under the same numbers.
"""

from __future__ import annotations

from contextlib import ExitStack

import msgspec
from flask import Blueprint, Response, jsonify, request

from bigbrain.errors import WireError
from bigbrain.messages import JSON
from bigbrain.reception import Reception
from bigbrain.wire import openai_responses
from web.anthropic import COUNTED_BY
from web.bodies import read_body
from web.departures import Client
from web.endpoints import Endpoints
from web.failures import UpgradeRequired, write_failure
from web.protocols import RESPONSES
from web.relay import STREAM_HEADERS, Frames, Relay, Stream
from web.runs import STILL_STOPPING, STOPPED_WITHIN
from web.stored import StoredAnswer, StoredAnswers

PAGE = 20
LONGEST_PAGE = 100


def routes(endpoints: Endpoints, reception: Reception, heartbeat: float) -> Blueprint:
    """All routes of `/v1/responses`. heartbeat: seconds of silence after which a stream says that it lives."""
    blueprint = Blueprint("responses", __name__)
    stored = StoredAnswers(reception, endpoints.limits.max_messages)
    desk = _Desk(endpoints, reception, heartbeat)

    @blueprint.route("/v1/responses", websocket=True)
    def responses_socket() -> Response:
        # Codex asks for a WebSocket first: only this status makes it send its request by POST at once
        raise UpgradeRequired

    @blueprint.post("/v1/responses")
    def created() -> Response:
        """A new response."""
        return endpoints.answer(RESPONSES, stored.read)

    @blueprint.post("/v1/responses/input_tokens")
    def input_tokens() -> Response:
        """How many tokens a question has."""
        count = endpoints.count(stored.read(read_body(request, endpoints.limits)))
        response = jsonify(object="response.input_tokens", input_tokens=count.tokens)
        response.headers[COUNTED_BY] = "model" if count.exact else "estimate"
        return response

    @blueprint.get("/v1/responses/<response_id>")
    def shown(response_id: str) -> Response:
        """A response as it is now, or its stream."""
        found = stored.find(response_id)
        if request.args.get("stream", "").lower() in ("true", "1"):
            return desk.follow(found, _read_number("starting_after", -1, 10**9))
        return _write(found.document())

    @blueprint.get("/v1/responses/<response_id>/input_items")
    def input_items(response_id: str) -> Response:
        """What a response answers."""
        return _write(_write_page(_input_items(stored.find(response_id))))

    @blueprint.post("/v1/responses/<response_id>/cancel")
    def cancelled(response_id: str) -> Response:
        """Stops a response."""
        found = stored.find(response_id)
        if found.answer.stop is None and found.failed is None and not desk.stop(found.key):
            return write_failure(STILL_STOPPING)
        return _write(stored.find(response_id).document())

    @blueprint.delete("/v1/responses/<response_id>")
    def deleted(response_id: str) -> Response:
        """Deletes a response."""
        found = stored.find(response_id)
        desk.delete(found)
        return jsonify(id=response_id, object="response", deleted=True)

    return blueprint


class _Desk:
    """What can be done with responses on record."""

    def __init__(self, endpoints: Endpoints, reception: Reception, heartbeat: float) -> None:
        self._visits = endpoints.visits
        self._reception = reception
        self._heartbeat = heartbeat

    def follow(self, found: StoredAnswer, after: int) -> Response:
        """The stream of a response behind the frame of number `after`."""
        client = Client()
        with ExitStack() as stack:
            stack.enter_context(self._visits.open(found.key, client))
            follower = stack.enter_context(self._reception.hub.follow(found.key, seq=1))
            follower.post("again")
            frames = Frames(openai_responses, found.asked, skip=after + 1)
            body = Stream(
                Relay(follower, client, self._heartbeat), frames, frames.write([found.first]), stack.pop_all().close
            )
            return Response(body, headers=STREAM_HEADERS, direct_passthrough=True)

    def stop(self, key: str) -> bool:
        """Whether the run has stopped, or was over."""
        self._reception.runs.store.stop(key)
        return self._reception.history.wait_over(key, STOPPED_WITHIN)

    def delete(self, found: StoredAnswer) -> None:
        """Makes a response unreadable at once; its run is stopped if its answer is owed, and forgotten when it is over."""
        history = self._reception.history
        history.hide(found.key)
        if found.told.ended:
            history.forget(found.key, found.told.ended)
        elif found.answer.stop is None:
            self._reception.runs.store.stop(found.key)


def _write(document: JSON) -> Response:
    return Response(msgspec.json.encode(document), content_type="application/json")


def _input_items(found: StoredAnswer) -> list[dict[str, JSON]]:
    """What the response answers, oldest first, each item under an id that is its own."""
    items = openai_responses.write_items(openai_responses.own_messages(found.asked), found.asked.tools)
    tail = found.answer.id.removeprefix(RESPONSES.prefix)
    return [{"id": f"in_{tail}_{place}", **item} for place, item in enumerate(items)]


def _write_page(items: list[dict[str, JSON]]) -> dict[str, JSON]:
    """The page of a list of items that the query asks for; the newest first, unless it says `order=asc`."""
    ordered = items if request.args.get("order") == "asc" else items[::-1]
    places = {str(item["id"]): place for place, item in enumerate(ordered)}
    after = request.args.get("after", "")
    if after and after not in places:
        raise WireError("`after` must be the id of an item of this response", param="after")
    rest = ordered[places[after] + 1 if after else 0 :]
    page = rest[: _read_number("limit", PAGE, LONGEST_PAGE, least=1)]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(page) < len(rest),
    }


def _read_number(name: str, default: int, most: int, *, least: int = 0) -> int:
    text = request.args.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and least <= int(text) <= most):
        raise WireError(f"`{name}` must be a whole number from {least} to {most}", param=name)
    return int(text)
