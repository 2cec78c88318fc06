"""A real nginx before a deployment, with its default settings: what stands between most servers and their clients."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    gzip on;
    gzip_types application/json text/plain;
    {paths}
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass {url}; }}
        location /brain/ {{ proxy_pass {url}/; }}
        location /modern/ {{ proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass {url}/; }}
    }}
}}
"""
"""All as nginx has it, with compression as many have it."""

PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
PATIENCE = 10.0


def find() -> str:
    """The program; skips the test where there is none, which `.ci/run` prevents where it can."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip("there is no nginx here, and no package of it could be installed")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def proxied(url: str, folder: Path) -> Iterator[str]:
    """The base URL of an nginx before `url`: there at `/`, at `/brain/`, and at `/modern/` with kept connections."""
    port = free_port()
    paths = " ".join(f"{name}_temp_path {folder}/{name};" for name in PATHS)
    file = folder / "nginx.conf"
    file.write_text(CONFIGURATION.format(folder=folder, url=url, port=port, paths=paths), encoding="utf-8")
    process = subprocess.Popen(
        [find(), "-c", str(file), "-p", str(folder), "-e", str(folder / "error.log")], env=os.environ
    )
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "error.log").read_text(encoding="utf-8")
                assert time.monotonic() < until, "nginx does not listen"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE)
