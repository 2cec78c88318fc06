"""`bigbrain up`: a whole deployment on this machine, in one terminal."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import msgspec

from bigbrain import stack
from bigbrain.cli.listening import checked_address
from bigbrain.cli.report import Report, examine
from bigbrain.embedded import RedisServer, redis_server
from bigbrain.errors import WiringError
from bigbrain.folder import hold
from bigbrain.joined_log import JoinedLog
from bigbrain.probe import is_ready
from bigbrain.processes import Child
from bigbrain.settings import DEMO, Settings
from bigbrain.stack import Address, Size
from bigbrain.supervisor import NAME, Supervisor


@click.command()
@click.argument("app", required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port; 0: a free one.")
@click.option("--web", default=1, show_default=True, type=click.IntRange(1), help="Web processes.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Workers for steps that wait.")
@click.option(
    "--cpu-workers", default=1, show_default=True, type=click.IntRange(1), help="Workers for steps that compute."
)
@click.option("--cpu", type=click.IntRange(0), help="Processes of each of those.  [default: if such steps, one a core]")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), help="Data folder.  [default: .bigbrain]")
@click.option("--flower", is_flag=True, help=f"Show the workers at http://127.0.0.1:{stack.FLOWER_PORT}.")
def up(
    app: str | None,
    host: str,
    port: int,
    web: int,
    workers: int,
    cpu_workers: int,
    cpu: int | None,
    data: Path | None,
    flower: bool,
) -> None:
    """Run the brain APP with web servers, workers, beat and, unless BIG_BRAIN_REDIS_URL is set, its own Redis."""
    settings = _settings(app, data)
    if flower and importlib.util.find_spec("flower") is None:
        raise WiringError("`--flower` needs the package flower; install it with `pip install 'bigbrain[flower]'`")
    # First of all, because a second `up` would find the port taken too, which tells less.
    with hold(settings.data) as folder:
        address = checked_address(host, port, settings)
        report = examine(settings.app)
        processes = (None if report.cpu else 0) if cpu is None else cpu
        size = Size(web=web, workers=workers, cpu_workers=cpu_workers, cpu=processes, flower=flower)
        with redis_server(settings, folder) as server, _emptied(folder / "metrics") as metrics:
            _supervise(replace(settings, data=folder, metrics=metrics), server, address, size, report)


def _settings(app: str | None, data: Path | None) -> Settings:
    settings = Settings.read()
    return replace(settings, app=app or settings.app or DEMO, data=data or settings.data)


def _supervise(settings: Settings, server: RedisServer, address: Address, size: Size, report: Report) -> None:
    env = {
        "BIG_BRAIN_APP": settings.app,
        "BIG_BRAIN_DATA": str(settings.data),
        "BIG_BRAIN_REDIS_URL": server.url,
        "PROMETHEUS_MULTIPROC_DIR": str(settings.metrics),
    }
    commands = stack.deployment(address, size, conf=_gunicorn_conf())
    stages = [
        [Child(name, stack.modules(argv, sys.executable), env) for name, argv in stage.items()] for stage in commands
    ]
    log = JoinedLog([NAME, *(child.name for stage in stages for child in stage)], sys.stdout, settings.log)
    log.write(NAME, f"redis: {server.about}")
    Supervisor(
        stages,
        log,
        ready=partial(is_ready, address.local_url, next(iter(settings.keys), "")),
        on_ready=partial(_welcome, log, address, size, settings, report),
        server=server.embedded,
    ).run()


def _welcome(log: JoinedLog, address: Address, size: Size, settings: Settings, report: Report) -> None:
    log.write(NAME, f"`{report.name}` is ready at {address.local_url}")
    if size.flower:
        log.write(NAME, f"Flower is at http://127.0.0.1:{stack.FLOWER_PORT}")
    log.write(NAME, f"see its runs at {address.local_url}/ui")
    log.write(NAME, "try it:")
    log.write(NAME, curl(address.local_url, report.name, keyed=bool(settings.keys)))


def curl(url: str, model: str, *, keyed: bool) -> str:
    """Give a line for a shell that asks the brain something; the key is taken from the shell's own environment."""
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    key = ' -H "Authorization: Bearer ${BIG_BRAIN_KEYS%%,*}"' if keyed else ""
    quoted = msgspec.json.encode(body).decode().replace("'", "'\\''")
    return f"curl -N {url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d '{quoted}'"


def _gunicorn_conf() -> str:
    """The file's path, wherever `web` is installed, found without importing it."""
    web = importlib.util.find_spec("web")
    for folder in (web and web.submodule_search_locations) or ():
        if (conf := Path(folder) / Path(stack.GUNICORN_CONF).name).is_file():
            return str(conf)
    raise WiringError(
        "the package `web` of bigbrain is not found; another one of that name stands before it on the path"
    )


@contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    """An empty folder while the block runs: counters of an earlier deployment would be added to ours."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
