"""A port at which Prometheus reads what the workers of this machine have counted, for machines without a web side.

Where web and workers share a machine and a folder, the web side's `/metrics` shows both and
no port is needed. Nothing is asked of whoever reaches the port, so it is closed unless
`BIG_BRAIN_METRICS_PORT` opens it, and open to this machine only unless that names a host.
"""

from __future__ import annotations

import logging
from wsgiref.simple_server import WSGIServer

from prometheus_client import start_http_server

from bigbrain.metrics import Exposition, Meters

logger = logging.getLogger(__name__)


def expose(place: str, meters: Meters) -> WSGIServer | None:
    """Shows the metrics at `place`, a port or `host:port`, from a thread, until the process or the server is ended.

    None when the place is taken, by another worker of the same machine for instance: no reason not to work.
    """
    host, _, port = place.rpartition(":")
    try:
        server, _ = start_http_server(int(port), host.strip("[]") or "127.0.0.1", Exposition(meters))
    except OSError as exc:
        logger.warning("the metrics of this worker are not shown at %s: %s", place, exc)
        return None
    return server
