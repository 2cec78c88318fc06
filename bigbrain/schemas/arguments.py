"""From a function's signature to the shape of its arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import get_type_hints

from bigbrain.errors import WiringError
from bigbrain.jsonvalue import JSON
from bigbrain.schemas.annotations import Annotations, Declared, doc_of
from bigbrain.schemas.records import Record
from bigbrain.schemas.shape import Shape

_REST = re.compile(r":param\s+(?:[^:]*\s)?(?P<name>\w+)\s*:\s*(?P<doc>.+(?:\n(?!\s*:|\s*\n).+)*)")
_SECTION = re.compile(
    r"^(?P<indent>[ ]*)(?:Args|Arguments|Parameters):[ ]*\n(?P<body>(?:(?P=indent)[ ]+.*\n?|[ ]*\n)+)", re.MULTILINE
)
_GOOGLE = re.compile(r"(?P<name>\w+)(?:\s*\([^)]*\))?:\s*(?P<doc>.+)", re.DOTALL)


def arguments(function: Callable[..., object]) -> Shape[dict[str, JSON]]:
    """The shape of a function's keyword arguments; parameters that are left out and have a default are not in the dict.

    Its description is the first paragraph of the docstring. A parameter is described by its
    `Doc`, else by the docstring (Google's `Args:` or `:param name:`).

    Raises `WiringError` naming each parameter that has no annotation or cannot be given by name.
    """
    annotations = Annotations()
    name = getattr(function, "__name__", type(function).__name__)
    record = Record(name, dict, dict)
    parameters = inspect.signature(function).parameters.values()
    hints = _hints(function, name)
    docs = _docs(function)
    usable = [parameter for parameter in parameters if _usable(parameter, hints, name, annotations)]
    fields = [annotations.field(_declared(parameter, docs), hints[parameter.name], name) for parameter in usable]
    annotations.check()
    record.fields = tuple(fields)
    return Shape(record, name=name, description=doc_of(function))


def _hints(function: Callable[..., object], name: str) -> dict[str, JSON]:
    if not inspect.isroutine(function):
        raise WiringError(f"`{name}` is not a function; give one, or a method of an object")
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as exc:
        raise WiringError(
            f"`{name}`: an annotation cannot be read ({exc}); define what it names at module level"
        ) from exc


def _usable(parameter: inspect.Parameter, hints: dict[str, JSON], owner: str, annotations: Annotations) -> bool:
    fault = ""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        fault = "a model cannot know what else it takes; name each parameter"
    elif parameter.kind is parameter.POSITIONAL_ONLY:
        fault = "is given by position only; take the `/` out of the signature"
    elif parameter.name not in hints:
        fault = "has no annotation; give it a type"
    if fault:
        annotations.faults.append(f"`{owner}.{parameter.name}`: {fault}")
    return not fault


def _declared(parameter: inspect.Parameter, docs: dict[str, str]) -> Declared:
    has_default = parameter.default is not parameter.empty
    return Declared(parameter.name, parameter.name, has_default, parameter.default, docs.get(parameter.name, ""))


def _docs(function: Callable[..., object]) -> dict[str, str]:
    """What the docstring says of each parameter."""
    doc = inspect.getdoc(function) or ""
    docs = {match["name"]: " ".join(match["doc"].split()) for match in _REST.finditer(doc)}
    section = _SECTION.search(doc)
    if section is None:
        return docs
    body = inspect.cleandoc(section["body"])
    for item in re.split(r"\n(?=\S)", body):
        if match := _GOOGLE.fullmatch(item.rstrip()):
            docs.setdefault(match["name"], " ".join(match["doc"].split()))
    return docs
