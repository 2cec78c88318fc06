"""A brain as people read it: its flows and steps, who acts and which model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from bigbrain.compiling import Binding, Compiled
from bigbrain.engine.plan import Fork, Mark, Sequence, Step
from bigbrain.flows import Flow


def draw(flows: Mapping[str, Flow], compiled: Mapping[str, Compiled]) -> str:
    """One line for each flow, step, stage and choice, indented by what it is part of."""
    lines: list[str] = []
    for name in flows:
        flow = compiled[name]
        lines.append(f"{name}  (structure {flow.plan.fingerprint})")
        lines += _items(flow.plan.items, flow.bindings, "  ")
    return "\n".join(lines)


def _items(items: Sequence, bindings: Mapping[str, Binding], indent: str) -> Iterator[str]:
    for item in items:
        match item:
            case Step():
                yield f"{indent}{item.path}  {item.flow}: {_who(bindings[item.path])}{' [cpu]' if item.cpu else ''}"
            case Mark():
                yield f"{indent}{item.path}  respond"
            case Fork():
                yield f"{indent}{item.path}  one of"
                for name, member in item.members.items():
                    yield f"{indent}  {name}"
                    yield from _items(member, bindings, indent + "    ")
            case _:
                assert_never(item)


def _who(binding: Binding) -> str:
    model = "no model" if binding.model is None else repr(binding.model)
    return f"agent {binding.agent.name}, {model}"
