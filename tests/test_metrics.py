"""What is counted of what is told, and what Prometheus reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bigbrain.messages import JSON, Usage
from bigbrain.metrics import NAMES, Exposition, Meters, sweep
from bigbrain.trace import Trail

ROOT = Path(__file__).parents[1]


def value(meters: Meters, name: str, **labels: str) -> float | None:
    return meters.registry.get_sample_value(f"bigbrain_{name}", labels)


def counting(*told: tuple[str, dict[str, JSON]]) -> Meters:
    meters = Meters()
    trail = Trail((meters,), run="r1")
    for kind, detail in told:
        trail.tell(kind, **detail)
    return meters


def read(page: bytes | str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The samples of a page, by name and labels."""
    text = page if isinstance(page, str) else page.decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_question_to_a_model_is_counted_with_its_times() -> None:
    meters = counting(("model.call", {"model": "gpt", "seconds": 0.7, "first": 0.15, "usage": Usage(3, 2)}))

    assert value(meters, "model_calls_total", model="gpt", outcome="ok") == 1
    assert value(meters, "model_call_seconds_sum", model="gpt") == 0.7
    assert value(meters, "model_call_seconds_bucket", model="gpt", le="0.5") == 0
    assert value(meters, "model_call_seconds_bucket", model="gpt", le="1.0") == 1
    assert value(meters, "model_first_token_seconds_bucket", model="gpt", le="0.1") == 0
    assert value(meters, "model_first_token_seconds_bucket", model="gpt", le="0.2") == 1


def test_the_kinds_of_tokens_add_up_to_all_and_thinking_is_not_counted_twice() -> None:
    usage = Usage(input=100, output=50, cache_read=7, cache_write=3, reasoning=40)
    meters = counting(*[("model.call", {"model": "m", "seconds": 1.0, "usage": usage})] * 2)

    kinds = {
        sample.labels["kind"]: sample.value
        for family in meters.registry.collect()
        for sample in family.samples
        if sample.name == "bigbrain_tokens_total"
    }
    assert kinds == {"input": 200, "output": 100, "cache_read": 14, "cache_write": 6}
    assert sum(kinds.values()) == 2 * usage.total
    assert value(meters, "reasoning_tokens_total", model="m") == 80


def test_a_model_that_reports_no_tokens_is_counted_as_such_and_one_that_failed_is_not() -> None:
    meters = counting(
        ("model.call", {"model": "m", "seconds": 1.0, "usage": Usage()}),
        ("model.call", {"model": "m", "seconds": 1.0, "error": "model_busy"}),
    )

    assert value(meters, "model_usage_missing_total", model="m") == 1
    assert value(meters, "model_calls_total", model="m", outcome="model_busy") == 1
    assert value(meters, "tokens_total", model="m", kind="input") is None


def test_an_answer_without_a_token_has_no_first_one() -> None:
    meters = counting(("model.call", {"model": "m", "seconds": 1.0, "error": "model_busy"}))

    assert value(meters, "model_first_token_seconds_count", model="m") is None


def test_tools_are_counted_without_their_names() -> None:
    meters = counting(
        ("tool.call", {"tool": "clients-own-name", "seconds": 0.003}),
        ("tool.call", {"tool": "b", "seconds": 0.003, "error": "tool_error"}),
    )

    assert value(meters, "tool_calls_total", outcome="ok") == 1
    assert value(meters, "tool_calls_total", outcome="error") == 1
    assert value(meters, "tool_call_seconds_bucket", le="0.005") == 2
    assert b"clients-own-name" not in Exposition(meters).text()


def test_steps_runs_and_what_befalls_them_are_counted() -> None:
    meters = counting(
        ("step.start", {"waited": 0.02}),
        ("step.end", {"seconds": 2.0, "usage": {}, "result": "done"}),
        ("step.end", {"seconds": 2.0, "usage": {}, "result": "handler_failed"}),
        ("retry", {"code": "handler_failed"}),
        ("recovered", {"lost": 1}),
        ("run.end", {"status": "done", "code": ""}),
        ("run.end", {"status": "failed", "code": "handler_failed"}),
        ("notify", {"to": "phone", "ok": False}),
    )

    assert value(meters, "queue_wait_seconds_bucket", le="0.025") == 1
    assert value(meters, "steps_total", result="done") == value(meters, "steps_total", result="handler_failed") == 1
    assert value(meters, "step_seconds_sum") == 4.0
    assert (value(meters, "retries_total"), value(meters, "recoveries_total")) == (1, 1)
    assert value(meters, "runs_total", status="failed") == 1
    assert value(meters, "run_errors_total", code="handler_failed") == 1
    assert value(meters, "notices_total", outcome="error") == 1


def test_what_has_no_number_and_what_lacks_one_fail_nothing() -> None:
    meters = counting(("select", {"id": "x"}), ("step.end", {}), ("retry", {}))

    assert value(meters, "retries_total") == 1


def test_names_without_end_do_not_fill_the_memory() -> None:
    meters = counting(
        *[("model.call", {"model": f"m{n}", "seconds": 1.0, "usage": Usage(1)}) for n in range(NAMES + 20)]
    )

    assert value(meters, "tokens_total", model="m0", kind="input") == 1
    assert value(meters, "tokens_total", model="other", kind="input") == 20


def test_two_brains_in_one_process_do_not_mix_their_numbers() -> None:
    counting(("retry", {}))

    assert value(counting(("retry", {})), "retries_total") == 1


COUNT = """
import os, signal, sys
from pathlib import Path
from bigbrain.metrics import Exposition, Meters
from bigbrain.trace import Trail
meters = Meters(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
Trail((meters,)).tell("model.call", model="gpt", seconds=0.7, usage={"input": 5})
meters.open.inc()
if sys.argv[1] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
print(Exposition(meters).text().decode())
"""


def run(folder: Path, how: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    return subprocess.run([sys.executable, "-c", COUNT, how], cwd=ROOT, env=env, capture_output=True, text=True)


def test_one_process_shows_what_all_have_counted_and_what_a_killed_one_has_open_is_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "when needed"
    killed = run(folder, "die")
    shown = run(folder, "show")

    assert killed.returncode == -signal.SIGKILL
    samples = read(shown.stdout)
    assert samples["bigbrain_tokens_total", (("kind", "input"), ("model", "gpt"))] == 10
    assert samples["bigbrain_model_call_seconds_count", (("model", "gpt"),)] == 2
    assert samples["bigbrain_model_call_seconds_bucket", (("le", "1.0"), ("model", "gpt"))] == 2
    assert samples["bigbrain_open_streams", ()] == 1


def test_sweeping_keeps_what_lives_and_what_was_counted(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for pid in (dead.pid, os.getpid()):
        (tmp_path / f"gauge_livesum_{pid}.db").write_bytes(b"x")
        (tmp_path / f"counter_{pid}.db").write_bytes(b"x")
        (tmp_path / f"histogram_{pid}.db").touch()

    sweep(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == {
        f"counter_{dead.pid}.db",
        *(f"{kind}_{os.getpid()}.db" for kind in ("gauge_livesum", "counter", "histogram")),
    }


@pytest.mark.parametrize("name", ["bigbrain_open_streams", "bigbrain_retries_total", "bigbrain_step_seconds_count"])
def test_what_has_no_label_is_shown_before_it_happens(name: str) -> None:
    assert read(Exposition(Meters()).text())[name, ()] == 0
