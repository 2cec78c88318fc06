"""The one-process mode: Redis beside it, and web, queue and engine in it.

The same parts as in a deployment of many processes, only nearer to each other: the
same store, the same engine, the same application. The server is werkzeug's with a
thread for each request, which is right for the first minute and for writing a brain.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from bigbrain.brain import Brain
from bigbrain.cli.listening import checked_address
from bigbrain.cli.up import curl
from bigbrain.embedded import redis_server
from bigbrain.headless import at_work, stopping
from bigbrain.metrics import Meters
from bigbrain.settings import Settings
from bigbrain.stack import Address
from web import create_app
from web.keys import HOOKS

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


class Handler(WSGIRequestHandler):
    """Speaks HTTP/1.1, without which a stream has no end that a client can tell, and keeps its log to errors."""

    protocol_version = "HTTP/1.1"

    def make_environ(self) -> WSGIEnvironment:
        """As werkzeug makes it, but of a header that a webhook's sender repeats the first counts; see `pre_request`."""
        environ = super().make_environ()
        if self.path.startswith(HOOKS):
            for name in self.headers:
                key = f"HTTP_{name.upper().replace('-', '_')}"
                if key in environ and key != "HTTP_X_FORWARDED_FOR":
                    environ[key] = self.headers[name]
        return environ

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing: a line for each request would bury what the brain says."""


def serve(brain: Brain, *, host: str = "127.0.0.1", port: int = 8080) -> None:
    """Serves a brain from this one process until SIGINT or SIGTERM; call it in the main thread.

    Raises `WiringError` with every fault of the wiring, when others could reach the address
    and no key is set, and when the address or the data folder is taken.
    """
    settings = Settings.read()
    address = checked_address(host, port, settings)
    with stopping() as stopped, running(brain, settings, address) as about:
        click.echo(f"`{brain.name}` is ready at {address.local_url} (redis: {about})\ntry it:")
        click.echo(curl(address.local_url, brain.name, keyed=bool(settings.keys)))
        stopped.get()
        click.echo("stopping: steps under way finish first; interrupt again to end at once")


@contextmanager
def running(brain: Brain, settings: Settings, address: Address) -> Iterator[str]:
    """Serves a brain at an address while the block runs; gives a word about the Redis that it uses."""
    program = brain.program(settings)
    meters = Meters(settings.metrics)
    with (
        redis_server(settings) as redis,
        at_work(brain, program, meters, settings, redis) as reception,
    ):
        app = create_app(reception, settings=settings, workers=lambda: 1, meters=meters, tracers=program.tracers)
        with _listening(make_server(address.host, address.port, app, threaded=True, request_handler=Handler)):
            yield redis.about


@contextmanager
def _listening(server: BaseWSGIServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, name="http")
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
