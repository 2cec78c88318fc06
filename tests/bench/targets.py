"""The servers that are measured, started as their users would start them, and their processor time and memory."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def process(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[psutil.Process]:
    """A process of ours in a group of its own, ended with all that it started."""
    with tempfile.TemporaryFile() as output:
        started = subprocess.Popen(
            argv, cwd=ROOT, env={**os.environ, **(env or {})}, stdout=output, stderr=output, process_group=0
        )
        try:
            yield psutil.Process(started.pid)
        except BaseException:
            output.seek(0)
            sys.stderr.write(output.read().decode(errors="replace")[-3000:])
            raise
        finally:
            started.terminate()
            try:
                started.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()


def wait_ready(port: int, path: str = "/readyz", seconds: float = 60.0) -> None:
    """Waits until a GET is answered with 200."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    raise TimeoutError(f"nothing is ready at port {port}")


def cpu_seconds(root: psutil.Process) -> float:
    """Processor time of a process and all below it, in seconds."""
    total = 0.0
    for one in (root, *root.children(recursive=True)):
        try:
            total += sum(one.cpu_times()[:2])
        except psutil.NoSuchProcess:
            continue
    return total


def memory_mb(root: psutil.Process) -> dict[str, float]:
    """Proportional memory (PSS) of each process below `root`, in MB, by a name for people."""
    found: dict[str, float] = {}
    for one in (root, *root.children(recursive=True)):
        try:
            name = _name(one.cmdline())
            found[name] = found.get(name, 0.0) + one.memory_full_info().pss / 1e6
        except psutil.NoSuchProcess:
            continue
    return found


def _name(cmdline: Sequence[str]) -> str:
    words = " ".join(cmdline)
    for mark in ("valkey-server", "redis-server", "gunicorn", "beat", "worker", "flower", "bigbrain up"):
        if mark in words:
            return mark
    return "other"


@contextmanager
def bench_upstream() -> Iterator[int]:
    """The model server; its port."""
    port = free_port()
    with process([sys.executable, "-m", "tests.bench.upstream", str(port)]):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port


@contextmanager
def flask_proxy(upstream: int) -> Iterator[tuple[int, psutil.Process]]:
    """The hand-written proxy under gunicorn threads, two processes."""
    port = free_port()
    argv = [sys.executable, "-m", "gunicorn", "-w", "2", "-k", "gthread", "--threads", "300", "--no-control-socket"]
    argv += ["-b", f"127.0.0.1:{port}", "--log-level", "warning", "tests.bench.proxy:app"]
    with process(argv, {"UPSTREAM": f"http://127.0.0.1:{upstream}"}) as root:
        wait_ready(port)
        yield port, root


@contextmanager
def bigbrain_up(upstream: int, *, web: int = 1, workers: int = 1) -> Iterator[tuple[int, psutil.Process]]:
    """`bigbrain up` with the relay of `tests.brains`."""
    port = free_port()
    with ExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory())
        argv = [sys.executable, "-m", "bigbrain", "up", "tests.brains:relay", "--port", str(port), "--data", data]
        argv += ["--web", str(web), "--workers", str(workers)]
        root = stack.enter_context(process(argv, {"UPSTREAM": f"http://127.0.0.1:{upstream}"}))
        wait_ready(port)
        yield port, root
