"""`bigbrain runs` before a brain behind its web tier."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

import httpx2
import pytest
from click.testing import CliRunner, Result

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.cli import main
from bigbrain.errors import ModelBusy
from bigbrain.flows import Flow
from bigbrain.models import FixedModel
from bigbrain.settings import Settings
from bigbrain.turns import Turn
from tests.web.site import CHAT, asking, listening, serving


def brain() -> Brain:
    """Says `one two`; its flow `flaky` fails at first."""
    tries = count(1)

    @agent
    def fail_once(turn: Turn, chat: Chat) -> None:
        if next(tries) == 1:
            raise ModelBusy
        turn.reply("at last")

    made = Brain("b", Flow(model=FixedModel("one two")))
    made.add_flow(Flow(fail_once), name="flaky")
    return made


@pytest.fixture
def url() -> Iterator[str]:
    with serving(brain(), Settings(keys=("k",))) as site, listening(site.app) as url:
        yield url


def ask(url: str, run_id: str, model: str = "b") -> None:
    headers = {"X-Run-Id": run_id, "Authorization": "Bearer k"}
    httpx2.post(url + CHAT, json=asking(model=model), headers=headers)


def runs(url: str, *words: str, key: str = "k") -> Result:
    return CliRunner().invoke(main, ["runs", "--url", url, *words], env={"BIG_BRAIN_KEYS": key})


def test_runs_are_listed_page_by_page(url: str) -> None:
    for run_id in ("r1", "r2", "r3"):
        ask(url, run_id)
    first = runs(url, "list", "--limit", "2")
    after = re.search(r"--after (\S+)", first.output)
    assert after is not None
    second = runs(url, "list", "--limit", "2", "--after", after[1])

    assert first.exit_code == 0, first.output
    assert re.findall(r"\br\d\b", first.output.partition("more with")[0]) == ["r3", "r2"]
    assert re.findall(r"\br\d\b", second.output) == ["r1"]


def test_a_run_is_shown_with_its_steps(url: str) -> None:
    ask(url, "r1")
    result = runs(url, "show", "r1")

    assert result.exit_code == 0, result.output
    assert "r1 b done" in result.output
    assert re.search(r"^ *0 b: model +done( +\d+\.\d\d){3} +0 +0 *$", result.output, re.MULTILINE), result.output


def test_a_run_is_followed_to_its_end(url: str) -> None:
    ask(url, "r1")

    assert runs(url, "follow", "r1").output == "one two\n"
    assert runs(url, "follow", "r1", "--after", "1000").output == "\n"


def test_a_failed_run_is_told_and_can_be_taken_up_again(url: str) -> None:
    ask(url, "r1", "flaky")
    followed, shown = runs(url, "follow", "r1"), runs(url, "show", "r1")
    retried = runs(url, "retry", "r1")
    answer = runs(url, "follow", "r1")
    refused = runs(url, "retry", "r1")

    assert (followed.exit_code, shown.exit_code, retried.exit_code) == (2, 0, 0)
    assert "over its limits" in followed.output
    assert "model_busy" in shown.output
    assert answer.output == "at last\n"
    assert (refused.exit_code, "only one that failed" in refused.output) == (2, True)


def test_an_attempt_that_failed_is_shown_beneath_the_one_that_did_not(url: str) -> None:
    ask(url, "r1", "flaky")
    runs(url, "retry", "r1")
    runs(url, "follow", "r1")
    shown = runs(url, "show", "r1").output

    assert re.search(r"^ *0 flaky: fail_once +done, attempt 2( +\d+\.\d\d){3} +0 +0 *$", shown, re.MULTILINE), shown
    assert re.search(r"^ +attempt 1 +model_busy( +\d+\.\d\d){3} +0 +0 *$", shown, re.MULTILINE), shown


def test_a_finished_run_stays_finished_when_it_is_cancelled(url: str) -> None:
    ask(url, "r1")
    result = runs(url, "cancel", "r1")

    assert result.exit_code == 0
    assert "r1 b done" in result.output


@pytest.mark.parametrize(
    "words", [("show", "r1"), ("follow", "r1"), ("cancel", "r1"), ("retry", "r1"), ("show", "a/b")]
)
def test_a_run_that_is_not_there_is_told(url: str, words: tuple[str, ...]) -> None:
    result = runs(url, *words)

    assert result.exit_code == 2
    assert "there is no" in result.output


def test_a_key_that_is_unknown_is_told(url: str) -> None:
    result = runs(url, "list", key="other")

    assert result.exit_code == 2
    assert "the API key is missing or unknown" in result.output


def test_nobody_there_is_told_with_the_remedy() -> None:
    result = runs("http://127.0.0.1:1", "list")

    assert result.exit_code == 2
    assert "nobody answers at `http://127.0.0.1:1`; start a brain with `bigbrain up`" in result.output
