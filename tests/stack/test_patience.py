"""A stream that lasts longer than a worker of the web side may be silent to its master."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx2
import pytest

from bigbrain.wire import anthropic, openai_chat, sse
from tests.stack.deployment import deployed
from tests.upstream import Upstream
from tests.upstream_answers import words
from tests.web.site import BOTH, CHAT

pytestmark = pytest.mark.slow

TIMEOUT = 3
"""Seconds after which gunicorn kills a worker that does not beat; 60 in real deployments."""


def test_b16_no_stream_is_cut_by_the_timeout_of_its_worker(tmp_path: Path) -> None:
    options = {"GUNICORN_CMD_ARGS": f"--timeout {TIMEOUT}", "BIG_BRAIN_HEARTBEAT": "1"}
    with (
        Upstream() as upstream,
        deployed("up", "tests.brains", "--port", "0", data=tmp_path, UPSTREAM=upstream.url, **options) as deployment,
        httpx2.Client(timeout=30) as client,
    ):
        for path in BOTH:
            body = {
                "model": "tokens:30@4",
                "max_tokens": 99,
                "stream": True,
                "messages": [{"role": "user", "content": "hi"}],
            }
            began, told, others = time.monotonic(), b"", []
            with client.stream("POST", deployment.url + path, json=body) as response:
                for chunk in response.iter_bytes():
                    told += chunk
                    if len(others) < 3:
                        others.append(httpx2.get(f"{deployment.url}/v1/models", timeout=10).status_code)
            dialect = openai_chat if path == CHAT else anthropic
            pieces = [event.text for event in dialect.read_events(sse.read([told])) if hasattr(event, "text")]

            assert time.monotonic() - began > 2 * TIMEOUT
            assert "".join(pieces) == "".join(words(30))
            assert others == [200, 200, 200]

        silent = {"model": f"slow:{2 * TIMEOUT}", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        for path in BOTH:
            answer = client.post(deployment.url + path, json=silent)
            assert "late" in json.dumps(answer.json())


def test_a_whole_answer_that_fails_after_its_blanks_breaks_its_connection(tmp_path: Path) -> None:
    options = {"BIG_BRAIN_HEARTBEAT": "0.2", "UPSTREAM_TIMEOUT": "3"}
    with (
        Upstream() as upstream,
        deployed("up", "tests.brains", "--port", "0", data=tmp_path, UPSTREAM=upstream.url, **options) as deployment,
        httpx2.Client(timeout=30) as client,
    ):
        for path in BOTH:
            body = {"model": "hang", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
            told = b""
            with client.stream("POST", deployment.url + path, json=body) as response:
                assert response.status_code == 200
                with pytest.raises(httpx2.RemoteProtocolError):
                    for chunk in response.iter_raw():
                        told += chunk
            whole = client.post(deployment.url + path, json={**body, "model": "slow:2"})

            assert told.strip() == b""
            assert len(told) > 1
            assert "late" in whole.text
