from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from click.testing import CliRunner, Result

from bigbrain.cli import main
from bigbrain.cli.chat import with_version


class Parrot(BaseHTTPRequestHandler):
    """Says back, word by word, how many messages it got and the last of them."""

    asked: ClassVar[list[dict[str, object]]] = []
    keys: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.keys.append(self.headers["Authorization"])
        self._send("application/json", json.dumps({"object": "list", "data": [{"id": "parrot", "object": "model"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        text = body["messages"][-1]["content"]
        if text == "fail":
            self._send("application/json", json.dumps({"error": {"message": "the brain is tired"}}), status=500)
            return
        frames = [
            {"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": piece}}]}
            for piece in (f"{len(body['messages'])} messages, ", f"[{text}]")
        ]
        stream = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"
        self._send("text/event-stream", stream)

    def _send(self, kind: str, text: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def url() -> Iterator[str]:
    Parrot.asked.clear()
    Parrot.keys.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Parrot) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def talk(url: str, said: str, *words: str, **env: str) -> Result:
    return CliRunner().invoke(main, ["chat", "--url", url, *words], input=said, env=env)


def test_it_answers_and_remembers_what_was_said(url: str) -> None:
    result = talk(url, "hello\nand [red]you?\n")

    assert result.exit_code == 0, result.output
    assert "talking with parrot" in result.output
    assert "1 messages, [hello]" in result.output
    assert "3 messages, [and [red]you?]" in result.output


def test_a_failed_answer_is_told_and_the_question_forgotten(url: str) -> None:
    result = talk(url, "fail\nhello\n")

    assert result.exit_code == 0
    assert "the brain is tired" in result.output
    assert "1 messages, [hello]" in result.output


def test_a_model_can_be_named(url: str) -> None:
    talk(url, "hello\n", "--model", "other")

    assert [asked["model"] for asked in Parrot.asked] == ["other"]


def test_the_first_client_key_is_sent(url: str) -> None:
    talk(url, "\n", BIG_BRAIN_KEYS="one,two")

    assert Parrot.keys == ["Bearer one"]


def test_nobody_there_is_told_with_the_remedy() -> None:
    result = talk("http://127.0.0.1:1", "hello\n")

    assert result.exit_code == 2
    assert "nobody answers at `http://127.0.0.1:1`; start a brain with `bigbrain up`" in result.output


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
        ("https://models.example.com/api/v3", "https://models.example.com/api/v3"),
    ],
)
def test_an_address_without_a_path_means_its_v1(url: str, base: str) -> None:
    assert with_version(url) == base
