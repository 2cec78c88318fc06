"""`bigbrain check --against-running`, before a real Redis in which runs are under way."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis
from click.testing import CliRunner, Result
from msgspec.structs import replace

from bigbrain.brain import Brain
from bigbrain.cli import main
from bigbrain.embedded import EmbeddedRedis
from bigbrain.engine.history import History
from bigbrain.engine.records import END
from bigbrain.engine.server import connect
from bigbrain.engine.store import RunStore
from bigbrain.identity import Identity
from bigbrain.loading import load
from bigbrain.messages import JSON
from bigbrain.settings import Settings
from bigbrain.states import RunState
from bigbrain.testing import Client
from tests.engine.acting import new_run, until

pytestmark = pytest.mark.slow

OLD = """
from bigbrain import Brain, FixedModel, Flow, respond

said = Flow(model=FixedModel("x"))
brain = Brain("same", said >> respond >> said)
brain.add_flow((said.named("a") >> said).named("f").durable(), name="changed")
brain.add_flow((said.named("a") >> said).named("f").durable(forward_compatible=True), name="compatible")
brain.add_flow((said.named("a") >> said >> said).named("f").durable(forward_compatible=True), name="shorter")
brain.add_flow(said.named("f").durable(), name="gone")
brain.add_flow(said.named("f").durable(resume_on_reregister=True), name="awaited")
"""

NEW = """
from bigbrain import Brain, FixedModel, Flow, respond

said = Flow(model=FixedModel("y"))
brain = Brain("same", said >> respond >> said)
brain.add_flow((said.named("b") >> said).named("f").durable(), name="changed")
brain.add_flow((said.named("b") >> said).named("f").durable(forward_compatible=True), name="compatible")
brain.add_flow((said.named("a") >> said).named("f").durable(forward_compatible=True), name="shorter")
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    (tmp_path / "old_brain.py").write_text(OLD)
    (tmp_path / "new_brain.py").write_text(NEW)
    yield tmp_path
    sys.path[:] = path
    for name in ("old_brain", "new_brain"):
        sys.modules.pop(name, None)


def begin(url: str, flow: str, run_id: str, cursor: str = "1") -> None:
    """Puts a run of the old brain on record whose next step is `cursor` and for which no message is on its way."""
    program = load("old_brain").program(Settings())
    run = replace(
        new_run(Identity(run_id).key, flow),
        plan=program.fingerprint(flow),
        cursor=cursor,
        terms=program.terms(flow),
        state=msgspec.json.encode(RunState()),
    )
    with redis.Redis.from_url(url) as client:
        assert RunStore(client, grace=0.1).start(run)


def check(app: str, url: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["check", app, "--against-running", *words], env={"BIG_BRAIN_REDIS_URL": url})


def told(result: Result) -> dict[str, dict[str, JSON]]:
    return {flow["flow"]: flow for flow in json.loads(result.output.splitlines()[-1])["running"]}


def becomes(brain: Brain, url: str, run_ids: set[str]) -> dict[str, str]:
    """What really becomes of runs once this brain takes over: their status, and the code of their error."""
    found = {}
    server = connect(url)
    with Client(brain, server=server) as client:
        for run_id in run_ids:
            if run_id == "awaited":
                # it is looked after again and again, and stays
                until(lambda: int(server.hget("bb:run:open:awaited", "waits") or 0) > 2)
                found[run_id] = str(client.reception.runs.store.record("open:awaited").status)
                continue
            record = client.record(Identity(run_id).key)
            found[run_id] = record.error["code"] if record.error else record.status
    return found


def test_what_a_deploy_would_do_is_what_it_does(redis_server: EmbeddedRedis) -> None:
    runs = {"same": "2", "changed": "1", "compatible": "1", "shorter": "2", "gone": "0", "awaited": "0", "same.2": END}
    for run_id, cursor in runs.items():
        begin(redis_server.url, run_id.partition(".")[0], run_id, cursor)

    flows = told(check("new_brain", redis_server.url, "--json"))
    counts = {name: {key: flow[key] for key in ("resume", "wait", "discard", "refuse")} for name, flow in flows.items()}
    became = becomes(load("new_brain"), redis_server.url, set(runs))

    none = {"resume": 0, "wait": 0, "discard": 0, "refuse": 0}
    assert counts == {
        "same": {**none, "resume": 2},
        "changed": {**none, "discard": 1},
        "compatible": {**none, "resume": 1},
        "shorter": {**none, "discard": 1},
        "gone": {**none, "refuse": 1},
        "awaited": {**none, "wait": 1},
    }
    assert became == {
        "same": "done",
        "same.2": "done",
        "changed": "brain_changed",
        "compatible": "done",
        "shorter": "brain_changed",
        "gone": "brain_changed",
        "awaited": "queued",
    }


def test_runs_that_would_end_are_told_with_the_remedy_and_exit_code_3(redis_server: EmbeddedRedis) -> None:
    for number in range(7):
        begin(redis_server.url, "changed", f"r.{number}")
    begin(redis_server.url, "gone", "g", "0")

    result = check("new_brain", redis_server.url)

    assert result.exit_code == 3
    assert re.search(r"^ *changed +0 +0 +7 +0 *$", result.output, re.MULTILINE)
    assert "7 of flow `changed` would end with `brain_changed`, such as r." in result.output
    assert "1 of flow `gone` would end with `brain_changed`, such as g; this brain does not serve it" in result.output
    assert len(told(check("new_brain", redis_server.url, "--json"))["changed"]["such"]) == 5


def test_the_code_that_runs_already_ends_nothing(redis_server: EmbeddedRedis) -> None:
    nothing = check("old_brain", redis_server.url)
    begin(redis_server.url, "changed", "r")
    one = check("old_brain", redis_server.url)

    assert (nothing.exit_code, one.exit_code) == (0, 0)
    assert "no run is under way" in nothing.output
    assert re.search(r"^ *changed +1 +0 +0 +0 *$", one.output, re.MULTILINE)


def test_each_of_very_many_runs_is_counted_once_and_members_of_groups_not_at_all(redis_server: EmbeddedRedis) -> None:
    begin(redis_server.url, "same", "r", "2")
    with redis.Redis.from_url(redis_server.url) as client:
        for number in range(1500):
            client.copy("bb:run:open:r", f"bb:run:open:r{number}")
            client.copy("bb:run:open:r", f"bb:run:open:r{number}.1.0")
        client.zadd("bb:due", {f"open:r{number}": 1 for number in range(1500)})
        client.zadd("bb:due", {f"open:r{number}.1.0": 1 for number in range(1500)})
        ids = [run.id for run in History(client).unfinished()]

    assert len(ids) == len(set(ids)) == 1501


def test_a_faulty_brain_is_told_its_faults_and_compared_with_nothing(here: Path) -> None:
    (here / "new_brain.py").write_text("from bigbrain import Brain\nbrain = Brain('empty')\n")

    result = check("new_brain", "redis://127.0.0.1:1/0")

    assert result.exit_code == 1
    assert "✗ the brain has no flow" in result.output


def test_a_redis_that_does_not_answer_is_one_message(here: Path) -> None:
    result = check("new_brain", "redis://me:canary@127.0.0.1:1/0")

    assert result.exit_code == 2
    assert "does not answer" in result.output
    assert "canary" not in result.output
