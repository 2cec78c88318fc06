"""The kit as a whole: its examples, its names, and that nobody else pays for it."""

from __future__ import annotations

import doctest
import subprocess
import sys
from importlib import import_module

import pytest

from bigbrain import testing


@pytest.mark.parametrize("module", ["client", "clock", "scripted"])
def test_the_examples_are_true(module: str) -> None:
    results = doctest.testmod(import_module(f"bigbrain.testing.{module}"))

    assert (results.attempted > 0, results.failed) == (True, 0)


def test_the_example_of_the_package_is_true() -> None:
    text = (testing.__doc__ or "").split("\n\n", 1)[1].partition("\nThe brain runs")[0]
    scope: dict[str, object] = {}
    exec(compile("\n".join(line.removeprefix("    ") for line in text.splitlines()), "testing", "exec"), scope)

    scope["test_jarvis_says_good_evening"]()  # type: ignore[operator]


def test_whoever_only_serves_a_brain_does_not_load_the_kit() -> None:
    code = "import sys, bigbrain; print('fakeredis' in sys.modules, 'bigbrain.testing' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False"]
