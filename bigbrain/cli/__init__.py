"""The command `bigbrain`.

Each command lives in a module of its own that is imported when it is used: the SDKs take
half a second and 50 MB, which `bigbrain up` would hold for as long as it runs.
What goes wrong in a way we know is one message and exit code 2, never a traceback.
"""

from __future__ import annotations

import importlib

import click

from bigbrain.cli.versions import own_version
from bigbrain.errors import BrainError

COMMANDS = {
    "chat": "bigbrain.cli.chat:chat",
    "check": "bigbrain.cli.check:check",
    "doctor": "bigbrain.cli.doctor:doctor",
    "fire": "bigbrain.cli.fire:fire",
    "new": "bigbrain.cli.new:new",
    "run": "bigbrain.cli.run:run",
    "runs": "bigbrain.cli.runs:runs",
    "schedules": "bigbrain.cli.schedules:schedules",
    "serve": "bigbrain.cli.serve:serve",
    "up": "bigbrain.cli.up:up",
}
"""A command's name → the module and the attribute it is in."""


class Told(click.ClickException):
    """Raised when a `BrainError` is to be shown."""

    exit_code = 2


class Commands(click.Group):
    """The commands of `COMMANDS`, imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        found = getattr(importlib.import_module(module), attribute)
        return found if isinstance(found, click.Command) else None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrainError as error:
            raise Told(str(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(own_version(), prog_name="bigbrain")
def main() -> None:
    """A brain of flows and agents, served as a model.

    APP is `module:attribute` (attribute `brain` if left out), by default BIG_BRAIN_APP, else the built-in demo brain.
    """
