"""`web.wsgi:app`: the brain that the environment names, for gunicorn.

Everything is made here, when a worker of gunicorn imports this module: after the
fork and after gevent has replaced the blocking parts of Python, so that the relay's
thread is a greenlet there. That is why the application is not preloaded.
"""

from __future__ import annotations

import atexit
from pkgutil import resolve_name

from flask import Flask

from bigbrain.embedded import find_url
from bigbrain.engine.channels import Hub
from bigbrain.engine.runs import Queue, Runs
from bigbrain.engine.server import connect
from bigbrain.engine.store import RunStore
from bigbrain.loading import load
from bigbrain.reception import Reception
from bigbrain.ring import RedisRing
from bigbrain.settings import Settings
from web import create_app
from web.endings import end_with_notice

RETRIES = 3
"""How often a command is sent again while Redis is away: it comes back sooner, or the client is told to come back."""
TIMEOUT = 1.5
"""Seconds that Redis may take for one command. Both are less than a worker's, because here somebody waits: a request is
answered 503 at once while nothing listens, and after some 12 seconds (two commands) while a server hangs."""


def make_app(settings: Settings) -> Flask:
    """The application for a deployment whose steps are executed by workers elsewhere.

    Raises `WiringError` when the brain cannot be loaded or is faulty, and when no Redis is named.
    """
    brain = load(settings.app)
    program = brain.program(settings)
    store = RunStore(connect(find_url(settings), retries=RETRIES, timeout=TIMEOUT), kept=settings.keep)
    queue: Queue = resolve_name(settings.queue)(store.client)
    ring = RedisRing(store.client)
    atexit.register(ring.close)
    program.listen(ring)
    hub = Hub(store)
    end_with_notice(hub, settings.drain)
    reception = Reception(brain, program, Runs(program, store, queue), hub)
    return create_app(reception, settings=settings, tracers=program.tracers)


app = make_app(Settings.read())
