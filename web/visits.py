"""Clients that wait for a run: how many there may be, and what becomes of a run when they leave."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from flask import request

from bigbrain.engine.store import RunStore
from bigbrain.errors import Busy
from web.abandoned import GRACE, RETURN, Abandoned
from web.connections import connection_of
from web.departures import Client, Departures

EARLY = 1.0
"""Seconds by which a client may give up sooner than it says, because its clock began to run before ours."""


class Visits:
    """The clients of this process that follow runs."""

    def __init__(self, store: RunStore, most: int) -> None:
        """most: how many there may be at once."""
        self._most = most
        self._places = threading.BoundedSemaphore(most)
        self._departures = Departures()
        self._abandoned = Abandoned(store, grace=GRACE)
        self._returning = Abandoned(store, grace=RETURN)

    @contextmanager
    def open(self, run_id: str, client: Client, *, patience: float = 0.0) -> Iterator[None]:
        """Watches the current request's client while the block runs; if it leaves meanwhile, its run is abandoned.

        Only a departure that was noticed abandons a run: a block that ends for another reason, such as
        the end of this process, leaves it alone. An abandoned run goes on while another client follows it.

        run_id: as on record. patience: seconds after which a client that leaves is to come back, and gets time to; 0 for one that
        knows the run's id. Raises `Busy` when there is no place.
        """
        begun = time.monotonic()
        try:
            with self.watch(client):
                yield
        finally:
            if client.left:
                returns = time.monotonic() - begun > patience - EARLY
                (self._returning if returns else self._abandoned).add(run_id)

    @contextmanager
    def watch(self, client: Client) -> Iterator[None]:
        """Watches the current request's client while the block runs; what it waits for goes on in any case.

        Raises `Busy` when there is no place.
        """
        if not self._places.acquire(blocking=False):
            raise Busy(f"{self._most} answers are open here already; try again", retry_after=1.0)
        try:
            with self._departures.watch(connection_of(request.environ), client):
                yield
        finally:
            self._places.release()
