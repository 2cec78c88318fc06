"""`bigbrain fire`: a trigger by hand, whatever its kind and its time."""

from __future__ import annotations

import time
from pathlib import Path

import click
import msgspec

from bigbrain.embedded import redis_server
from bigbrain.errors import BrainError
from bigbrain.events import Delta, Failed
from bigbrain.headless import at_work
from bigbrain.initiative import own_scope
from bigbrain.loading import load
from bigbrain.messages import JSON
from bigbrain.metrics import Meters
from bigbrain.reception import Reception
from bigbrain.settings import Settings


@click.command()
@click.argument("app")
@click.argument("trigger")
@click.option("--payload", help="JSON in the place of the trigger's own payload; `@file` reads it from a file.")
@click.option("--metadata", help="JSON in the place of the trigger's own metadata; `@file` reads it from a file.")
def fire(app: str, trigger: str, payload: str | None, metadata: str | None) -> None:
    """Fire TRIGGER of the brain APP in this process, and print what it says.

    TRIGGER is the id of a schedule's body, of a webhook or of a boot task; `bigbrain check` shows them.
    """
    settings = Settings.read()
    brain = load(app)
    program = brain.program(settings)
    if trigger not in program.triggers:
        known = ", ".join(f"`{id}`" for id in program.triggers) or "none"
        raise BrainError(f"the brain has no trigger `{trigger}`; there are {known}")
    carried = {"payload": _read("payload", payload), "metadata": _read("metadata", metadata)}
    with (
        redis_server(settings) as redis,
        at_work(brain, program, Meters(settings.metrics), settings, redis, initiative=False) as reception,
    ):
        run_id = reception.fire(trigger, time.time(), **carried, scope=own_scope(settings))
        _tell(reception, run_id)


def _tell(reception: Reception, run_id: str) -> None:
    """Prints the answer of a run as it comes, and waits for what comes after it."""
    failed = ""
    with reception.hub.follow(run_id, 0) as follower:
        follower.post("again")
        while not follower.over:
            for event in follower.read(1.0):
                if isinstance(event, Delta):
                    click.echo(event.text, nl=False)
                elif isinstance(event, Failed):
                    failed = f"{event.code}: {event.message}"
    click.echo()
    while not reception.history.wait_over(run_id, 60.0):
        pass
    record = reception.runs.store.record(run_id)
    if record is not None and record.status != "done":
        raise BrainError(f"the run failed: {record.error['detail'] if record.error else failed}")


def _read(name: str, text: str | None) -> JSON:
    if text is None:
        return None
    try:
        return msgspec.json.decode(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except (OSError, msgspec.DecodeError) as exc:
        raise BrainError(f"`--{name}` is no JSON: {exc}") from exc
