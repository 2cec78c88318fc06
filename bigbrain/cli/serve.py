"""`bigbrain serve`: the brain in one process, for the first minute and while writing it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bigbrain.cli.listening import checked_address
from bigbrain.cli.reload import rerun_on_change
from bigbrain.loading import load
from bigbrain.settings import Settings


@click.command()
@click.argument("app", required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port; 0: a free one.")
@click.option("--reload", is_flag=True, help="Start again whenever a Python file here changes.")
def serve(app: str | None, host: str, port: int, reload: bool) -> None:
    """Serve the brain APP from this one process."""
    settings = Settings.read()
    address = checked_address(host, port, settings)
    name = app or settings.app
    if reload:
        command = [sys.executable, "-m", "bigbrain", "serve", *([name] if name else [])]
        rerun_on_change([*command, "--host", host, "--port", str(address.port)], Path.cwd())
    else:
        load(name).serve(address.host, address.port)
