from __future__ import annotations

import os
import re
import select
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bigbrain.supervisor import BackOff
from tests.launched import Launched

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="watches processes as Linux does")]

ROOT = Path(__file__).parents[1]

SUPERVISED = """
import sys
from bigbrain.errors import BrainError
from bigbrain.joined_log import JoinedLog
from bigbrain.probe import is_ready
from bigbrain.processes import Child
from bigbrain.supervisor import Supervisor

def child(name, code, grace=5.0):
    return Child(name, [sys.executable, "-c", code], grace=grace)

WEB = '''
import http.server, os, signal, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *args): pass
def end(*args):
    print("bye", flush=True); os._exit(0)
signal.signal(signal.SIGTERM, end)
print("pid", os.getpid(), flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1] if len(sys.argv) > 1 else %(port)s)), Answer).serve_forever()
'''
WORKER = '''
import os, signal, subprocess, sys, threading
print("pid", os.getpid(), flush=True)
grandchild = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print("grandchild", grandchild.pid, flush=True)
ended = threading.Event()
def end(*args):
    print("bye", flush=True); os._exit(0)
signal.signal(signal.SIGTERM, end)
while True: signal.pause()
'''
STUBBORN = '''
import os, signal
signal.signal(signal.SIGTERM, lambda *a: print("not yet", flush=True))
print("pid", os.getpid(), flush=True)
while True: signal.pause()
'''
port = int(sys.argv[1])
log = JoinedLog(["web", "io-1", "up"], sys.stdout)
url = f"http://127.0.0.1:{port}"
def run(*stages, patience=20.0, server=None):
    supervisor = Supervisor(stages, log, ready=lambda: is_ready(url), patience=patience, server=server,
                            on_ready=lambda: log.write("up", "ready"))
    try:
        supervisor.run()
    except BrainError as error:
        print("ERROR", error, flush=True)
        sys.exit(3)
web = child("web", WEB % dict(port=port))
"""


class Launcher(Launched):
    """A supervisor in a process of its own."""

    def __init__(self, body: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        super().__init__([sys.executable, "-c", SUPERVISED + body, str(self.port)], cwd=ROOT, patience=30)

    @property
    def pids(self) -> set[int]:
        """The processes that have told of themselves in the lines that were read."""
        return {int(found[1]) for line in self.seen if (found := re.search(r"(?:pid|grandchild) (\d+)", line))}

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


def gone(pids: set[int], within: float = 10.0) -> bool:
    return not any(alive(pid, within) for pid in pids)


def alive(pid: int, within: float = 0.0) -> bool:
    """Whether the process still lives after `within` seconds; returns at its end."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([process], [], [], within)[0]
    finally:
        os.close(process)


@pytest.fixture
def launchers() -> Iterator[list[Launcher]]:
    started: list[Launcher] = []
    yield started
    for launcher in started:
        launcher.process.kill()
        launcher.process.wait()
        for pid in filter(alive, launcher.pids):
            os.kill(pid, signal.SIGKILL)


def launch(launchers: list[Launcher], body: str) -> Launcher:
    launchers.append(Launcher(body))
    return launchers[-1]


TWO = 'run([web], [child("io-1", WORKER)])'


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_web_side_first_and_leaves_nothing(launchers: list[Launcher], number: signal.Signals) -> None:
    launcher = launch(launchers, TWO)
    launcher.until_all("grandchild", "up .*ready")

    launcher.send(number)
    said = launcher.rest()

    assert launcher.process.returncode == 0
    assert said.index("web  | bye") < said.index("io-1 | bye")
    assert len(launcher.pids) == 3
    assert gone(launcher.pids)


def test_lines_stand_behind_aligned_names_without_colours_when_nobody_could_see_them(launchers: list[Launcher]) -> None:
    launcher = launch(launchers, TWO)
    launcher.until_all("grandchild", "up .*ready")
    launcher.send(signal.SIGTERM)

    said = launcher.rest()

    assert "\nup   | ready\n" in said
    assert re.search(r"^io-1 \| grandchild \d+$", said, re.MULTILINE)
    assert "\x1b" not in said


def test_a_dead_child_is_started_again_and_the_log_says_so(launchers: list[Launcher]) -> None:
    launcher = launch(launchers, TWO)
    first = int(launcher.until(r"web .*pid (\d+)")[1])
    launcher.until("up .*ready")

    os.kill(first, signal.SIGKILL)

    launcher.until(r"up .*web ended \(killed by SIGKILL\); starting it again in 0.1 s")
    assert int(launcher.until(r"web .*pid (\d+)")[1]) != first
    launcher.send(signal.SIGTERM)
    launcher.rest()
    assert gone(launcher.pids)


def test_what_a_dead_child_started_goes_with_it(launchers: list[Launcher]) -> None:
    launcher = launch(launchers, TWO)
    worker = int(launcher.until(r"io-1 .*pid (\d+)")[1])
    grandchild = int(launcher.until(r"grandchild (\d+)")[1])

    os.kill(worker, signal.SIGKILL)

    launcher.until("io-1 ended")
    assert gone({worker, grandchild})


def test_a_child_that_does_not_end_in_time_is_killed(launchers: list[Launcher]) -> None:
    launcher = launch(launchers, 'run([web], [child("io-1", STUBBORN, grace=0.3)])')
    launcher.until_all("io-1 .*pid", "up .*ready")

    launcher.send(signal.SIGTERM)
    said = launcher.rest()

    assert "io-1 is killed; it did not end within 0.3 s" in said
    assert launcher.process.returncode == 0
    assert gone(launcher.pids)


def test_a_child_that_ends_by_itself_meanwhile_is_not_waited_for(launchers: list[Launcher]) -> None:
    stages = '[web, child("slow", STUBBORN, grace=2.0)], [child("io-1", WORKER, grace=60)]'
    launcher = launch(launchers, f"run({stages})")
    launcher.until_all(r"io-1 .*pid (\d+)", "up .*ready")
    worker = next(int(found[1]) for line in launcher.seen if (found := re.search(r"io-1 .*pid (\d+)", line)))
    launcher.send(signal.SIGTERM)
    launcher.until("slow .*not yet")

    os.kill(worker, signal.SIGKILL)
    said = launcher.rest()

    assert "slow is killed" in said
    assert "io-1 is killed" not in said
    assert gone(launcher.pids)


def test_a_second_ctrl_c_kills_at_once(launchers: list[Launcher]) -> None:
    launcher = launch(launchers, 'run([web], [child("io-1", STUBBORN, grace=60)])')
    launcher.until_all("io-1 .*pid", "up .*ready")
    launcher.send(signal.SIGINT)
    launcher.until("not yet")

    launcher.send(signal.SIGINT)
    said = launcher.rest()

    assert "io-1 is killed" in said
    assert gone(launcher.pids)


def test_children_end_when_the_launcher_is_killed(launchers: list[Launcher]) -> None:
    launcher = launch(launchers, 'run([web], [child("io-1", WEB % dict(port=0))])')
    launcher.until_all("io-1 .*pid", "up .*ready")
    assert len(launcher.pids) == 2

    launcher.send(signal.SIGKILL)

    assert gone(launcher.pids)


def test_a_child_that_dies_again_and_again_ends_the_start(launchers: list[Launcher]) -> None:
    launcher = launch(launchers, """run([child("web", "import sys; sys.exit('cannot import brain')")])""")

    said = launcher.rest()

    assert launcher.process.returncode == 3
    assert "ERROR `web` ended 3 times (status 1) before all was ready; the log's last lines:" in said
    assert "  web: cannot import brain" in said


def test_what_never_gets_ready_is_given_up(launchers: list[Launcher]) -> None:
    launcher = launch(launchers, 'run([child("io-1", WORKER)], patience=0.5)')

    said = launcher.rest()

    assert launcher.process.returncode == 3
    assert "ERROR not ready after 0.5 s; the log's last lines:" in said
    assert gone(launcher.pids)


def test_a_dead_redis_is_started_again(launchers: list[Launcher], tmp_path: Path) -> None:
    launcher = launch(
        launchers,
        f"""
from pathlib import Path
from bigbrain.embedded import redis_server
from bigbrain.settings import Settings
with redis_server(Settings(data=Path({str(tmp_path)!r}))) as server:
    log.write("up", server.about)
    run([web], server=server.embedded)
""",
    )
    pid = int(launcher.until(r"process (\d+)")[1])
    launcher.until("up .*ready")

    os.kill(pid, signal.SIGKILL)

    launcher.until("up .*redis ended; starting it again")
    launcher.send(signal.SIGTERM)
    launcher.rest()
    assert launcher.process.returncode == 0
    assert {path.name for path in tmp_path.iterdir()} <= {"appendonlydir", "redis.lock", "redis.log", "up.lock"}


def test_pauses_double_up_to_half_a_minute_and_start_over_after_ten_seconds_of_life() -> None:
    back_off = BackOff()

    pauses = [back_off.pause(now=1.0) for _ in range(10)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    back_off.born = 100.0
    assert back_off.pause(now=109.0) == 30.0
    assert back_off.pause(now=111.0) == 0.1
