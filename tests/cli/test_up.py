"""`bigbrain up` with real gunicorn, Celery and Redis, on a stand-in for our web side and workers."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis

from bigbrain.cli.up import curl
from tests.launched import Launched

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="watches processes as Linux does")]

ROOT = Path(__file__).parents[2]

BRAIN = """
from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.flows import Flow

@agent(cpu=True)
def crunch(turn, chat):
    turn.reply("x")

brain = Brain("stand-in", Flow(crunch))
empty = Brain("empty")
"""

WSGI = """
import os
from pathlib import Path
from bigbrain.settings import Settings
from workers import app as celery

assert Settings.read().app == "brain"
assert Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).is_dir()

def app(environ, start_response):
    live = environ["PATH_INFO"] != "/readyz" or len(celery.control.ping(timeout=0.5)) == 2
    start_response("200 OK" if live else "503 Not yet", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
"""

WORKERS = """
from celery import Celery
from bigbrain.settings import Settings, broker_url

app = Celery("stand-in", broker=broker_url(Settings.read().redis_url))
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    beat_schedule={"wake": {"task": "wake", "schedule": 1.0, "options": {"queue": "io"}}},
)

@app.task(name="wake")
def wake():
    print("woken", flush=True)
"""


class Up(Launched):
    """A running `bigbrain up`."""

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        argv = [sys.executable, "-m", "bigbrain", "up", "brain", "--port", "0", *words]
        super().__init__(argv, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), **env})

    def stop(self, number: signal.Signals = signal.SIGTERM) -> str:
        self.process.send_signal(number)
        return self.rest()


def processes_of(folder: Path) -> dict[int, str]:
    """The command line of each process that works in `folder`."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if str((place / "cwd").readlink()) == str(folder) and (command := (place / "cmdline").read_bytes()):
                found[int(place.name)] = command.replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def await_end(pid: int) -> None:
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        select.select([process], [], [], 40)
        os.close(process)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path.resolve()
    (folder / "web").mkdir()
    (folder / "workers").mkdir()
    (folder / "brain.py").write_text(BRAIN)
    (folder / "web" / "__init__.py").touch()
    (folder / "web" / "wsgi.py").write_text(WSGI)
    shutil.copy(ROOT / "web" / "gunicorn_conf.py", folder / "web")
    (folder / "workers" / "__init__.py").write_text(WORKERS)
    yield folder
    for pid in processes_of(folder):
        await_end(pid)
    assert processes_of(folder) == {}


def test_up_runs_everything_and_leaves_nothing(project: Path) -> None:
    up = Up(project)
    url = up.until(r"`stand-in` is ready at (http://127\.0\.0\.1:\d+)")[1]
    up.until("curl -N ")
    up.until("io-1 .*woken")
    with urllib.request.urlopen(url) as answer:
        assert answer.status == 200
    running = processes_of(project)
    assert any("-P prefork" in command for command in running.values())

    said = up.stop(signal.SIGINT)

    assert up.process.returncode == 0, said
    assert "Traceback" not in said
    assert processes_of(project) == {}
    assert {path.name for path in (project / ".bigbrain").iterdir()} == {
        "appendonlydir",
        "redis.lock",
        "redis.log",
        "up.lock",
    }


def test_a_second_up_on_the_same_folder_says_who_holds_it(project: Path) -> None:
    up = Up(project)
    port = up.until(r"is ready at http://127\.0\.0\.1:(\d+)")[1]

    second = Up(project, "--port", port).rest()

    assert f"(process {up.process.pid})" in second
    assert "--data" in second
    up.stop()


def test_a_killed_up_leaves_its_redis_which_the_next_one_takes_over_and_ends(project: Path) -> None:
    up = Up(project)
    up.until("is ready at")
    with Redis.from_url((project / ".bigbrain" / "redis.url").read_text()) as client:
        client.set("kept", "yes")

    up.process.kill()
    up.rest()
    second = Up(project)
    second.until(r"redis: found alive in")
    second.until("is ready at")

    with Redis.from_url((project / ".bigbrain" / "redis.url").read_text()) as client:
        assert client.get("kept") == b"yes"
    second.stop()
    assert second.process.returncode == 0


def test_a_brain_with_faults_is_not_started(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bigbrain", "up", "brain:empty", "--port", "0"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("Error: the brain has no flow")
    assert "Traceback" not in done.stderr


def test_a_web_side_that_cannot_start_says_why(project: Path) -> None:
    (project / "web" / "wsgi.py").write_text("import nowhere_to_be_found")

    up = Up(project)
    said = up.rest()

    assert up.process.returncode == 2
    assert "Error: `web` ended 3 times" in said
    assert "No module named 'nowhere_to_be_found'" in said.partition("Error:")[2]


def test_the_log_can_be_json(project: Path) -> None:
    up = Up(project, BIG_BRAIN_LOG="json")

    line = up.until("is ready at")[0]

    assert up.seen[-1].startswith('{"process":"up","message":"`stand-in` is ready at')
    assert line
    up.stop()


@pytest.mark.parametrize("keyed", [False, True])
def test_the_ready_curl_is_a_line_for_the_shell(keyed: bool) -> None:
    words = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {curl('http://127.0.0.1:8080', chr(39), keyed=keyed)}"],
        capture_output=True,
        text=True,
        env={"BIG_BRAIN_KEYS": "one,two"},
    ).stdout.splitlines()

    assert words[:3] == ["curl", "-N", "http://127.0.0.1:8080/v1/chat/completions"]
    assert ("Authorization: Bearer one" in words) is keyed
    assert words[-1] == """{"model":"'","stream":true,"messages":[{"role":"user","content":"Hello"}]}"""
