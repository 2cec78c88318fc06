from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bigbrain.stores import FileStore, Store, StoreError
from tests.contracts.store import StoreContract
from tests.stores.clock import Clock

COUNTING = """
import sys
from bigbrain.stores import FileStore
store = FileStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    store.update("count", lambda count: count + 1, 0)
"""

WRITING = """
import sys
from bigbrain.stores import FileStore
store = FileStore(sys.argv[1])
for number in range(1_000_000):
    store.put("long", [number] * 20_000)
    if number == 3:
        print("ready", flush=True)
"""


class TestFileStore(StoreContract):
    rounds = 15
    """Each is brought to the disk."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock, tmp_path: Path) -> Store:
        return FileStore(tmp_path / "memory", clock=clock)

    @pytest.fixture
    def passing(self, clock: Clock) -> Callable[[float], None]:
        return clock.wait


def process(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("??/*.json"))


def test_values_outlive_the_store(tmp_path: Path) -> None:
    FileStore(tmp_path).put("a", {"b": 1})

    assert FileStore(str(tmp_path)).get("a") == {"b": 1}


def test_no_update_of_two_processes_gets_lost(tmp_path: Path) -> None:
    processes = [process(COUNTING, tmp_path, 100) for _ in range(2)]
    for running in processes:
        assert running.stdin is not None
        running.stdin.write("go\n")
        running.stdin.flush()
    for running in processes:
        running.communicate(timeout=30)

    assert [running.returncode for running in processes] == [0, 0]
    assert FileStore(tmp_path).get("count") == 200


def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_value(tmp_path: Path) -> None:
    writing = process(WRITING, tmp_path)
    writing.send_signal(signal.SIGKILL)
    writing.communicate(timeout=30)
    store = FileStore(tmp_path)
    kept = store.get("long")

    assert len(kept) == 20_000
    assert len(set(kept)) == 1
    store.put("long", "next")
    assert store.get("long") == "next"


def test_half_a_file_that_a_crash_has_left_harms_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("a", 1)
    [file] = files(tmp_path)
    file.with_name(".new").write_bytes(b'{"key": "a", "unt')

    assert (store.get("a"), store.list()) == (1, ["a"])
    store.put("a", 2)
    assert store.get("a") == 2
    assert not file.with_name(".new").exists()


def test_a_damaged_file_is_told_by_its_name(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("a", 1)
    [file] = files(tmp_path)
    file.write_bytes(b"nonsense")

    with pytest.raises(StoreError, match=f"`{file}` is damaged: .*; remove the file"):
        store.get("a")


def test_a_file_under_a_foreign_name_is_not_taken_for_another_key(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("a", 1)
    [first] = files(tmp_path)
    store.put("b", 2)
    [second] = [file for file in files(tmp_path) if file != first]
    second.write_bytes(first.read_bytes())

    with pytest.raises(StoreError, match="holds the key `a` and not `b`"):
        store.get("b")


def test_what_is_kept_is_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "memory"
    FileStore(folder).put("a", 1)
    [file] = files(folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_files_whose_time_is_over_go_when_keys_are_listed(tmp_path: Path) -> None:
    clock = Clock()
    store = FileStore(tmp_path, clock=clock)
    store.put("short", 1, ttl=1)
    store.put("long", 1)
    clock.wait(2)
    assert len(files(tmp_path)) == 2

    assert store.list() == ["long"]
    assert len(files(tmp_path)) == 1


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(StoreError, match=r"the folder `.*file/memory` cannot be used as a store: "):
        FileStore(tmp_path / "file" / "memory")


def test_a_store_is_used_on_in_a_forked_child(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("a", 1)
    child = os.fork()
    if child == 0:
        store.update("a", lambda value: value + 1)
        os._exit(0)
    os.waitpid(child, 0)

    assert store.get("a") == 2
