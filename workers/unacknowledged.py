"""Messages need no acknowledgement, and none is sent.

The queues are consumed without acknowledgement (`no_ack` in `celeryconfig.py`), so Redis
keeps nothing to be acknowledged. Celery acknowledges all the same, because its messages
do not know how they were consumed (kombu 5.7); for each task that is a transaction that
finds nothing, a sixth of what a worker spends on an empty step.
"""

from __future__ import annotations

from celery import bootsteps

from bigbrain.messages import JSON


class Unacknowledged(bootsteps.StartStopStep):  # type: ignore[misc]  # celery has no types
    """Has the channel of a worker's consumer drop acknowledgements, each time it is made anew."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: JSON) -> None:
        """The consumer has a new channel, after the start or a lost connection."""
        parent.task_consumer.channel.basic_ack = _drop


def _drop(delivery_tag: str, multiple: bool = False) -> None:
    """Acknowledges nothing."""
