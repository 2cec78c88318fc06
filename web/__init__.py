"""The web tier: a Flask application in front of one brain.

It takes requests in the protocols of OpenAI and Anthropic, starts runs and relays
their events; it never calls a flow. What answers, a worker elsewhere or an engine
in this process, is the business of the `Reception` that it is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from flask import Flask
from flask_cors import CORS

from bigbrain.metrics import Meters
from bigbrain.reception import Reception
from bigbrain.schedules import Schedules
from bigbrain.settings import Settings
from bigbrain.trace import Tracer
from web import (
    anthropic,
    arrivals,
    diagnostics,
    failures,
    health,
    hooks,
    metrics,
    models,
    openai,
    openapi,
    responses,
    runs,
    schedules,
    ui,
)
from web.endpoints import Endpoints
from web.keys import Keys
from web.paths import OnceOnly
from web.proxies import Proxies

SHOWN = (
    "X-Run-Id",
    "x-request-id",
    "request-id",
    "X-Brain-Overhead-Ms",
    "X-Brain-Tokens-By",
    "Retry-After",
    "x-should-retry",
)
"""Headers that a page of another origin may read, where pages of other origins may ask at all."""
SHOWN_FOR = 600
"""Seconds for which a browser need not ask again whether it may."""


def create_app(
    reception: Reception,
    *,
    settings: Settings,
    workers: Callable[[], int] | None = None,
    heartbeat: float | None = None,
    patience: float = hooks.LONGEST_WAIT,
    meters: Meters | None = None,
    tracers: Sequence[Tracer] = (),
    now: Callable[[], float] = time.time,
) -> Flask:
    """The application that serves a brain.

    workers: how many workers live, for `/readyz`; by default as they tell it in Redis.
    heartbeat: seconds of silence after which an answer shows that it lives; by default as the settings say.
    patience: seconds that the sender of a webhook waits for an answer at most.
    meters: the metrics of this process, by default some of the application's own.
    tracers: who hears that runs start.
    now: seconds since 1970, by the clock that answers are dated with.
    """
    client = reception.hub.store.client
    meters = meters or Meters(settings.metrics)
    heartbeat = settings.heartbeat if heartbeat is None else heartbeat
    endpoints = Endpoints(reception, settings.limits, meters, tracers=tracers, heartbeat=heartbeat, now=now)
    app = Flask(__name__, static_folder=None)
    # a redirect would be an HTML page, and ids of models may hold any number of slashes
    app.url_map.merge_slashes = False
    app.wsgi_app = Proxies(app.wsgi_app, settings.trusted_proxies)  # type: ignore[method-assign]  # as Flask advises
    # what a browser asks before it asks is nobody else's business
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = bool(settings.cors)
    app.before_request(arrivals.accept)
    keys = Keys(settings.keys) if settings.keys else None
    if keys is not None:
        app.before_request(keys.check)
    app.after_request(arrivals.sign)
    if settings.cors:
        CORS(app, origins=list(settings.cors), expose_headers=list(SHOWN), max_age=SHOWN_FOR)
    app.register_error_handler(Exception, failures.write_exception)
    app.register_blueprint(openai.routes(endpoints))
    app.register_blueprint(responses.routes(endpoints, reception, heartbeat))
    app.register_blueprint(anthropic.routes(endpoints))
    called = hooks.Hooks(reception, endpoints.visits, settings, meters, keys, patience)
    app.register_blueprint(hooks.routes(called))
    app.register_blueprint(models.routes(reception))
    app.register_blueprint(runs.routes(reception, endpoints.visits, heartbeat))
    app.register_blueprint(
        schedules.routes(lambda scope: Schedules(client, scope=scope, store=reception.runs.schedules))
    )
    app.register_blueprint(health.routes(client, workers or partial(health.live_workers, client)))
    app.register_blueprint(diagnostics.routes(client))
    app.register_blueprint(metrics.routes(meters, reception.hub.store, reception.runs.queue.names))
    app.register_blueprint(ui.routes())
    app.register_blueprint(openapi.routes(app))
    app.wsgi_app = OnceOnly(app.wsgi_app)  # type: ignore[method-assign]  # as Flask's documentation has it
    return app
