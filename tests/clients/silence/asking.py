"""What every script here shares: it asks in all the ways of its client at once, and tells what came of each.

    BASE_URL=http://127.0.0.1:8080 SILENCE=615 PYTHON ask_openai.py

PYTHON has the client installed, and need not have bigbrain.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping

BASE = os.environ["BASE_URL"]
OPENAI = f"{BASE}/v1"
MODEL, KEY = "stub-model", "sk-dummy"
HI = [{"role": "user", "content": "hi"}]
SILENCE = float(os.environ["SILENCE"])

Way = Callable[[], object]


def ask_all(ways: Mapping[str, Way]) -> None:
    """Asks in each way in a thread of its own; the exit status is 1 when one got no answer, or got it too soon."""
    failed: list[str] = []
    threads = [threading.Thread(target=_ask, args=(name, way, failed)) for name, way in ways.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(1 if failed else 0)


def _ask(name: str, way: Way, failed: list[str]) -> None:
    begun = time.monotonic()
    try:
        answer = str(way())
        right = "Hello" in answer or "name=" in answer
    except BaseException as exc:
        answer, right = f"{type(exc).__name__}: {exc}", False
    took = time.monotonic() - begun
    if not right or took < SILENCE:
        failed.append(name)
    said = " ".join(answer.split())[-200:]
    # one write, so that lines of several threads do not mix
    sys.stdout.write(f"{'FAIL' if name in failed else 'PASS'} {name} {took:.1f} s {said}\n")
    sys.stdout.flush()
