"""Celery's beat as one more that fires what is due: `celery -A workers beat`.

The schedules are in Redis, and whoever looks first claims an instant there, so any number of these may run beside
the workers, which do the same; each of them alone is enough. Nothing is kept in a file, and no message is sent to have
somebody look. The brain is built when something is due for the first time: an idle beat does without it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import redis
from celery.beat import Scheduler

from bigbrain.engine.firing import Clockwork
from bigbrain.engine.plan import Step
from bigbrain.engine.records import NewRun
from bigbrain.engine.runs import SOONEST, Runs
from bigbrain.engine.schedules import Start
from bigbrain.engine.server import connect
from bigbrain.engine.store import RunStore
from bigbrain.initiative import start_fired
from bigbrain.messages import JSON
from bigbrain.settings import Settings
from workers.chains import CeleryQueue
from workers.process import process

logger = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two looks while nothing is known to be due sooner."""


class Unbuilt:
    """The brain, built when it is first asked for."""

    def ahead(self, flow: str, path: str) -> tuple[Sequence[Step], bool]:
        """See `Plans`."""
        return process.program().ahead(flow, path)

    def begin(self, run_id: str, start: Start) -> NewRun:
        """See `Begins`."""
        return process.program().begin(run_id, start)

    def fires(self, flow: str) -> bool:
        """See `Begins`."""
        return process.program().fires(flow)


class Wakes(Scheduler):  # type: ignore[misc]  # celery has no types
    """Fires what is due each second, beside the entries of `beat_schedule`, if there are any."""

    def __init__(self, *args: JSON, **options: JSON) -> None:
        super().__init__(*args, **options)
        brain = Unbuilt()
        settings = Settings.read()
        store = RunStore(connect(settings.redis_url), kept=settings.keep)
        self._runs = Runs(brain, store, CeleryQueue(store.client))
        self._runs.clockwork = Clockwork(self._runs.schedules, brain, self._start)

    def _start(self, run: NewRun, due: int) -> None:
        start_fired(process.tell(), self._runs, run, due)

    def tick(self, *args: JSON, **options: JSON) -> float:
        """Takes up what is due; gives the seconds until the next look. A server that is away is there again later."""
        pause = EVERY
        try:
            pause = max(self._runs.wake().pause, SOONEST)
        except redis.RedisError as exc:
            logger.warning("what is due could not be taken up: %s", exc)
        except Exception:
            logger.exception("what is due could not be taken up")
        return min(pause, float(super().tick(*args, **options)))
