from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bigbrain.brain import Brain
from bigbrain.errors import WiringError
from bigbrain.loading import load


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current directory; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write(name: str, text: str) -> None:
    Path(f"{name}.py").write_text(f"from bigbrain.brain import Brain\n{text}\n")


def test_the_attribute_is_brain_if_left_out() -> None:
    write("one_brain", "brain = Brain('one')")

    assert load("one_brain").name == "one"


def test_an_attribute_can_be_named() -> None:
    write("two_brains", "brain = Brain('one'); other = Brain('two')")

    assert load("two_brains:other").name == "two"


def test_a_missing_module_is_told_with_where_it_was_looked_for(here: Path) -> None:
    with pytest.raises(WiringError, match=f"no module `no_such_brain`.*`{here}`"):
        load("no_such_brain:brain")


def test_a_missing_package_around_it_is_told() -> None:
    with pytest.raises(WiringError, match="no module `no_such_package`"):
        load("no_such_package.inner:brain")


def test_a_module_that_imports_what_is_missing_is_not_called_missing(here: Path) -> None:
    write("needs_more", "import no_such_library")

    with pytest.raises(WiringError) as caught:
        load("needs_more")

    assert "module `needs_more` fails while it is imported: ModuleNotFoundError" in str(caught.value)
    assert "'no_such_library'" in str(caught.value)
    assert f"{here}/needs_more.py, line 2" in str(caught.value)


def test_a_module_that_raises_is_told_with_its_line(here: Path) -> None:
    write("divides", "\n1 / 0")

    with pytest.raises(WiringError, match=rf"ZeroDivisionError: division by zero \({here}/divides.py, line 3\)"):
        load("divides")


def test_a_module_with_a_mistake_in_its_syntax_is_told_with_its_line(here: Path) -> None:
    write("mistaken", "def f(:")

    with pytest.raises(WiringError, match=rf"invalid syntax \({here}/mistaken.py, line 2\)"):
        load("mistaken")


def test_a_fault_that_the_module_itself_reports_stays_as_it_is() -> None:
    write("faulty", "from bigbrain.errors import WiringError\nraise WiringError('first', 'second')")

    with pytest.raises(WiringError) as caught:
        load("faulty")

    assert caught.value.faults == ("first", "second")


def test_a_missing_attribute_lists_the_brains_there_are() -> None:
    write("others", "one = Brain('one'); two = Brain('two')")

    with pytest.raises(WiringError, match="has no `brain`; it has `others:one`, `others:two`"):
        load("others")


def test_a_module_without_any_brain_is_told() -> None:
    write("none_at_all", "")

    with pytest.raises(WiringError, match="it has no brain at all"):
        load("none_at_all")


def test_what_is_not_a_brain_is_told() -> None:
    write("text", "brain = 'hello'")

    with pytest.raises(WiringError, match="`text:brain` is a str, not a Brain"):
        load("text")


def test_a_file_is_told_to_be_a_module() -> None:
    with pytest.raises(WiringError, match=r"`samples/jarvis\.py` is a file; .* `jarvis:brain`"):
        load("samples/jarvis.py")


def test_the_loaded_value_is_a_brain() -> None:
    write("typed", "brain = Brain('typed')")

    assert isinstance(load("typed"), Brain)
