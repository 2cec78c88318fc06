"""What may import what, how long things may get, who reads the environment."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for package in ("bigbrain", "web", "workers") for path in (ROOT / package).rglob("*.py"))

MAY_IMPORT = {
    "bigbrain.errors": (),
    "bigbrain.jsonvalue": (),
    "bigbrain.schemas": ("bigbrain.errors", "bigbrain.jsonvalue", "bigbrain.schemas"),
    "bigbrain.messages": ("bigbrain.errors", "bigbrain.jsonvalue", "bigbrain.schemas"),
    "bigbrain.events": ("bigbrain.errors", "bigbrain.messages"),
    "bigbrain.scope": ("bigbrain.errors",),
    "bigbrain.settings": ("bigbrain.errors",),
    "bigbrain.wire": ("bigbrain.errors", "bigbrain.messages", "bigbrain.events", "bigbrain.wire"),
    "bigbrain.engine": ("bigbrain.errors", "bigbrain.messages", "bigbrain.events", "bigbrain.scope", "bigbrain.engine"),
    "bigbrain.models": (
        "bigbrain.errors",
        "bigbrain.messages",
        "bigbrain.events",
        "bigbrain.scope",
        "bigbrain.settings",
        "bigbrain.wire",
        "bigbrain.models",
    ),
    "bigbrain.stores": (
        "bigbrain.errors",
        "bigbrain.messages",
        "bigbrain.schemas",
        "bigbrain.engine.server",
        "bigbrain.stores",
    ),
}
"""The lower layers, whole: of our own, each imports these only. Above them, imports only have to make no circle."""

FOREIGN = {
    "bigbrain": ("flask", "werkzeug", "celery", "kombu", "gunicorn", "gevent", "web", "workers"),
    "web": ("workers",),
    "workers": ("web", "flask", "werkzeug", "gunicorn", "gevent"),
}
"""What no module of a package imports."""

READ_THE_ENVIRONMENT = {
    "bigbrain/settings.py",
    "bigbrain/processes.py",  # hands its own on to the processes that it starts
    "bigbrain/leash.py",
    "bigbrain/orchestrator/claude_code/environment.py",  # hands a chosen part of its own on
    "bigbrain/orchestrator/claude_code/keeper.py",  # hands on what it was given
    "web/gunicorn_conf.py",  # must know the metrics' folder before anything of ours is imported
}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports; `from package import module` names the module."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively in line {node.lineno}"
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield module if module in MODULES else node.module or ""


def inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def test_imports_make_no_circle() -> None:
    graph = {name: [module for module in imports(path) if module in MODULES] for name, path in MODULES.items()}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))

    assert order.index("bigbrain.errors") < order.index("bigbrain.engine.runner") < order.index("bigbrain")


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_a_lower_layer_imports_nothing_from_above(layer: str) -> None:
    above = [
        f"{name} imports {module}"
        for name, path in MODULES.items()
        if inside(name, (layer,))
        for module in imports(path)
        if inside(module, tuple(FOREIGN)) and not inside(module, MAY_IMPORT[layer])
    ]

    assert above == []


@pytest.mark.parametrize("package", FOREIGN)
def test_a_package_keeps_to_its_side(package: str) -> None:
    foreign = [
        f"{name} imports {module}"
        for name, path in MODULES.items()
        if inside(name, (package,))
        for module in imports(path)
        if inside(module, FOREIGN[package])
    ]

    assert foreign == []


def test_everything_is_imported_at_the_top_of_its_file() -> None:
    late = [
        f"{name}, line {node.lineno}"
        for name, path in MODULES.items()
        for function in ast.walk(tree(path))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]

    assert late == []


def test_only_the_settings_read_the_environment() -> None:
    read = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and node.attr in ("environ", "environb", "getenv")
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    }

    assert read <= READ_THE_ENVIRONMENT


def test_no_file_and_no_function_is_too_long() -> None:
    files = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    functions = {
        f"{name}.{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for name, path in MODULES.items()
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }

    assert {name: lines for name, lines in files.items() if lines > 400} == {}
    assert {name: lines for name, lines in functions.items() if lines > 60} == {}


def test_every_module_says_what_it_is_about() -> None:
    assert [name for name, path in MODULES.items() if not ast.get_docstring(tree(path))] == []


def public() -> list[tuple[str, str]]:
    """The public names, as `bigbrain/__init__.py` lists them: (module, name)."""
    found = []
    for node in tree(MODULES["bigbrain"]).body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            [alias] = node.names
            assert alias.asname == alias.name, f"write `import {alias.name} as {alias.name}`"
            found.append((node.module or "", alias.name))
    return found


def test_public_names_are_sorted_by_their_module_and_few() -> None:
    names = public()

    assert [module for module, _ in names] == sorted(module for module, _ in names)
    assert 0 < len(names) <= 60


@pytest.mark.parametrize(("module", "name"), public())
def test_a_public_name_is_explained(module: str, name: str) -> None:
    thing = getattr(import_module("bigbrain"), name)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        explained = thing.__doc__
    else:
        explained = _below(tree(MODULES[module]), name)

    first = (explained or "").strip().partition("\n")[0]
    assert first.endswith((".", ":"))


def _below(module: ast.Module, name: str) -> str:
    """The text that stands below an assignment."""
    for node, after in pairwise(module.body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return str(after.value.value) if isinstance(after, ast.Expr) else ""  # type: ignore[attr-defined]
    return ""


def test_the_layers_are_those_of_the_code() -> None:
    assert [layer for layer in MAY_IMPORT if layer not in MODULES] == []
