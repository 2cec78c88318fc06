"""`bigbrain check`: the brain's tree and every fault of its wiring."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from bigbrain.cli.report import Report
from bigbrain.errors import WiringError
from bigbrain.loading import load
from bigbrain.settings import Settings


@click.command()
@click.argument("app", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.pass_context
def check(ctx: click.Context, app: str | None, as_json: bool) -> None:
    """Print the tree of the brain APP and every fault of its wiring; exit code 1 when there are any."""
    report = read_report(app or Settings.read().app)
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        _print(report)
    ctx.exit(1 if report.faults else 0)


def read_report(app: str) -> Report:
    """Load the brain named `app` and look at it; what keeps it from loading is among the faults."""
    try:
        brain = load(app)
        return Report(name=brain.name, tree=brain.tree(), faults=brain.faults(), cpu=brain.has_cpu_steps)
    except WiringError as error:
        return Report(name=app, faults=error.faults)


def _print(report: Report) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if report.tree:
        console.print(escape(report.tree))
    for fault in report.faults:
        console.print(f"[bold red]✗[/] {escape(fault)}")
    if not report.faults:
        console.print(f"[bold green]✓[/] `{escape(report.name)}` has no faults")
