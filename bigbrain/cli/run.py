"""`bigbrain run`: a brain that acts on its own, without HTTP."""

from __future__ import annotations

import click

from bigbrain.loading import load


@click.command()
@click.argument("app", required=False)
def run(app: str | None) -> None:
    """Have the brain APP act on its own from this one process: triggers and engine, no HTTP."""
    load(app or "").run()
