"""A program is run, read and ended with all that it started, whatever it does and whatever becomes of us."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bigbrain.errors import ModelBroke
from bigbrain.orchestrator.claude_code import process as module
from bigbrain.orchestrator.claude_code.process import KEEPER, Command, Process
from tests.orchestrator.claude_code.cli import alive, gone, until

ENV = {"PATH": os.defpath}


def shell(script: str, tmp_path: Path, stdin: str = "") -> Process:
    return Process(Command(("/bin/sh", "-c", script), ENV, tmp_path, stdin))


def pid_in(file: Path) -> int:
    assert until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def test_its_lines_come_one_by_one_and_its_status_at_the_end(tmp_path: Path) -> None:
    with shell("echo one; printf 'two\\n\\nthree'; exit 7", tmp_path) as process:
        assert list(process.lines()) == [b"one", b"two", b"", b"three"]

    assert process.status == 7
    assert not process.stopped


def test_the_signal_that_ended_it_is_its_status(tmp_path: Path) -> None:
    with shell("kill -9 $$", tmp_path) as process:
        assert list(process.lines()) == []

    assert process.status == -9


def test_it_reads_its_input_to_the_end_however_long(tmp_path: Path) -> None:
    with shell("wc -c", tmp_path, "🦊" * 100_000) as process:
        assert [line.strip() for line in process.lines()] == [b"400000"]


def test_a_character_between_two_reads_is_not_cut(tmp_path: Path) -> None:
    with shell("printf '\\360\\237'; sleep 0.05; printf '\\246\\212\\n'", tmp_path) as process:
        assert [line.decode() for line in process.lines()] == ["🦊"]


def test_noise_in_its_error_output_stops_nothing_and_only_its_end_is_kept(tmp_path: Path) -> None:
    with shell("head -c 300000 /dev/zero | tr '\\0' x >&2; echo last >&2; echo out", tmp_path) as process:
        assert list(process.lines()) == [b"out"]

    assert process.complaint.endswith("xlast")
    assert len(process.complaint) < 5000


def test_it_finds_nothing_in_its_environment_but_what_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "ours")

    with Process(Command(("/usr/bin/env",), {"GIVEN": "yes", "LC_ALL": "C.UTF-8"}, tmp_path)) as process:
        assert sorted(process.lines()) == [b"GIVEN=yes", b"LC_ALL=C.UTF-8"]


def test_it_has_a_session_of_its_own(tmp_path: Path) -> None:
    with shell("cut -d' ' -f6 /proc/self/stat", tmp_path) as process:
        [session] = map(int, process.lines())

    assert session == process.pid != os.getsid(0)


@pytest.mark.parametrize("path", ["/not/there", "/etc/passwd"])
def test_a_program_that_cannot_be_started_is_told_in_its_complaint(tmp_path: Path, path: str) -> None:
    with Process(Command((path,), ENV, tmp_path)) as process:
        assert list(process.lines()) == []

    assert process.status is None
    assert process.complaint.startswith(f"{path} cannot be started")


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelBroke, match="cannot be started"):
        shell("true", tmp_path / "not there")


def test_stopped_it_ends_with_all_that_it_started(tmp_path: Path) -> None:
    with shell("sleep 100 & echo $! > child; echo go; wait", tmp_path) as process:
        assert next(process.lines()) == b"go"
        process.stop()
        assert list(process.lines()) == []

    assert process.status is None
    assert gone(pid_in(tmp_path / "child"))
    assert gone(process.pid)


def test_it_can_be_stopped_though_it_was_started_with_signals_blocked(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])
    try:
        process = shell("echo go; sleep 100", tmp_path)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with process:
        assert next(process.lines()) == b"go"
        process.stop()
        stopped = time.monotonic()
        assert list(process.lines()) == []

    assert time.monotonic() - stopped < module.GRACE


def test_when_no_file_can_be_opened_it_is_an_error(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Path(os.devnull).open() as lowest:
        first_free = lowest.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (first_free, hard))
    try:
        with pytest.raises(ModelBroke, match=r"cannot be started: .*Too many open files"):
            shell("true", tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_it_leaves_behind_when_it_ends_by_itself_is_ended(tmp_path: Path) -> None:
    with shell("sleep 100 & echo $! > child; exit 3", tmp_path) as process:
        assert list(process.lines()) == []

    assert process.status == 3
    assert gone(pid_in(tmp_path / "child"))


def test_a_block_that_raises_ends_it_at_once(tmp_path: Path) -> None:
    with pytest.raises(KeyError), shell("echo go; sleep 100", tmp_path) as process:
        next(process.lines())
        raise KeyError

    assert gone(process.pid)


def test_a_line_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_MAX", 100_000)

    with pytest.raises(ModelBroke, match="more than it may"), shell("cat /dev/zero", tmp_path) as process:
        list(process.lines())

    assert gone(process.pid)


def test_lines_without_end_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OUTPUT_MAX", 1_000_000)

    with pytest.raises(ModelBroke, match="more than it may"), shell("yes", tmp_path) as process:
        for _ in process.lines():
            pass

    assert gone(process.pid)


def test_a_keeper_that_is_killed_takes_the_program_with_it(tmp_path: Path) -> None:
    with shell("echo $$ > child; echo go; sleep 100", tmp_path) as process:
        assert next(process.lines()) == b"go"
        os.kill(process.pid, signal.SIGKILL)
        assert list(process.lines()) == []

    assert process.status is None
    assert gone(pid_in(tmp_path / "child"))


OWNER = """
import sys
from pathlib import Path
from bigbrain.orchestrator.claude_code.process import Command, Process
with Process(Command(("/bin/sh", "-c", sys.argv[1]), {"PATH": "/usr/bin:/bin"}, Path(sys.argv[2]))) as process:
    for line in process.lines():
        print(line.decode(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("script", ["echo $$; sleep 100", "trap '' TERM; echo $$; while :; do sleep 0.1; done"])
def test_when_its_owner_is_killed_it_ends_as_well(tmp_path: Path, script: str) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER, script, str(tmp_path)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        group = os.getpgid(pid)
        owner.kill()

    assert until(lambda: not alive(pid) and not alive(group))


@pytest.mark.slow
def test_when_its_owner_is_gone_before_it_has_looked_it_ends_all_the_same() -> None:
    # we are not whom it is to look after; the other end of its line is open, as in a process that was forked
    ours, line = socket.socketpair()
    with ours, line:
        command = [sys.executable, "-I", "-S", KEEPER, str(line.fileno()), "1", "1", "/bin/sleep", "100"]
        with subprocess.Popen(command, pass_fds=(line.fileno(),), start_new_session=True) as keeper:
            assert until(lambda: keeper.poll() is not None)


@pytest.mark.slow
def test_when_its_owner_is_killed_it_ends_though_a_process_that_was_forked_lives_on(tmp_path: Path) -> None:
    forking = OWNER.replace(
        "    for line", "    heir = os.fork() or time.sleep(60)\n    print(heir, flush=True)\n    for line"
    )
    command = [sys.executable, "-c", "import os, time" + forking, "echo $$; sleep 100", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        heir, pid = int(owner.stdout.readline()), int(owner.stdout.readline())
        owner.kill()
        assert gone(pid)
        os.kill(heir, signal.SIGKILL)


@pytest.mark.slow
def test_one_that_ignores_term_is_killed_after_its_grace(tmp_path: Path) -> None:
    started = time.monotonic()
    with shell("trap '' TERM; echo $$ > child; echo go; while :; do sleep 0.1; done", tmp_path) as process:
        assert next(process.lines()) == b"go"
        process.stop()
        assert list(process.lines()) == []

    assert time.monotonic() - started > module.GRACE
    assert gone(pid_in(tmp_path / "child"))


@pytest.mark.slow
def test_one_that_does_not_end_after_its_last_word_is_ended(tmp_path: Path) -> None:
    with shell("echo last; sleep 100", tmp_path) as process:
        assert next(process.lines()) == b"last"

    assert process.stopped
    assert gone(process.pid)


@pytest.mark.slow
def test_one_that_left_its_session_with_our_pipes_does_not_hold_us_up(tmp_path: Path) -> None:
    script = f"{sys.executable} -c 'import os,time; os.setsid(); print(os.getpid(), flush=True); time.sleep(60)' & wait"
    with shell(script, tmp_path) as process:
        escaped = int(next(process.lines()))
        process.stop()
        assert list(process.lines()) == []

    assert gone(process.pid)
    psutil.Process(escaped).kill()


@pytest.mark.slow
def test_a_hundred_runs_leave_neither_zombies_nor_open_files(tmp_path: Path) -> None:
    us = psutil.Process()
    before = us.num_fds()
    for number in range(100):
        with shell("echo go; sleep 100" if number % 2 else "echo go", tmp_path) as process:
            next(process.lines())
            if number % 2:
                process.stop()

    assert us.num_fds() == before
    assert [child for child in us.children() if child.status() == psutil.STATUS_ZOMBIE] == []
