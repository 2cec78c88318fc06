"""A session is held by one call at a time, in all threads and processes, and never by nobody."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bigbrain.errors import ModelBroke, ModelTimeout, RunCancelled
from bigbrain.orchestrator.cancellation import limited
from bigbrain.orchestrator.claude_code.process import Command, Process
from bigbrain.orchestrator.claude_code.sessions import empty_folder, hold
from bigbrain.scope import Scope
from tests.orchestrator.claude_code.cli import SESSION, Cli, ask, until


def held(state: Path) -> bool:
    lock = os.open(state / "sessions" / SESSION / "lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def test_a_session_is_known_once_it_is_remembered(tmp_path: Path) -> None:
    with hold(tmp_path, SESSION, Scope()) as session:
        assert not session.known
        session.remember()

    with hold(tmp_path, SESSION, Scope()) as session:
        assert session.known


def test_only_its_user_can_read_what_is_kept(tmp_path: Path) -> None:
    with hold(tmp_path / "state", SESSION, Scope()) as session:
        file = session.instructions("secret")
        session.remember()

    for path in [file, session.folder, session.folder / "lock", session.folder / "known"]:
        assert path.stat().st_mode & 0o077 == 0, path
    assert file.read_text() == "secret"


def test_the_last_instructions_replace_longer_ones(tmp_path: Path) -> None:
    with hold(tmp_path, SESSION, Scope()) as session:
        session.instructions("long ones")

        assert session.instructions("short").read_text() == "short"


def test_two_threads_hold_it_one_after_the_other(tmp_path: Path) -> None:
    inside, most, lock = [0], [0], threading.Lock()

    def holding() -> None:
        with hold(tmp_path, SESSION, Scope()):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            with lock:
                inside[0] -= 1

    threads = [threading.Thread(target=holding) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1]


def test_other_sessions_are_free_meanwhile(tmp_path: Path) -> None:
    with hold(tmp_path, SESSION, Scope()), hold(tmp_path, SESSION.replace("1", "2"), Scope()) as other:
        assert not other.known


def test_waiting_for_it_ends_when_time_is_over(tmp_path: Path) -> None:
    with (
        hold(tmp_path, SESSION, Scope()),
        pytest.raises(ModelTimeout, match="in use by another call; wait for it, or raise `timeout`"),
        limited(Scope(), time.monotonic() + 0.05) as own,
        hold(tmp_path, SESSION, own),
    ):
        pass


def test_waiting_for_it_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    scope = Scope()
    timer = threading.Timer(0.05, lambda: scope.cancel(RunCancelled("enough")))
    timer.start()

    with hold(tmp_path, SESSION, Scope()), pytest.raises(RunCancelled, match="enough"), hold(tmp_path, SESSION, scope):
        pass
    timer.join()


def test_what_has_inherited_it_holds_it_until_it_is_gone(tmp_path: Path) -> None:
    (tmp_path / "sessions" / SESSION).mkdir(parents=True)
    lock = os.open(tmp_path / "sessions" / SESSION / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = Process(Command(("/bin/sleep", "100"), {}, tmp_path, holds=(lock,)))
    os.close(lock)  # as the kernel does when its owner is killed

    assert held(tmp_path)
    with process:
        process.stop()
    assert until(lambda: not held(tmp_path))


def test_a_process_that_was_forked_meanwhile_does_not_hold_it(tmp_path: Path) -> None:
    with hold(tmp_path, SESSION, Scope()) as session:
        heir = subprocess.Popen(["/bin/sleep", "100"], pass_fds=(session.lock,))

    assert not held(tmp_path)
    heir.kill()
    heir.wait()


def test_a_folder_that_cannot_be_used_is_an_error_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file")

    remedy = "make it writable, or set `XDG_STATE_HOME`"
    with pytest.raises(ModelBroke, match=f"cannot be used: .*; {remedy}") as raised, hold(tmp_path, SESSION, Scope()):
        pass

    assert not raised.value.retryable


def test_the_empty_folder_is_nobodys_to_write_into(tmp_path: Path) -> None:
    assert empty_folder(tmp_path).stat().st_mode & 0o777 == 0o500
    assert empty_folder(tmp_path) == empty_folder(tmp_path)


ASKING = """
import sys
from pathlib import Path
from tests.orchestrator.claude_code.cli import Cli, ask
path, home = sys.argv[1:]
print(ask(Cli(path, Path(home)).backend(), "from the other process").text, flush=True)
"""


def other(cli: Cli) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", ASKING, cli.path, str(cli.home)], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_two_processes_ask_one_after_the_other(cli: Cli) -> None:
    cli.script({"pieces": ["first"], "wait": "go"})
    with other(cli) as process:
        assert until(lambda: cli.calls)
        threading.Timer(0.3, (cli.home / "go").touch).start()
        heard = ask(cli.backend(), "from this process")

        assert process.communicate()[0] == "first\n"
    assert heard.text == "heard: from the other process | from this process"


@pytest.mark.slow
def test_a_process_that_is_killed_gives_its_session_free_with_nothing_running_in_it(cli: Cli) -> None:
    cli.script({"pieces": ["half"], "hang": True, "child": True})
    with other(cli) as process:
        assert until((cli.home / "child").exists)
        process.kill()

    assert ask(cli.backend(), "next").text == "heard: from the other process | next"
    assert until(lambda: cli.left() == [])


@pytest.mark.slow
def test_a_process_that_is_killed_keeps_its_session_until_a_stubborn_cli_is_gone(cli: Cli) -> None:
    cli.script({"pieces": ["half"], "hang": True, "stubborn": True})
    with other(cli) as process:
        assert until(lambda: len(cli.calls) == 1)
        pid = cli.calls[0]["pid"]
        time.sleep(0.3)
        process.kill()
    ask(cli.backend(), "next")

    assert cli.calls[1]["pid"] != pid
    assert until(lambda: cli.left() == [])
