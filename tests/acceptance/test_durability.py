"""Durability as the list of pitfalls wants it: what was kept never answers for another step."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fakeredis
import pytest

from bigbrain import All, Brain, Chat, Flow, Turn, agent, respond
from bigbrain.errors import ModelBroke
from bigbrain.testing import Client

ROOT = Path(__file__).parents[2]


class Version:
    """A version of a brain: flows that say their name and the version's, and note that they did."""

    def __init__(self, number: int, acted: list[str], *, broken: str = "") -> None:
        self.number = number
        self._acted = acted
        self._broken = broken

    def flow(self, name: str, says: str = "") -> Flow:
        @agent(name="agent", role=says)
        def act(turn: Turn, chat: Chat) -> None:
            self._acted.append(f"{name}{self.number}")
            if name == self._broken:
                raise ModelBroke
            turn.reply(f"{name}{self.number}")

        return Flow(act).named(name)

    def chain(self, *names: str) -> Brain:
        flow = self.flow(names[0])
        for name in names[1:]:
            flow = flow >> self.flow(name)
        return Brain("b", (flow >> respond).named("whole").durable())


def deployed(before: Brain, after: Brain) -> tuple[list[str], str]:
    """Has a run fail in the first brain and asked for again in the second: the codes of the failures, then the text."""
    server, codes = fakeredis.FakeRedis(), list[str]()
    with Client(before, server=server) as client:
        failed = client.ask("go", run_id="r").failed
        assert failed is not None
        codes.append(failed.code)
    with Client(after, server=server) as client:
        for _ in range(3):
            answer = client.ask("go", run_id="r")
            if answer.failed is None:
                return codes, answer.text
            codes.append(answer.failed.code)
    raise AssertionError(codes)


@pytest.mark.parametrize(
    "names",
    [("new", "fetch", "pay"), ("pay", "book"), ("pay", "fetch")],
    ids=["one inserted before it", "renamed", "swapped"],
)
def test_b34_what_was_kept_never_answers_for_another_step(names: tuple[str, ...]) -> None:
    acted: list[str] = []
    codes, text = deployed(Version(1, acted, broken="pay").chain("fetch", "pay"), Version(2, acted).chain(*names))

    # told once that the brain has changed, then all of it anew
    assert codes == ["model_broke", "brain_changed"]
    assert text == "\n\n".join(f"{name}2" for name in names)
    assert acted == ["fetch1", "pay1", *(f"{name}2" for name in names)]


def test_b34_the_same_code_does_no_step_again() -> None:
    acted: list[str] = []
    codes, text = deployed(
        Version(1, acted, broken="pay").chain("fetch", "pay"), Version(2, acted).chain("fetch", "pay")
    )

    assert codes == ["model_broke"]
    assert text == "fetch1\n\npay2"
    assert acted == ["fetch1", "pay1", "pay2"]


def test_b34_another_prompt_is_no_other_structure() -> None:
    acted: list[str] = []
    before, after = Version(1, acted, broken="pay"), Version(2, acted)
    old = before.flow("fetch", "be brief") >> before.flow("pay")
    new = after.flow("fetch", "be verbose") >> after.flow("pay")
    brains = [Brain("b", (flow >> respond).named("whole").durable()) for flow in (old, new)]
    codes, text = deployed(*brains)

    assert (codes, text, acted) == (["model_broke"], "fetch1\n\npay2", ["fetch1", "pay1", "pay2"])


def test_b34_members_of_a_group_in_another_order_are_another_structure() -> None:
    acted: list[str] = []

    def grouped(version: Version, *names: str) -> Brain:
        group = All(*(version.flow(name) for name in names))
        return Brain("b", (group >> version.flow("pay") >> respond).named("whole").durable())

    codes, text = deployed(
        grouped(Version(1, acted, broken="pay"), "a", "b", "c"), grouped(Version(2, acted), "c", "a", "b")
    )

    assert codes == ["model_broke", "brain_changed"]
    assert text == "c2\n\na2\n\nb2\n\npay2"


SETS = """
from bigbrain import All, Brain, FixedModel, Flow
from bigbrain.settings import Settings

names = {"kitchen", "bath", "hall"}
group = All(*(Flow(model=FixedModel(name)).named(name) for name in SORT(names)))
print(Brain("b", group).program(Settings()).fingerprint("b"))
"""


def fingerprints(sort: Callable[[str], str]) -> set[str]:
    """The structures of a brain that is made in processes of different hash seeds."""
    return {
        subprocess.run(
            [sys.executable, "-c", sort(SETS)],
            cwd=ROOT,
            env={"PYTHONHASHSEED": str(seed), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(4)
    }


@pytest.mark.slow
def test_b34_a_group_of_a_set_is_the_same_everywhere_once_it_is_sorted() -> None:
    assert len(fingerprints(lambda code: code.replace("SORT", "sorted"))) == 1
    # a set has another order in each process: told as another structure, and never answered with another's result
    assert len(fingerprints(lambda code: code.replace("SORT", "list"))) > 1
