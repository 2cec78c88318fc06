"""`bigbrain runs`: look at the runs of a deployment and act on them, over its own API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import get_args
from urllib.parse import quote

import click
import httpx2
import msgspec
from rich.table import Table

from bigbrain.cli.asking import answer, check, connected, console, moment
from bigbrain.engine.records import Status
from bigbrain.errors import BrainError
from bigbrain.messages import JSON, Usage

TRIES = 5
"""How often a stream that broke is taken up again before it is given up; each event starts the count anew."""
PAUSE = 1.0
"""Seconds before it is."""
COLOURS: dict[str, str] = {"done": "green", "failed": "red", "cancelled": "yellow", "running": "cyan"}


class _Row(msgspec.Struct, frozen=True):
    """A run of the list."""

    id: str
    flow: str
    status: Status
    begun: int
    ended: int | None


class _Page(msgspec.Struct, frozen=True):
    """The list's answer."""

    data: tuple[_Row, ...]
    after: str | None


class _Error(msgspec.Struct, frozen=True):
    code: str
    message: str


class _Step(msgspec.Struct, frozen=True):
    """An attempt of a step."""

    path: str
    attempt: int
    result: str
    begun: int | None
    ended: int | None
    waited: int | None
    usage: Usage = Usage()


class _Node(msgspec.Struct, frozen=True):
    """A part of the run's tree."""

    kind: str
    path: str = ""
    name: str = ""
    agents: tuple[str, ...] = ()
    status: str = ""
    attempts: int = 0
    begun: int | None = None
    ended: int | None = None
    usage: Usage = Usage()
    inside: tuple[_Node, ...] = ()


class _Run(msgspec.Struct, frozen=True):
    """A run as it is shown."""

    id: str
    flow: str
    status: Status
    begun: int
    ended: int | None
    cursor: str
    replayed: int
    usage: Usage
    steps: tuple[_Step, ...]
    tree: tuple[_Node, ...]
    error: _Error | None


@click.group()
@click.option("--url", default="http://127.0.0.1:8080", show_default=True, help="Where the brain is.")
@click.pass_context
def runs(ctx: click.Context, url: str) -> None:
    """Look at the runs of a brain: list them, show, follow, cancel or retry one.

    The key, if one is asked for, is the first of BIG_BRAIN_KEYS; a key sees its own runs only.
    """
    ctx.obj = connected(ctx, url)


@runs.command("list")
@click.option("--status", type=click.Choice(get_args(Status)), help="Only those that are so.")
@click.option("--flow", help="Only those of one flow.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100), help="How many.")
@click.option("--after", help="Go on where an earlier list ended.")
@click.pass_obj
def list_(client: httpx2.Client, status: str | None, flow: str | None, limit: int, after: str | None) -> None:
    """List runs, the newest first."""
    asked = {"status": status, "flow": flow, "limit": str(limit), "after": after}
    query = {name: value for name, value in asked.items() if value}
    page = msgspec.json.decode(answer(client, "GET", "/v1/runs", query), type=_Page)
    table = Table("run", "flow", "status", "begun", "seconds", box=None)
    for row in page.data:
        table.add_row(row.id, row.flow, _coloured(row.status), moment(row.begun), _seconds(row.begun, row.ended))
    screen = console()
    screen.print(table)
    if page.after:
        screen.print(f"[dim]more with[/] --after {page.after}")


@runs.command()
@click.argument("run_id")
@click.pass_obj
def show(client: httpx2.Client, run_id: str) -> None:
    """Show a run as a tree: when each step ran and for how long, what it cost, what went wrong."""
    _show(answer(client, "GET", _path(run_id)))


@runs.command()
@click.argument("run_id")
@click.option("--after", default="0", help="Leave out the events up to the one of this id, or number.")
@click.pass_obj
def follow(client: httpx2.Client, run_id: str, after: str) -> None:
    """Print a run's answer as it comes, from its beginning; a connection that breaks is made anew."""
    for event in _events(client, run_id, after):
        match event:
            case {"type": "delta", "text": str(text)}:
                click.echo(text, nl=False)
            case {"type": "failed", "message": str(message)}:
                click.echo()
                raise BrainError(f"the run failed: {message}")
    click.echo()


@runs.command()
@click.argument("run_id")
@click.pass_obj
def cancel(client: httpx2.Client, run_id: str) -> None:
    """Stop a run, and wait until it has."""
    _show(answer(client, "POST", f"{_path(run_id)}/cancel"))


@runs.command()
@click.argument("run_id")
@click.pass_obj
def retry(client: httpx2.Client, run_id: str) -> None:
    """Have a run that failed or was cancelled go on from its last completed step, or begin anew if nothing of it is durable."""
    _show(answer(client, "POST", f"{_path(run_id)}/retry"))


def _events(client: httpx2.Client, run_id: str, after: str) -> Iterator[dict[str, JSON]]:
    """The events of a run after entry `after` of its log, each once."""
    tries = 0
    while tries < TRIES:
        over = True
        try:
            for entry, events in _entries(client, run_id, after):
                yield from events
                after, tries = entry, 0
                # a server that is shut down may end a stream before its time
                over = any(event["type"] in ("finished", "failed") for event in events)
        except httpx2.TransportError:
            over = False
        if over:
            return
        tries += 1
        time.sleep(PAUSE)
    raise BrainError(f"`{client.base_url}` cannot be reached any more; go on with `--after {after}`")


def _entries(client: httpx2.Client, run_id: str, after: str) -> Iterator[tuple[str, list[dict[str, JSON]]]]:
    """The entries of a run's log as one connection brings them, with their ids."""
    with client.stream("GET", f"{_path(run_id)}/events", headers={"Last-Event-ID": after}) as response:
        if response.status_code != 200:
            response.read()
        check(response)
        entry = after
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                entry = value
            elif name == "data":
                yield entry, msgspec.json.decode(value)


def _path(run_id: str) -> str:
    return f"/v1/runs/{quote(run_id, safe='')}"


def _show(document: bytes) -> None:
    run = msgspec.json.decode(document, type=_Run)
    screen = console()
    screen.print(f"[bold]{run.id}[/] {run.flow} {_coloured(run.status)}", end="")
    screen.print(f" begun {moment(run.begun)}, {_seconds(run.begun, run.ended)} s, replayed {run.replayed} times")
    table = Table("step", "status", "after s", "took s", "waited s", "tokens in", "out", box=None)
    for node in run.tree:
        _add(table, run, node, "")
    table.add_row("all", "", "", "", "", str(run.usage.prompt), str(run.usage.output))
    screen.print(table)
    if run.ended is None:
        screen.print(f"next is step {run.cursor}")
    if run.error:
        screen.print(f"[red]{run.error.code}[/]: {run.error.message}")


def _add(table: Table, run: _Run, node: _Node, indent: str) -> None:
    """The rows of a part of the run, one for each attempt where there were several."""
    if node.kind != "step":
        table.add_row(f"{indent}{node.name if node.kind == 'member' else f'{node.path} {node.kind}'}")
    else:
        tried = [step for step in run.steps if step.path == node.path]
        last = tried[-1] if tried else None
        begun, waited = (last.begun, last.waited) if last else (node.begun, None)
        status = node.status if len(tried) < 2 else f"{node.status}, attempt {len(tried)}"
        what = f"{indent}{node.path} {node.name}: {', '.join(node.agents)}"
        table.add_row(what, status, *_times(run, begun, node.ended, waited), *_tokens(node.usage))
        for step in tried[:-1]:
            times = _times(run, step.begun, step.ended, step.waited)
            table.add_row(f"{indent}  attempt {step.attempt}", step.result, *times, *_tokens(step.usage))
    for inner in node.inside:
        _add(table, run, inner, indent + "  ")


def _times(run: _Run, begun: int | None, ended: int | None, waited: int | None) -> tuple[str, str, str]:
    """Seconds: from the run's beginning, of work, of waiting for a worker."""
    after = "" if begun is None else f"{(begun - run.begun) / 1000:.2f}"
    took = "" if begun is None or ended is None else f"{(ended - begun) / 1000:.2f}"
    return after, took, "" if waited is None else f"{waited / 1000:.2f}"


def _tokens(usage: Usage) -> tuple[str, str]:
    return str(usage.prompt), str(usage.output)


def _coloured(status: str) -> str:
    return f"[{COLOURS[status]}]{status}[/]" if status in COLOURS else status


def _seconds(begun: int, ended: int | None) -> str:
    return f"{(ended - begun) / 1000:.1f}" if ended is not None else "…"
