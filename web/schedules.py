"""`/v1/schedules`: what a key's requests, and with the first key the brain itself, are going to have done.

A key sees its own schedules only; the brain's own, that stand in its code, belong to the first key, as their runs do.
"""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, Response, jsonify, request
from msgspec.structs import asdict

from bigbrain.engine.records import Schedule
from bigbrain.engine.schedules import Dead
from bigbrain.errors import NotFound, WireError
from bigbrain.events import Failed
from bigbrain.identity import Identity, bare
from bigbrain.messages import JSON
from bigbrain.schedules import Schedules
from web.arrivals import scope
from web.failures import write_failure

PAGE = 20
LONGEST_PAGE = 100


def routes(schedules: Callable[[str], Schedules]) -> Blueprint:
    """All routes of `/v1/schedules`; `schedules` gives those of a scope."""
    blueprint = Blueprint("schedules", __name__)

    def found(id: str) -> Schedule:
        one = schedules(scope()).get(id)
        if one is None:
            raise NotFound(f"there is no schedule `{id[:128]}`; `/v1/schedules` lists those there are", param="id")
        return one

    @blueprint.get("/v1/schedules")
    def schedules_listed() -> Response:
        """The schedules, newest first."""
        limit, (made, last) = _read_limit(), _read_place()
        page = schedules(scope()).page(limit, made, last)
        more = len(page) > limit
        return jsonify(
            object="list",
            data=[_write(one) for one in page[:limit]],
            has_more=more,
            after=f"{page[limit - 1].made}-{page[limit - 1].id}" if more else None,
        )

    @blueprint.get("/v1/schedules/<id>")
    def schedule_shown(id: str) -> Response:
        """One schedule."""
        return jsonify(_write(found(id)))

    @blueprint.post("/v1/schedules/<id>/cancel")
    def schedule_cancelled(id: str) -> Response:
        """Has a schedule fire no more; it as it was."""
        one = found(id)
        if not schedules(scope()).cancel(id):
            return write_failure(Failed("schedule_over", "the schedule would not fire any more", status=409))
        return jsonify({**_write(one), "due": None})

    @blueprint.post("/v1/schedules/<id>/run")
    def schedule_run(id: str) -> Response:
        """Fires a schedule beside its order; the id of the run."""
        run_id = schedules(scope()).run_now(found(id).id)
        return jsonify(object="schedule.run", schedule=id, run=bare(run_id) if run_id else None)

    @blueprint.get("/v1/schedules/dead")
    def dead_listed() -> Response:
        """The firings that failed for good, newest first."""
        rows = schedules(scope()).dead(_read_limit())
        return jsonify(object="list", data=[_write_dead(one) for one in rows])

    @blueprint.post("/v1/schedules/dead/<run_id>/retry")
    def dead_retried(run_id: str) -> Response:
        """Has a firing that failed for good go on from its last completed step."""
        if not schedules(scope()).retry(Identity(run_id, scope()).key):
            said = (
                f"there is no firing `{run_id[:128]}` that failed for good; `/v1/schedules/dead` lists those there are"
            )
            raise NotFound(said, param="run_id")
        return jsonify(object="schedule.run", run=run_id)

    return blueprint


def _write(one: Schedule) -> dict[str, JSON]:
    fields = asdict(one)
    del fields["scope"]
    return {"object": "schedule", **fields, "run": bare(one.run) if one.run else None, "brain": one.brain or None}


def _write_dead(one: Dead) -> dict[str, JSON]:
    return {
        "object": "schedule.run",
        "run": bare(one.run),
        "schedule": one.schedule,
        "flow": one.flow,
        "failed": one.at,
        # its `detail` is for the author, and stays in the record
        "error": {name: one.error.get(name, "") for name in ("code", "message")},
    }


def _read_limit() -> int:
    text = request.args.get("limit", str(PAGE))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= LONGEST_PAGE):
        raise WireError(f"`limit` must be a whole number from 1 to {LONGEST_PAGE}", param="limit")
    return int(text)


def _read_place() -> tuple[int | None, str]:
    after = request.args.get("after", "")
    made, dash, id = after.partition("-")
    if after and not (dash and made.isascii() and made.isdigit() and len(made) < 16):
        raise WireError("`after` must be what an earlier page gave", param="after")
    return (int(made) if after else None), id
