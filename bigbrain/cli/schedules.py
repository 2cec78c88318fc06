"""`bigbrain schedules`: what a deployment is going to do, and what failed for good, over its own API."""

from __future__ import annotations

from urllib.parse import quote

import click
import httpx2
import msgspec
from rich.markup import escape
from rich.table import Table

from bigbrain.cli.asking import answer, connected, console, moment

ABOUT = 40
"""Characters of what was asked that a list shows."""


class _Row(msgspec.Struct, frozen=True):
    """A schedule of the list."""

    id: str
    kind: str
    cron: str
    tz: str
    due: int | None
    last: int | None
    fired: int
    skipped: int
    under_way: int
    waiting: int
    cancelled: int | None
    about: str


class _Page(msgspec.Struct, frozen=True):
    """The list's answer."""

    data: tuple[_Row, ...]
    after: str | None


class _Error(msgspec.Struct, frozen=True):
    code: str
    message: str


class _Dead(msgspec.Struct, frozen=True):
    """A firing that failed for good."""

    run: str
    schedule: str
    failed: int
    error: _Error


class _DeadPage(msgspec.Struct, frozen=True):
    data: tuple[_Dead, ...]


class _Run(msgspec.Struct, frozen=True):
    run: str


@click.group()
@click.option("--url", default="http://127.0.0.1:8080", show_default=True, help="Where the brain is.")
@click.pass_context
def schedules(ctx: click.Context, url: str) -> None:
    """Look at the schedules of a brain: list them, cancel one or run it now; list and retry what failed for good.

    The key, if one is asked for, is the first of BIG_BRAIN_KEYS: the brain's own schedules are that key's.
    """
    ctx.obj = connected(ctx, url)


@schedules.command("list")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100), help="How many.")
@click.option("--after", help="Go on where an earlier list ended.")
@click.pass_obj
def list_(client: httpx2.Client, limit: int, after: str | None) -> None:
    """List schedules, the newest first."""
    query = {"limit": str(limit), **({"after": after} if after else {})}
    page = msgspec.json.decode(answer(client, "GET", "/v1/schedules", query), type=_Page)
    table = Table("schedule", "when", "next", "last", "fired", "skipped", "under way", "waiting", "about", box=None)
    for row in page.data:
        then = moment(row.due) if row.due else "[yellow]cancelled[/]" if row.cancelled else ""
        counts = (row.fired, row.skipped, row.under_way, row.waiting)
        table.add_row(
            row.id, _when(row), then, moment(row.last) if row.last else "", *map(str, counts), _short(row.about)
        )
    screen = console()
    screen.print(table)
    if page.after:
        screen.print(f"[dim]more with[/] --after {page.after}")


@schedules.command()
@click.argument("id")
@click.pass_obj
def cancel(client: httpx2.Client, id: str) -> None:
    """Have a schedule fire no more; what is under way goes on."""
    answer(client, "POST", f"{_path(id)}/cancel")
    click.echo(f"`{id}` fires no more")


@schedules.command()
@click.argument("id")
@click.pass_obj
def run(client: httpx2.Client, id: str) -> None:
    """Fire a schedule now, beside its order."""
    started = msgspec.json.decode(answer(client, "POST", f"{_path(id)}/run"), type=_Run)
    click.echo(f"run {started.run} begins; `bigbrain runs follow {started.run}`")


@schedules.command()
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100), help="How many.")
@click.pass_obj
def dead(client: httpx2.Client, limit: int) -> None:
    """List the firings that failed for good, the newest first."""
    page = msgspec.json.decode(answer(client, "GET", "/v1/schedules/dead", {"limit": str(limit)}), type=_DeadPage)
    table = Table("run", "schedule", "failed", "error", box=None)
    for row in page.data:
        table.add_row(row.run, row.schedule, moment(row.failed), f"{row.error.code}: {row.error.message}")
    console().print(table)


@schedules.command()
@click.argument("run_id")
@click.pass_obj
def retry(client: httpx2.Client, run_id: str) -> None:
    """Have a firing that failed for good go on from its last completed step."""
    answer(client, "POST", f"/v1/schedules/dead/{quote(run_id, safe='')}/retry")
    click.echo(f"run {run_id} goes on")


def _when(row: _Row) -> str:
    return {"every": f"every {row.cron} ({row.tz})", "once": "once", "boot": "at start"}.get(row.kind, row.kind)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return escape(line if len(line) <= ABOUT else f"{line[: ABOUT - 1]}…")


def _path(id: str) -> str:
    return f"/v1/schedules/{quote(id, safe='')}"
