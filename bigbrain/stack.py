"""The command lines of a deployment: the same for `bigbrain up`, the Procfile and a systemd unit.

Pure: arguments in, lists of words out. What a word is for stands beside it; what web
servers are told is in `web/gunicorn_conf.py`, what workers are told in `celeryconfig.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

GUNICORN_CONF = "web/gunicorn_conf.py"
"""Given to gunicorn by path, not as `python:web.gunicorn_conf`: importing the package would load Flask and
all of bigbrain into gunicorn's first process, before gevent has replaced the blocking parts of Python."""

CELERY = ("celery", "-q", "-A", "workers:app")
"""`-q`: without the banner."""

THREADS = 500
"""Steps that one worker carries at a time; they wait for models, so threads cost little."""

WORKER = (
    # Both are chatter between workers that nothing here listens to.
    *("--without-mingle", "--without-gossip"),
    # Celery's lines about each task, twice a step, tell less than a run's record.
    *("--loglevel", "WARNING"),
)

FLOWER_PORT = 5555


@dataclass(frozen=True)
class Address:
    """Where the web side listens."""

    host: str = "127.0.0.1"
    port: int = 8080

    @property
    def bind(self) -> str:
        """The address as gunicorn writes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it; a name other than `localhost` counts as reachable."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def local_url(self) -> str:
        """The URL at which this machine reaches it."""
        try:
            everywhere = ip_address(self.host).is_unspecified
        except ValueError:
            everywhere = False
        if not everywhere:
            return f"http://{self.bind}"
        return f"http://[::1]:{self.port}" if ":" in self.host else f"http://127.0.0.1:{self.port}"


def web(*, conf: str = GUNICORN_CONF, address: Address | None = None, processes: int | None = None) -> list[str]:
    """Give the web server's command.

    Left out, `address` and `processes` are gunicorn's own: `PORT` and `WEB_CONCURRENCY`, else 127.0.0.1:8000 and one.
    One process carries about 1,500 open streams.
    """
    bind = ["--bind", address.bind] if address else []
    workers = ["--workers", str(processes)] if processes else []
    return ["gunicorn", "-c", conf, *bind, *workers, "web.wsgi:app"]


def worker(number: int = 1, *, events: bool = False) -> list[str]:
    """Give the command of worker `number` (each needs its own) for steps that wait; `events`: seen by Flower."""
    return [
        *CELERY,
        "worker",
        "-P",
        "threads",
        "-c",
        str(THREADS),
        "-n",
        f"io-{number}@%h",
        *WORKER,
        *_queue("io", events),
    ]


def cpu_worker(number: int = 1, processes: int | None = None, *, events: bool = False) -> list[str]:
    """Give the command of worker `number` for steps that compute; left out, `processes` is the number of cores."""
    cores = ["-c", str(processes)] if processes else []
    return [*CELERY, "worker", "-P", "prefork", *cores, "-n", f"cpu-{number}@%h", *WORKER, *_queue("cpu", events)]


def beat() -> list[str]:
    """Give the command of the clock that wakes what is due.

    Its scheduler, named in `celeryconfig.py`, keeps no file: the schedules are in Redis.
    """
    return [*CELERY, "beat", "--loglevel", "WARNING"]


def flower() -> list[str]:
    """Give the command of Flower, on the loopback only because it asks for no key."""
    return [*CELERY, "flower", "--address=127.0.0.1", f"--port={FLOWER_PORT}"]


@dataclass(frozen=True)
class Size:
    """How many processes: web servers, workers that wait, workers that compute and the processes of each of
    those (None: as many as cores; 0: no such worker), and whether Flower looks on."""

    web: int = 1
    workers: int = 1
    cpu_workers: int = 1
    cpu: int | None = 0
    flower: bool = False


def deployment(address: Address, size: Size, *, conf: str = GUNICORN_CONF) -> list[dict[str, list[str]]]:
    """Give the commands of a whole deployment by name, in stages that end one after the other."""
    behind = {f"io-{number}": worker(number, events=size.flower) for number in range(1, size.workers + 1)}
    if size.cpu != 0:
        numbers = range(1, size.cpu_workers + 1)
        behind |= {f"cpu-{number}": cpu_worker(number, size.cpu, events=size.flower) for number in numbers}
    behind["beat"] = beat()
    if size.flower:
        behind["flower"] = flower()
    return [{"web": web(conf=conf, address=address, processes=size.web)}, behind]


def modules(argv: Sequence[str], python: str) -> list[str]:
    """Give a command of this module as run by the interpreter `python`, whatever is on `PATH`."""
    return [python, "-m", *argv]


def _queue(name: str, events: bool) -> list[str]:
    # -E costs two thirds more of the worker's time for an empty step, so it is on for Flower only.
    return ["-Q", name, *(["-E"] if events else [])]
