from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bigbrain.settings import Limits, Settings
from bigbrain.stack import GUNICORN_CONF

ROOT = Path(__file__).parents[2]
CONF = ROOT / GUNICORN_CONF


def test_the_brain_refuses_before_gunicorn_lets_callers_hang() -> None:
    conf = runpy.run_path(str(CONF))

    assert conf["worker_connections"] > Limits().max_streams


@pytest.mark.parametrize("drain", [None, 90])
def test_open_answers_are_ended_before_gunicorn_cuts_them(monkeypatch: pytest.MonkeyPatch, drain: int | None) -> None:
    if drain:
        monkeypatch.setenv("BIG_BRAIN_DRAIN", str(drain))
    conf = runpy.run_path(str(CONF))

    assert conf["graceful_timeout"] == Settings.read().drain + 5


def test_it_imports_nothing_that_gevent_could_not_replace_afterwards() -> None:
    code = f"import sys, runpy; runpy.run_path({str(CONF)!r}); print([m for m in ('bigbrain', 'flask', 'redis', 'ssl') if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert done.stdout == "[]\n", done.stderr


def test_gunicorn_accepts_every_setting() -> None:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "gunicorn",
        "--check-config",
        "-c",
        str(CONF),
        "wsgiref.simple_server:demo_app",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_the_live_gauges_of_a_worker_that_ended_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    for name in ("gauge_livesum_7.db", "gauge_liveall_7.db", "gauge_livesum_77.db", "counter_7.db", "gauge_max_7.db"):
        (tmp_path / name).touch()

    runpy.run_path(str(CONF))["child_exit"](None, SimpleNamespace(pid=7))

    assert {path.name for path in tmp_path.iterdir()} == {"gauge_livesum_77.db", "counter_7.db", "gauge_max_7.db"}


def test_of_a_header_that_a_webhooks_sender_repeats_the_first_is_left() -> None:
    sent = [("X-SIG", "1"), ("X-FORWARDED-FOR", "1.1.1.1"), ("X-SIG", "2"), ("X-FORWARDED-FOR", "2.2.2.2")]
    hook, chat = (SimpleNamespace(path=path, headers=sent) for path in ("/v1/hooks/a", "/v1/chat/completions"))
    conf = runpy.run_path(str(CONF))

    conf["pre_request"](None, hook)
    conf["pre_request"](None, chat)

    assert hook.headers == [("X-SIG", "1"), ("X-FORWARDED-FOR", "1.1.1.1"), ("X-FORWARDED-FOR", "2.2.2.2")]
    assert chat.headers == sent
