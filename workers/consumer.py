"""The part of a worker that takes messages, and how it comes back to a broker that was away.

Celery's own asks a lost broker again after 2 s, then after 4 s, up to half a minute (kombu 5.7). A Redis that was
killed is there again within a second, and clients wait in mid answer; so ours asks after a tenth of a second,
and ever more slowly, but at least each second.
"""

from __future__ import annotations

from functools import partial

from celery.worker.consumer import Consumer

from bigbrain.messages import JSON

FIRST = 0.1
"""Seconds until a lost broker is asked again; each further time `MORE`, up to `LONGEST`."""
MORE = 0.05
LONGEST = 1.0


class Returning(Consumer):  # type: ignore[misc]  # celery has no types
    """Celery's consumer, sooner back with its broker."""

    def ensure_connected(self, conn: JSON) -> JSON:
        """Give the connection once it stands; asks for as long as it takes, or as `broker_connection_max_retries` says."""
        conn.ensure_connection = partial(
            conn.ensure_connection, interval_start=FIRST, interval_step=MORE, interval_max=LONGEST
        )
        return super().ensure_connected(conn)
