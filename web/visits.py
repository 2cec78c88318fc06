"""Clients that wait for a run: how many there may be, and what becomes of a run when they leave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flask import request

from bigbrain.engine.store import RunStore
from bigbrain.errors import Busy
from web.abandoned import GRACE, RETURN, Abandoned
from web.connections import connection_of
from web.departures import Client, Departures


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
    def open(self, run_id: str, client: Client, *, returns: bool) -> Iterator[None]:
        """Watches the current request's client while the block runs; if it leaves meanwhile, its run is abandoned.

        Only a departure that was noticed abandons a run: a block that ends for another reason, such as
        the end of this process, leaves it alone. An abandoned run goes on while another client follows it.

        run_id: as on record. returns: whether the client knows the run's id, and gets time to come back. Raises `Busy` when there is no place.
        """
        try:
            with self.watch(client):
                yield
        finally:
            if client.left:
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
