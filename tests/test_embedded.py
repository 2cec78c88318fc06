from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu import Connection
from redis import Redis

from bigbrain.embedded import EmbeddedRedis, answers, find_url, redis_server
from bigbrain.errors import BrainError, WiringError
from bigbrain.folder import hold
from bigbrain.programs import FAKE, Program, programs
from bigbrain.settings import Settings

pytestmark = pytest.mark.slow

LEFT = {"appendonlydir", "redis.lock", "redis.log"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(folder)
    server.start()
    yield server
    server.stop()


def pid_of(url: str) -> int:
    with Redis.from_url(url) as client:
        return int(client.info("server")["process_id"])


def test_it_answers_and_leaves_only_its_data(folder: Path) -> None:
    server = EmbeddedRedis(folder)
    server.start()
    assert answers(server.url)
    pid = pid_of(server.url)

    server.stop()

    assert not Path(f"/proc/{pid}").exists()
    assert {path.name for path in folder.iterdir()} <= LEFT


def test_it_keeps_every_write_and_loses_no_key_by_itself(server: EmbeddedRedis) -> None:
    with Redis.from_url(server.url, decode_responses=True) as client:
        found = client.config_get("appendonly", "appendfsync", "save", "maxmemory-policy", "client-output-buffer-limit")

    assert found["appendonly"] == "yes"
    assert found["appendfsync"] == "everysec"
    assert found["save"] == ""
    assert found["maxmemory-policy"] == "noeviction"
    assert found["client-output-buffer-limit"].endswith("pubsub 67108864 16777216 60")


def test_only_its_user_can_open_the_socket_and_read_the_address(server: EmbeddedRedis, folder: Path) -> None:
    for name in ("redis.sock", "redis.url", "redis.conf", "redis.lock"):
        assert stat.S_IMODE((folder / name).stat().st_mode) & 0o077 == 0, name


def test_celery_reaches_the_same_database(tmp_path: Path) -> None:
    folder = tmp_path / "a %b"
    folder.mkdir()
    server = EmbeddedRedis(folder)
    server.start()
    try:
        url = server.url.replace("db=0", "db=3")
        with redis_server(Settings(redis_url=url)) as given, Connection(given.broker_url) as connection:
            connection.SimpleQueue("things").put("hello")
        with Redis.from_url(url) as client:
            assert client.llen("things") == 1
    finally:
        server.stop()


def test_what_was_written_is_there_after_a_kill(server: EmbeddedRedis) -> None:
    with Redis.from_url(server.url) as client:
        client.set("k", "v")
        os.kill(pid_of(server.url), signal.SIGKILL)
    server._process.wait()  # type: ignore[union-attr]
    assert not server.alive()
    before = server.url

    server.start()

    assert server.url == before
    with Redis.from_url(server.url) as client:
        assert client.get("k") == b"v"


def test_a_folder_with_a_long_path_gets_a_port_with_a_password(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 90) / "with space"
    folder.mkdir(parents=True)
    server = EmbeddedRedis(folder)
    server.start()
    try:
        assert server.url.startswith("redis://:")
        assert answers(server.url)
        assert not answers("redis://" + server.url.partition("@")[2])
    finally:
        server.stop()


def test_an_orphan_is_found_reused_and_stopped(server: EmbeddedRedis, folder: Path) -> None:
    with Redis.from_url(server.url) as client:
        client.set("k", "v")
    second = EmbeddedRedis(folder)

    second.start()

    assert second.url == server.url
    assert "found alive" in second.about
    with Redis.from_url(second.url) as client:
        assert client.get("k") == b"v"
    second.stop()
    assert not server.alive()
    assert not second.alive()


def test_the_server_survives_the_sudden_death_of_its_launcher(folder: Path) -> None:
    launcher = subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER, str(folder)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert launcher.stdout is not None
    url = launcher.stdout.readline().strip()
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()

    with redis_server(Settings(data=folder)) as server:
        assert server.url == url
        assert answers(url)

    assert not answers(url)


_LAUNCHER = """
import sys, signal
from pathlib import Path
from bigbrain.embedded import redis_server
from bigbrain.settings import Settings
with redis_server(Settings(data=Path(sys.argv[1]))) as server:
    print(server.url, flush=True)
    signal.pause()
"""


def test_a_live_server_that_is_stuck_is_never_doubled(server: EmbeddedRedis, folder: Path) -> None:
    (folder / "redis.url").unlink()

    with pytest.raises(BrainError, match=f"process {pid_of(server.url)}.*does not answer"):
        EmbeddedRedis(folder, patience=0.1).start()


def test_without_any_server_the_fake_one_answers_and_warns(folder: Path) -> None:
    server = EmbeddedRedis(folder, [FAKE])
    server.start()
    try:
        assert answers(server.url)
        assert "EVERYTHING IS FORGOTTEN" in server.about
    finally:
        server.stop()
    assert {path.name for path in folder.iterdir()} <= LEFT


def test_a_program_of_another_platform_is_passed_over(folder: Path) -> None:
    broken = folder / "valkey-server"
    broken.write_bytes(b"\x7fELF not for here")
    broken.chmod(0o755)
    server = EmbeddedRedis(folder, [Program(str(broken)), *programs()])
    server.start()
    try:
        assert answers(server.url)
    finally:
        server.stop()


def test_a_server_that_does_not_start_says_why(folder: Path) -> None:
    (folder / "appendonlydir").write_text("in the way")

    with pytest.raises(BrainError, match=r"(?s)does not start:\n.*appendonlydir"):
        EmbeddedRedis(folder).start()


def test_a_held_folder_names_its_holder(folder: Path) -> None:
    with hold(folder), pytest.raises(WiringError, match=rf"process {os.getpid()}\b.*--data"), hold(folder):
        pass


def test_a_folder_is_free_again_after_its_holder(folder: Path) -> None:
    with hold(folder):
        pass
    with hold(folder) as held:
        assert held == folder.absolute()


def test_a_new_folder_is_private(folder: Path) -> None:
    with hold(folder / "a" / "b") as held:
        assert stat.S_IMODE(held.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_says_so(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(WiringError, match="cannot be used"), hold(folder / "file" / "data"):
        pass


def test_a_given_redis_is_used_as_it_is(server: EmbeddedRedis, tmp_path: Path) -> None:
    settings = Settings(redis_url=server.url, data=tmp_path / "unused")
    with redis_server(settings) as given:
        assert given.url == server.url
        assert given.embedded is None
    assert find_url(settings) == server.url
    assert server.alive()
    assert not settings.data.exists()


def test_a_given_redis_that_is_not_there_is_told_without_its_password() -> None:
    settings = Settings(redis_url="redis://:canary@127.0.0.1:1/0")
    silence = pytest.raises(BrainError, match=r"nobody listens at `redis://:\*\*\*@127.0.0.1:1/0`")
    with silence, redis_server(settings, patience=0.1):
        pass


def test_the_live_server_of_a_folder_is_found(server: EmbeddedRedis, folder: Path) -> None:
    assert find_url(Settings(data=folder)) == server.url


def test_a_folder_without_a_live_server_says_what_to_do(folder: Path) -> None:
    with pytest.raises(WiringError, match="bigbrain up"):
        find_url(Settings(data=folder))
