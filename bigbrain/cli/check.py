"""`bigbrain check`: the brain's tree, every fault of its wiring, and what a deploy would do to the runs under way."""

from __future__ import annotations

import click
import msgspec
from msgspec.structs import replace
from redis import Redis
from redis.exceptions import RedisError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bigbrain.cli.report import FlowRuns, Report
from bigbrain.embedded import find_url
from bigbrain.engine.history import History
from bigbrain.errors import BrainError, WiringError
from bigbrain.identity import bare
from bigbrain.loading import load
from bigbrain.program import Program
from bigbrain.settings import Settings, masked_url

FAULTY = 1
"""Exit code of a brain with faults."""
LOSSY = 3
"""Exit code of a brain without faults that would end runs under way."""
NAMED = 5
"""How many of a flow's runs that would end are named."""
PATIENCE = 10.0
"""Seconds that Redis may take to answer."""


@click.command()
@click.argument("app", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option(
    "--against-running",
    is_flag=True,
    help="Tell what this code would do to the runs under way in BIG_BRAIN_REDIS_URL, or in the data folder's server.",
)
@click.pass_context
def check(ctx: click.Context, app: str | None, as_json: bool, against_running: bool) -> None:
    """Print the tree of the brain APP and every fault of its wiring; exit code 1 when there are any.

    With --against-running, exit code 3 when a run under way would end because the brain is another one.
    """
    settings = Settings.read()
    report = read_report(app or settings.app)
    if against_running and not report.faults:
        program = load(app or settings.app).program(settings)
        report = replace(report, running=_compared(program, find_url(settings)))
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        _print(report)
    ctx.exit(FAULTY if report.faults else LOSSY if report.lossy else 0)


def read_report(app: str) -> Report:
    """Load the brain named `app` and look at it; what keeps it from loading is among the faults."""
    try:
        brain = load(app)
        return Report(name=brain.name, tree=brain.tree(), faults=brain.faults(), cpu=brain.has_cpu_steps)
    except WiringError as error:
        return Report(name=app, faults=error.faults)


def _compared(program: Program, url: str) -> tuple[FlowRuns, ...]:
    """What becomes of the runs under way, flow by flow. Raises `BrainError` when Redis does not answer."""
    flows: dict[str, FlowRuns] = {}
    try:
        with Redis.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE) as client:
            for run in History(client).unfinished():
                so_far = flows.get(run.flow, FlowRuns(run.flow))
                flows[run.flow] = so_far.with_one(program.outlook(run), bare(run.id), NAMED)
    except (RedisError, OSError) as error:
        raise BrainError(f"{masked_url(url)} does not answer: {error}") from error
    return tuple(flows[name] for name in sorted(flows))


def _print(report: Report) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if report.tree:
        console.print(escape(report.tree))
    for fault in report.faults:
        console.print(f"[bold red]✗[/] {escape(fault)}")
    if not report.faults:
        console.print(f"[bold green]✓[/] `{escape(report.name)}` has no faults")
    if report.running is not None:
        _print_running(console, report.running)


def _print_running(console: Console, running: tuple[FlowRuns, ...]) -> None:
    if not running:
        console.print("[bold green]✓[/] no run is under way")
        return
    table = Table("flow", "resume", "wait", "discard", "refuse", box=None)
    for flow in running:
        counts = (str(flow.resume), str(flow.wait), str(flow.discard), str(flow.refuse))
        table.add_row(escape(flow.flow), *counts)
    console.print(table)
    for flow in running:
        if flow.discard:
            why = "its structure is another one: let them end first, or make it `durable(forward_compatible=True)`"
            console.print(_lost(flow, flow.discard, why))
        if flow.refuse:
            console.print(_lost(flow, flow.refuse, "this brain does not serve it: serve it until they have ended"))


def _lost(flow: FlowRuns, count: int, why: str) -> str:
    such = escape(", ".join(flow.such))
    return f"[bold red]✗[/] {count} of flow `{escape(flow.flow)}` would end with `brain_changed`, such as {such}; {why}"
