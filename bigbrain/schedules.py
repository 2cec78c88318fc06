"""What a brain is going to do: its schedules, for handlers, for `/v1/schedules` and for the command line."""

from __future__ import annotations

from uuid import uuid4

import redis

from bigbrain.engine.firing import run_id_of
from bigbrain.engine.records import Schedule
from bigbrain.engine.schedules import Dead, Firing, ScheduleStore
from bigbrain.engine.store import RunStore


class Schedules:
    """The schedules of a deployment, those of a brain's code and those that runs have made.

    A brain can ask its model which one is meant, and cancel it. Methods raise `redis.RedisError` when Redis is away.
    """

    def __init__(self, client: redis.Redis, *, scope: str = "", store: ScheduleStore | None = None) -> None:
        """client: the deployment's Redis. scope: whose schedules, by default everybody's."""
        self._store = store or ScheduleStore(client)
        self._runs = RunStore(client)
        self._scope = scope

    def list(self, limit: int = 100, *, after: Schedule | None = None) -> tuple[Schedule, ...]:
        """The schedules, newest first, at most so many; after: go on behind this one."""
        return self.page(limit, after.made if after else None, after.id if after else "")[:limit]

    def page(self, limit: int, made: int | None = None, id: str = "") -> tuple[Schedule, ...]:
        """Schedules, newest first, one more than `limit` when there are more.

        made, id: go on behind the one that was made then (ms since 1970) under that id.
        """
        return tuple(self._store.page(self._scope, limit, made, id))

    def get(self, id: str) -> Schedule | None:
        """One schedule; None when there is none of that id."""
        return self._store.one(id, self._scope)

    def cancel(self, id: str) -> bool:
        """Has a schedule fire no more; False when there is none of that id that would.

        One that a run has made is gone then; one that stands in the brain's code stays listed as cancelled until
        its timing in the code is changed. Runs that are under way go on.
        """
        return self._store.cancel(id, self._scope)

    def run_now(self, id: str) -> str | None:
        """Fires a schedule beside its order, whatever is under way: the id of the run; None when there is none of that id.

        The run begins within a second, wherever what is due is looked for.
        """
        found = self.get(id)
        if found is None:
            return None
        now = self._store.now()
        run_id = f"{run_id_of(found.scope, id, now)}:{uuid4().hex[:8]}"
        return run_id if self._store.run_now(id, Firing(now, run_id), self._scope) else None

    def dead(self, limit: int = 100) -> tuple[Dead, ...]:
        """The firings that failed for good, newest first, at most so many; they are kept for 30 days."""
        return tuple(self._store.dead(self._scope, limit))

    def retry(self, run_id: str) -> bool:
        """Has a firing that failed for good go on from its last completed step; False when it is none of these."""
        return self._store.revive(self._scope, run_id) and self._runs.retry(run_id)
