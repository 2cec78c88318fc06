"""The one-process mode, with a real Redis beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from bigbrain.cli.listening import checked_address
from bigbrain.embedded import answers
from bigbrain.errors import WiringError
from bigbrain.settings import Settings
from tests.web.site import CHAT, asking, saying
from web.serving import running, serve

ROOT = Path(__file__).parents[2]
BRAIN = """
from bigbrain.brain import Brain
from bigbrain.flows import Flow
from bigbrain.models import FixedModel
Brain("b", Flow(model=FixedModel("hello there"))).serve(port=0)
"""


def ask(url: str) -> str:
    request = Request(url + CHAT, json.dumps(asking()).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=10) as response:
        return str(json.load(response)["choices"][0]["message"]["content"])


@pytest.mark.slow
def test_a_brain_is_served_by_this_process_and_its_redis_ends_with_it(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    address = checked_address("127.0.0.1", 0, settings)
    with running(saying("hello there"), settings, address):
        redis_url = (tmp_path / "redis.url").read_text()
        answer = ask(address.local_url)
        with urlopen(f"{address.local_url}/readyz", timeout=10) as ready:
            status = ready.status

    assert (answer, status) == ("hello there", 200)
    assert not answers(redis_url)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    env = {**os.environ, "BIG_BRAIN_DATA": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-u", "-c", BRAIN], env=env, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        ready, _, curl = (process.stdout.readline() for _ in range(3))
        url = next(word for word in ready.split() if word.startswith("http"))
        answer = ask(url)
        process.send_signal(number)
        told, errors = process.communicate(timeout=20)

    assert answer == "hello there"
    assert f"curl -N {url}/v1/chat/completions" in curl
    assert "stopping" in told
    assert (process.returncode, errors) == (0, "")


def test_nobody_else_can_reach_it_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WiringError, match="BIG_BRAIN_KEYS"):
        serve(saying("x"), host="0.0.0.0", port=0)
