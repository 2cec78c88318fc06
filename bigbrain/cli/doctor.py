"""`bigbrain doctor`: what this deployment sees, for a person or a bug report."""

from __future__ import annotations

from collections.abc import Iterable

import click
from redis import Redis
from redis.exceptions import RedisError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bigbrain.cli.versions import versions
from bigbrain.embedded import find_url
from bigbrain.errors import BrainError
from bigbrain.programs import programs
from bigbrain.settings import Settings, masked_url

WAIT = 3.0
"""Seconds that Redis may take to answer."""


@click.command()
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Show the settings (secrets masked), whether Redis answers, and the versions; exit code 1 when it does not."""
    settings = Settings.read()
    fine, redis = _redis(settings)
    console = Console(highlight=False)
    console.print(_table("settings", ((name, value or "(not set)") for name, value in settings.describe())))
    console.print(_table("redis", [("server", redis), ("to start", next(programs()).path)]))
    console.print(_table("versions", versions()))
    ctx.exit(0 if fine else 1)


def _redis(settings: Settings) -> tuple[bool, str]:
    """Whether all is well, and what to say; that no embedded server runs is no fault."""
    try:
        url = find_url(settings)
    except BrainError as error:
        return True, str(error)
    try:
        with Redis.from_url(url, socket_timeout=WAIT, socket_connect_timeout=WAIT) as client:
            info = client.info("server")
    except (RedisError, OSError) as error:
        return False, f"{masked_url(url)} does not answer: {error}"
    name = info.get("server_name", "redis")
    return True, f"{name} {info.get(f'{name}_version', info.get('redis_version'))} answers at {masked_url(url)}"


def _table(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=None, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    return table
