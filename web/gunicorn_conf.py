"""What gunicorn is told, each with its reason; `gunicorn -c web/gunicorn_conf.py web.wsgi:app`.

`bind` and `workers` are left to the command line, `PORT` and `WEB_CONCURRENCY`.

gunicorn reads this file by path in its first process, where gevent has not yet replaced
the blocking parts of Python. Nothing of ours, and no Flask or Redis client, may be imported
here: it would keep the blocking parts in every worker. That is also why this is the one file
besides `bigbrain/settings.py` that looks at the environment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol


class Worker(Protocol):
    """What gunicorn hands over about a worker process."""

    pid: int


class Request(Protocol):
    """What gunicorn hands over about a request: its path, and its headers as they came, names in capitals."""

    path: str
    headers: list[tuple[str, str]]


# An open stream costs a greenlet of 18-30 kB; a thread each would cost as much memory and more processor.
worker_class = "gevent"

# Above `BIG_BRAIN_MAX_STREAMS` (2,000), so that the brain refuses with a clear 429 before gunicorn lets callers hang.
worker_connections = 5000

# Connections that the kernel holds for us in a burst or while a worker restarts; 2,048 by default.
backlog = 4096

# `BIG_BRAIN_TRUSTED_PROXIES` says whom to believe what it tells of a request's way; by default gunicorn has an opinion too.
forwarded_allow_ips = ""

# Seconds without a heartbeat before a worker is killed. A long stream does beat; a handler stuck in C code does not.
timeout = 60

# Seconds after TERM at which what is still open is cut. Answers are ended before, see `endings.py`: after `BIG_BRAIN_DRAIN`.
graceful_timeout = 5 + int(os.environ.get("BIG_BRAIN_DRAIN") or 25)

# Seconds an idle connection stays: SDKs pool theirs, and 2 by default would make each turn of a chat connect again.
keepalive = 5

# A second way to command the server, at one path for all servers of a user; nobody here uses it.
control_socket_disable = True

# Workers beat by touching a file; on a slow disk that can stall, in memory it cannot.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  (gunicorn makes an unnamed file in it)


def pre_request(worker: Worker, req: Request) -> None:  # noqa: ARG001  (the signature of gunicorn's hook)
    """Of a header that a webhook's sender repeats, leaves the first: WSGI would join them, and no signature fits that."""
    if req.path.startswith("/v1/hooks/"):
        first: dict[str, str] = {}
        way = [(name, value) for name, value in req.headers if name == "X-FORWARDED-FOR"]
        for name, value in req.headers:
            first.setdefault(name, value)
        first.pop("X-FORWARDED-FOR", None)
        req.headers = [*first.items(), *way]


def child_exit(server: object, worker: Worker) -> None:  # noqa: ARG001  (the signature of gunicorn's hook)
    """Forget the live gauges of a worker that ended, as `prometheus_client.multiprocess.mark_process_dead` does."""
    if folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        for file in Path(folder).glob(f"gauge_live*_{worker.pid}.db"):
            file.unlink(missing_ok=True)
