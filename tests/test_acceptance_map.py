"""The map from the acceptance list to the tests is true: what it names exists, and nothing that is built lacks a test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAP = (ROOT / "docs" / "acceptance.md").read_text(encoding="utf-8")

BOXES = {
    "8.1": 21,
    "8.2": 5,
    "8.3": 10,
    "8.4": 10,
    "8.5": 5,
    "8.6": 6,
    "8.7": 17,
    "8.8": 5,
    "8.9": 27,
    "8.10": 5,
    "8.11": 17,
    "8.12": 4,
    "8.13": 27,
    "8.14": 21,
    "8.15": 58,
    "8.16": 15,
    "8.17": 13,
    "8.18": 10,
    "8.19": 3,
    "8.20": 26,
}
"""How many boxes each section of the list has."""

LATER = {"8.14": 1, "8.20": 26}
"""How many of them belong to parts that are not built yet; each part that is built takes its own from here."""

PITFALLS = (
    "B01",
    "B02",
    "B03",
    "B04",
    "B05",
    "B06",
    "B07",
    "B08",
    "B09",
    "B10",
    "B11",
    "B12",
    "B14",
    "B16",
    "B17",
    "B18",
    "B19",
    "B20",
    "B21",
    "B22",
    "B23",
    "B24",
    "B25",
    "B26",
    "B27",
    "B28",
    "B29",
    "B30",
    "B31",
    "B32",
    "B33",
    "B34",
    "B35",
    "B36",
)


def rows(section: str) -> list[tuple[str, str, str]]:
    """The box, the tests and the remark of each row of a section."""
    found = re.search(rf"^## {re.escape(section)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", MAP, re.MULTILINE | re.DOTALL)
    assert found, f"docs/acceptance.md has no section {section}"
    lines = re.findall(r"^\| (.*?) \| (.*?) \| (.*?) ?\|$", found[1], re.MULTILINE)
    return [(box, tests, remark) for box, tests, remark in lines if tests not in ("Test", "---")]


@cache
def names_in(file: str) -> frozenset[str]:
    """The tests of a file as pytest names them, without running it."""
    names = set[str]()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return frozenset(name for name in names if name.rpartition("::")[2].startswith("test_"))


def named_in(text: str) -> list[tuple[str, str]]:
    """The tests that a page names: file and test."""
    return re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", text)


def missing(named: list[tuple[str, str]]) -> list[str]:
    """Those of them that do not exist."""
    return [f"{file}::{test}" for file, test in named if test not in names_in(file)]


def test_every_section_has_all_its_boxes_and_each_box_only_once() -> None:
    assert {section: len(rows(section)) for section in BOXES} == BOXES
    for section in BOXES:
        boxes = [box for box, _, _ in rows(section)]
        assert len(set(boxes)) == len(boxes)


def test_every_test_that_is_named_exists() -> None:
    named = named_in(MAP)

    assert len(named) > 200
    assert missing(named) == []


def test_every_box_that_is_built_has_a_test() -> None:
    later = {section: sum(tests == "later" for _, tests, _ in rows(section)) for section in BOXES}
    without = [box for section in BOXES for box, tests, _ in rows(section) if tests != "later" and "::" not in tests]

    assert {section: count for section, count in later.items() if count} == LATER
    assert without == []


def test_every_handed_pitfall_has_a_test() -> None:
    found = rows("Pitfalls")

    assert tuple(row[0].split()[0] for row in found) == PITFALLS
    assert all("::" in tests for _, tests, _ in found)


def test_every_line_of_the_clients_list_has_a_test() -> None:
    found = rows("Conformance")
    numbers = [int(row[0].split()[0]) for row in found]

    assert set(numbers) >= set(range(1, 49))
    assert len(set(numbers)) == len(numbers)
    assert all("::" in tests for _, tests, _ in found)


def test_what_is_inverted_or_changed_says_what_is_different() -> None:
    remarks = [remark for section in BOXES for _, _, remark in rows(section)]
    told = [remark for remark in remarks if re.match(r"(inverted|changed|open)", remark)]

    assert sum(remark.startswith("inverted") for remark in remarks) > 20
    assert [remark for remark in told if not re.match(r"(inverted|changed|open)[\w ]*: \S", remark)] == []


@pytest.mark.parametrize("file", sorted(path.name for path in (ROOT / "tests" / "acceptance").glob("test_*.py")))
def test_every_test_that_was_made_for_the_list_is_in_it(file: str) -> None:
    unlisted = [test for test in names_in(f"tests/acceptance/{file}") if f"tests/acceptance/{file}::{test}`" not in MAP]

    assert unlisted == []
