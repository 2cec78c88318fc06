"""What the documents say is so: their commands are the real ones, their code runs, their tables are the code's."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bigbrain.brain import Brain
from bigbrain.events import LEGAL
from bigbrain.settings import Settings
from tests.house import living
from tests.test_acceptance_map import missing, named_in

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
CLAIMING = {"claude-code.md": 18, "durable.md": 25, "orchestrator.md": 40, "triggers.md": 25}
"""The pages whose tables name a test for every claim, and how many claims each has at least."""
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if "```python\n" in page.read_text()]
"""The pages with examples."""


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_second_command_of_the_readme_is_what_ci_runs() -> None:
    commands = [block.strip() for block in blocks(README, "sh")]
    ci = (ROOT / ".ci" / "run").read_text().splitlines()[-1]

    assert ci.replace('"$venv"', ".venv").replace('"$venv/', ".venv/").replace('"', "") == commands[1]


def test_both_commands_stand_on_the_first_screen() -> None:
    first_screen = "\n".join(README.splitlines()[:40])

    assert "bigbrain up" in first_screen
    assert "python -m tests" in first_screen


def test_the_brain_of_the_readme_runs() -> None:
    [code] = blocks(README, "python")
    scope: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), scope)
    brain = scope["brain"]
    assert isinstance(brain, Brain)

    with living(brain) as house:
        answer = house.ask("hello", "r")
        record = house.record("r")

    assert answer.text == "At your service."
    assert record.status == "done"


def test_every_setting_of_the_readme_exists() -> None:
    known = {name for name, _ in Settings().describe()}
    named = set(re.findall(r"`(BIG_BRAIN_[A-Z_]+)`", README))

    assert named <= known


def test_the_table_of_events_is_the_codes() -> None:
    rows = re.findall(r"^\| (new|between|inside|over) \| (.*) \|$", ARCHITECTURE, re.MULTILINE)
    told = {state: set(re.findall(r"`(\w+)`", may)) for state, may in rows}

    assert told == {state: {event.__name__ for event in events} for state, events in LEGAL.items()}


def examples(page: Path) -> Iterator[tuple[str, str]]:
    """The Python blocks of a page: where each stands and its code, moved down to the lines it has in the page."""
    text = page.read_text()
    for found in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, found.start(1))
        yield f"{page.name}:{line + 1}", "\n" * line + found[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page are one module, from top to bottom; then each `test_…` function of it is called."""
    module = ModuleType(f"docs_{page.stem}")
    # types are looked up by name in the module of whatever they stand on
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for _, code in examples(page):
        exec(compile(code, str(page), "exec", dont_inherit=True), module.__dict__)
    for name, test in list(vars(module).items()):
        if name.startswith("test_"):
            test()


def test_every_block_of_the_docs_that_looks_like_python_is_run() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        fences = re.findall(r"^ *```(?:python|py|pycon)\b.*$", page.read_text(), re.MULTILINE)
        assert len(fences) == len(list(examples(page))), page.name


@pytest.mark.parametrize("page", CLAIMING)
def test_every_claim_of_a_page_names_a_test_that_exists(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    # the tables of claims are those whose lines have two cells, the second with tests
    tables = text[text.index("| Shown by |") :]
    claims = re.findall(r"^\| (?!--- )(.*) \| (?!Shown by )(.*) \|$", tables, re.MULTILINE)

    assert len(claims) >= CLAIMING[page]
    assert [claim for claim, shown in claims if not named_in(shown)] == []
    assert missing(named_in(text)) == []
