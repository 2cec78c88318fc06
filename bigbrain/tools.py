"""Tools: what a model may ask to have run, and the author's function that runs it.

    @tool
    def read_sensor(sensor: Literal["temperature", "humidity"]) -> str:
        \"\"\"Read one of the house sensors.\"\"\"

A tool is a value. Without a function it is a bare definition, which can be sent, forwarded
and bound; `bind` gives a copy and checks at once that the function takes what the definition
says. A tool with a function is still callable as that function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Generic, ParamSpec, TypeVar, get_type_hints, overload

import marshmallow

from bigbrain.agreement import disagreements
from bigbrain.errors import WiringError
from bigbrain.messages import JSON, ToolCall, ToolSpec
from bigbrain.schemas import Shape, arguments, shape

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

TIMEOUT = 60.0
"""Seconds that one call may take unless its tool says otherwise; a client waits no longer for silence."""
LONGEST = 100_000
"""Characters of a result that a model gets unless its tool says otherwise: more fills its context."""

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names that both providers take."""


def _nothing() -> None:
    """Takes no arguments: what a tool without a schema takes."""


@dataclass(frozen=True, eq=False)
class Tool(Generic[P, R_co]):
    """A tool, and the function that runs it if there is one.

    Raises `WiringError` for a name that providers refuse, a type without JSON Schema, and for every
    parameter of the function that disagrees with the schema.
    """

    name: str
    """What the model calls it by."""
    description: str = ""
    """What the model chooses it by."""
    _: KW_ONLY
    schema: object = None
    """The type of its arguments: a dataclass, a marshmallow Schema, a pydantic model, a `Shape`; None: it takes none."""
    handler: Callable[P, R_co] | None = None
    timeout: float = TIMEOUT
    """Seconds after which the model is told that a call takes too long."""
    longest: int = LONGEST
    """Characters of a result; the rest is cut off, and the model is told so."""
    as_value: bool = False
    """The function takes one value, what the schema reads of the arguments, whatever its signature says."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise WiringError(f"tool `{self.name}`: a name is 1 to 64 letters, digits, `_` and `-`")
        if not (self.timeout > 0 and self.longest > 0):
            raise WiringError(f"tool `{self.name}`: `timeout` and `longest` must be above 0")
        _ = self.shape, self._reading

    @cached_property
    def shape(self) -> Shape[JSON]:
        """The shape of its arguments."""
        kind = arguments(_nothing) if self.schema is None else self.schema
        return kind if isinstance(kind, Shape) else shape(kind)

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(self.name, self.description, self.shape.schema)

    @overload
    def bind(self, handler: Callable[..., Awaitable[T]]) -> Tool[..., Awaitable[T]]: ...
    @overload
    def bind(self, handler: Callable[..., T]) -> Tool[..., T]: ...
    def bind(self, handler: Callable[..., object]) -> Tool[..., object]:
        """A copy that is run by `handler`, which takes the fields of the schema by name, or one value of its type.

        Raises `WiringError` naming each field and parameter that disagree.
        """
        bare: Tool[..., object] = self
        return replace(bare, handler=handler, as_value=False)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Calls the function itself. Raises `WiringError` when there is none."""
        if self.handler is None:
            raise WiringError(f"tool `{self.name}` has no function: give it one with `bind`")
        return self.handler(*args, **kwargs)

    def run(self, call: ToolCall) -> object:
        """Runs the function with the arguments of a call; an `async def` one gives an awaitable.

        Raises `ToolError` or `SchemaError` when the arguments do not fit, and whatever the function raises.
        """
        reading = self._reading
        if self.handler is None or reading is None:
            raise WiringError(f"tool `{self.name}` has no function: give it one with `bind`")
        value = reading.shape.read(call.input)
        function: Callable[..., object] = self.handler
        return function(value) if reading.whole else function(**value)

    @cached_property
    def _reading(self) -> _Reading | None:
        if self.handler is None:
            return None
        if self.as_value:
            return _Reading(self.shape, whole=True)
        reading = _reading(self.handler, self.shape, self.name)
        owner = getattr(self.handler, "__name__", type(self.handler).__name__)
        faults = tuple(disagreements(self.shape.schema, reading.shape.schema, owner))
        if faults:
            raise WiringError(*(f"tool `{self.name}`: {fault}" for fault in faults))
        return reading


@dataclass(frozen=True)
class _Reading:
    """How a function takes arguments: the whole of them as one value, or each by its name."""

    shape: Shape[JSON]
    whole: bool


def _reading(handler: Callable[..., object], wanted: Shape[JSON], name: str) -> _Reading:
    whole = _only_parameter(handler)
    if whole is not None:
        parameter, hint = whole
        try:
            taken = shape(hint)
        except WiringError:
            taken = None
        fields = wanted.schema.get("properties", {})
        if taken is not None and (taken.schema == wanted.schema or (_is_own(hint) and parameter not in fields)):
            return _Reading(taken, whole=True)
    try:
        return _Reading(arguments(handler), whole=False)
    except WiringError as exc:
        raise WiringError(*(f"tool `{name}`: {fault}" for fault in exc.faults)) from exc


def _only_parameter(handler: Callable[..., object]) -> tuple[str, JSON] | None:
    """The name and the annotation of the one parameter that a function has; None when it is another number."""
    parameters = list(inspect.signature(handler).parameters.values())
    if len(parameters) != 1 or not inspect.isroutine(handler):
        return None
    try:
        hints = get_type_hints(handler, include_extras=True)
    except (NameError, TypeError):
        return None
    only = parameters[0].name
    return (only, hints[only]) if only in hints else None


def _is_own(hint: JSON) -> bool:
    """Whether a type is a class of the author's, which stands for all arguments and not for one of them."""
    return isinstance(hint, type | marshmallow.Schema) and hint.__module__ != "builtins"


@overload
def tool(handler: Callable[P, T], /) -> Tool[P, T]: ...
@overload
def tool(
    *, name: str = "", description: str = "", timeout: float = TIMEOUT, longest: int = LONGEST
) -> Callable[[Callable[P, T]], Tool[P, T]]: ...
def tool(
    handler: Callable[P, T] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    timeout: float = TIMEOUT,
    longest: int = LONGEST,
) -> Tool[P, T] | Callable[[Callable[P, T]], Tool[P, T]]:
    """Makes a tool of a function: `@tool`, or `@tool(name=…, timeout=…)`.

    Its schema comes from the signature, its description is the docstring's first paragraph unless one is given.
    Raises `WiringError` naming each parameter without an annotation, or of a type without JSON Schema.
    """

    def made(handler: Callable[P, T]) -> Tool[P, T]:
        taken = arguments(handler)
        return Tool(
            name or handler.__name__,
            description or taken.description,
            schema=taken,
            handler=handler,
            timeout=timeout,
            longest=longest,
        )

    return made if handler is None else made(handler)


def specs(tools: tuple[Tool[..., object] | ToolSpec, ...]) -> Iterator[ToolSpec]:
    """The tools as a model sees them. Raises `WiringError` when two have the same name."""
    seen: set[str] = set()
    for one in tools:
        if one.name in seen:
            raise WiringError(f"two tools are named `{one.name}`: a model could not tell them apart; rename one")
        seen.add(one.name)
        yield one.spec if isinstance(one, Tool) else one
