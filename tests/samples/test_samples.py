"""Every sample runs alone and says what it tells of itself; all of them run in a deployment and say the same."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import openai
import pytest
from click.testing import CliRunner

from bigbrain.brain import Brain
from bigbrain.cli import main
from bigbrain.messages import Message, Request, Text, ToolResult, ToolSpec, user
from bigbrain.testing import Client, Clock
from tests.bench.targets import free_port
from tests.samples.conversations import CONVERSATIONS
from tests.samples.every_sample import FOLDER, NAMES
from tests.stack.deployment import ROOT, deployed
from tests.upstream import Upstream

GUIDE = (FOLDER / "README.md").read_text()
SHORT = sorted(FOLDER.glob("*.py"))
ASKED = sorted({sample for sample, _ in CONVERSATIONS})
WAYS = [("serve",), ("up", "--web", "1")]
WEATHER = ToolSpec("get_weather", schema={"type": "object", "properties": {"city": {"type": "string"}}})


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test imports its samples anew, and they keep what they keep in a folder of its own."""
    monkeypatch.setenv("BIG_BRAIN_DATA", str(tmp_path))
    monkeypatch.chdir(ROOT)
    kept = {name: module for name, module in sys.modules.items() if name.startswith("samples.")}
    for name in kept:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if name.startswith("samples.")]:
        del sys.modules[name]
    sys.modules.update(kept)


def sample(name: str) -> Brain:
    found = import_module(f"samples.{name}").brain
    assert isinstance(found, Brain)
    return found


def talks(name: str) -> dict[str, list[tuple[str, str]]]:
    return {flow: talk for (of, flow), talk in CONVERSATIONS.items() if of == name}


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", ASKED)
def test_a_sample_alone_says_what_it_says_it_says(name: str) -> None:
    with Client(sample(name)) as client:
        heard = {
            flow: [(asked, client.chat(asked, model=flow).text) for asked, _ in talk]
            for flow, talk in talks(name).items()
        }

    assert heard == talks(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_passes_its_own_check(name: str) -> None:
    result = CliRunner().invoke(main, ["check", f"samples.{name}"])

    assert result.exit_code == 0, result.output
    assert "has no faults" in result.output


@pytest.mark.parametrize("name", [path.stem for path in SHORT if path.stem in ASKED])
def test_the_docstring_of_a_sample_tells_its_answers(name: str) -> None:
    told = one_line(ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text())) or "")

    for _, answer in [pair for talk in talks(name).values() for pair in talk]:
        for piece in answer.split("\n\n"):
            assert one_line(piece).strip(".") in told, piece


def test_the_table_of_marvis_is_what_marvis_says() -> None:
    table = (FOLDER / "marvis" / "README.md").read_text()
    rows = [tuple(cell.strip() for cell in line.split("|")[1:3]) for line in table.splitlines() if "| `" in line]
    asked = [row for row in rows if not row[0].startswith("[")]

    assert len(asked) == 7
    assert set(asked) <= set(talks("marvis")["marvis"])


def test_the_intents_of_marvis_are_its_flows() -> None:
    router = import_module("samples.marvis.router")

    assert list(router.MEANINGS) == list(router.Intent) == ["talk", "remember", "recall", "list", "house", "extra"]
    assert sample("marvis").faults() == ()


def test_the_table_of_the_desk_is_what_the_desk_says_and_does() -> None:
    table = (FOLDER / "desk" / "README.md").read_text()
    rows = [tuple(cell.strip() for cell in line.split("|")[1:4]) for line in table.splitlines() if "| `" in line]
    told = {asked.strip("`"): (answer, way) for asked, answer, way in rows}
    with Client(sample("desk")) as client:
        for asked, (answer, way) in told.items():
            heard = client.ask(asked)
            text = heard.text if heard.failed is None else f"an error, `{heard.failed.code}`: `{heard.failed.message}`"
            tools = [event.detail["tool"] for event in client.trace(heard.run_id) if event.kind == "tool.call"]

            assert answer in (f"`{text}`", text)
            assert all(f"`{tool.rpartition('/')[2]}`" in way for tool in tools)
            assert bool(tools) == (heard.failed is None)

    assert len(told) == 5


def test_the_desk_has_a_second_backend_where_the_cli_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "desk-claude" not in sample("desk").flows
    cli = tmp_path / "claude"
    cli.write_text("#!/bin/sh\nexit 3\n")
    cli.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for name in [name for name in sys.modules if name.startswith("samples.desk")]:
        del sys.modules[name]

    brain = sample("desk")

    assert brain.faults() == ()
    assert "desk-claude" in brain.flows


def test_a_clients_tool_goes_to_the_client_and_its_result_comes_back() -> None:
    question = user("will it rain?")
    with Client(sample("forward_tools")) as client:
        called = client.chat(Request(messages=(question,), tools=(WEATHER,)))
        result = Message("tool", (ToolResult(called.calls[0].id, (Text("sunny"),)),))
        answer = client.chat(Request(messages=(question, called.response.message, result), tools=(WEATHER,)))

    assert [(call.name, call.input) for call in called.calls] == [("get_weather", {"city": "Paris"})]
    assert called.stop == "calls"
    assert (answer.text, answer.calls) == ("In Paris: sunny.", ())


def test_what_the_memory_keeps_is_there_after_a_restart() -> None:
    with Client(sample("memory")) as client:
        client.chat("remember that I like tea")
    del sys.modules["samples.memory"]

    with Client(sample("memory")) as client:
        answer = client.chat("what do you know?")

    assert answer.text == "You told me: I like tea."


def test_the_last_stage_is_told_after_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    with Client(sample("stages")) as client:
        answer = client.chat("go")
        record = client.record(answer.run_id)

    assert record.status == "done"
    assert "answered: At your service." in caplog.messages


def test_every_sample_is_asked_something() -> None:
    assert set(NAMES) - set(ASKED) == {"own_model"}  # asked below, where it has servers


def test_every_sample_is_short_and_listed() -> None:
    for path in SHORT:
        assert len(path.read_text().splitlines()) < 60, path
        assert f"({path.name})" in GUIDE, path
    assert "(marvis/)" in GUIDE
    assert "(desk/)" in GUIDE


def test_samples_use_public_names_only() -> None:
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            ours = {module for module in modules if module.split(".")[0] in ("bigbrain", "web", "workers")}
            ours_may = {"bigbrain", "bigbrain.orchestrator", "bigbrain.testing", "bigbrain.webhooks"}
            assert ours <= ours_may, path


def said(client: openai.OpenAI, flow: str, asked: str) -> str:
    chunks = client.chat.completions.create(model=flow, messages=[{"role": "user", "content": asked}], stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def rain(client: openai.OpenAI) -> tuple[str, str]:
    """The arguments of the call that the client gets, and the answer to its result."""
    tools = [{"type": "function", "function": {"name": WEATHER.name, "parameters": WEATHER.schema}}]
    question = {"role": "user", "content": "will it rain?"}
    ask = client.chat.completions.create
    called = ask(model="forward_tools", messages=[question], tools=tools).choices[0].message  # type: ignore[call-overload]
    result = {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "sunny"}
    messages = [question, called.model_dump(exclude_none=True), result]
    answer = ask(model="forward_tools", messages=messages, tools=tools).choices[0].message  # type: ignore[call-overload]
    return called.tool_calls[0].function.arguments, answer.content


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_sample_says_the_same_in_one_process_and_in_a_deployment(way: tuple[str, ...], tmp_path: Path) -> None:
    app = "tests.samples.every_sample"
    with Upstream() as upstream:
        env = {
            "OPENAI_URL": upstream.openai,
            "OPENAI_MODEL": "text:from the first",
            "ANTHROPIC_URL": upstream.anthropic,
            "ANTHROPIC_MODEL": "text:from the second",
        }
        with (
            deployed(*way, app, "--port", str(free_port()), data=tmp_path, **env) as deployment,
            openai.OpenAI(base_url=deployment.openai, api_key="k") as client,
        ):
            heard = {
                (name, flow): [(asked, said(client, flow, asked)) for asked, _ in talk]
                for (name, flow), talk in CONVERSATIONS.items()
            }
            arguments, weather = rain(client)
            own = said(client, "own", "hi"), said(client, "second", "hi")
        paths = [request.path for request in upstream.requests]

    assert heard == CONVERSATIONS
    assert (json.loads(arguments), weather) == ({"city": "Paris"}, "In Paris: sunny.")
    assert own == ("from the first", "from the second")
    assert paths == ["/v1/chat/completions", "/v1/messages"]


def test_the_schedule_sample_reminds_forgets_and_says_good_night() -> None:
    clock = Clock(datetime(2026, 6, 1, 12, tzinfo=UTC))
    brain = sample("schedule")
    with Client(brain, now=clock.now) as client:
        for what in ("tea", "coffee"):
            client.record(client.chat(f"in 10 minutes: {what}").run_id)
        forgotten = client.chat("forget coffee").text
        clock.advance(600)
        [reminder] = client.fired("reminder")
        clock.set(datetime(2026, 6, 1, 20, 30, tzinfo=UTC))
        [evening] = client.fired("evening")
        [up] = client.fired("up")

    assert forgotten == "Forgotten: coffee."
    assert reminder.text == "It is time for tea."
    assert evening.text == "Good night. Off: porch, kitchen."
    assert up.text == "Awake."
