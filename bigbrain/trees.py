"""A brain as people read it: its flows and steps, who acts and which model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from bigbrain.compiling import Binding, Compiled, Deferral, Members, Solo, Team, Work
from bigbrain.engine.plan import Fork, Item, Mark, Step
from bigbrain.notices import Notice
from bigbrain.triggers.specs import set_off_by
from bigbrain.triggers.standing import Standing


def draw(compiled: Mapping[str, Compiled], standing: Mapping[str, Standing]) -> str:
    """One line for each flow, step, stage and choice, indented by what it is part of; what triggers start comes last."""
    causes = {one.deferral.flow: f", {set_off_by(one.deferral.trigger)}" for one in standing.values()}
    lines: list[str] = []
    for name, flow in compiled.items():
        lines.append(f"{name}  (structure {flow.plan.fingerprint}{causes.get(name, '')})")
        lines += _items(flow.plan.items, flow.bindings, "  ")
    return "\n".join(lines)


def _items(items: Sequence[Item], bindings: Mapping[str, Binding], indent: str) -> Iterator[str]:
    for item in items:
        match item:
            case Step():
                yield f"{indent}{item.path}  {item.flow}: {_title(bindings[item.path])}{' [cpu]' if item.cpu else ''}"
                yield from _inside(bindings[item.path].work, bindings, indent + "  ")
            case Mark():
                yield f"{indent}{item.path}  respond"
            case Fork():
                default = f", `{item.default}` by default" if item.default else ""
                yield f"{indent}{item.path}  {item.flow}: select one{default}"
                for name, member in item.members.items():
                    yield f"{indent}  {name}"
                    yield from _items(member, bindings, indent + "    ")
            case _:
                assert_never(item)


def _title(binding: Binding) -> str:
    match binding.work:
        case Solo():
            return _who(binding.work)
        case Team():
            return "agents at once"
        case Members(how=how):
            return {"all": "all of", "one": "the first of", "group": "together"}[how]
        case Notice(name=name):
            return f"notify {name}"
        case Deferral(flow=flow):
            return f"ends here and sets off `{flow}`, {set_off_by(binding.work.trigger)}"
        case _:
            assert_never(binding.work)


def _inside(work: Work, bindings: Mapping[str, Binding], indent: str) -> Iterator[str]:
    match work:
        case Team(solos):
            for solo in solos:
                yield f"{indent}{_who(solo)}"
                yield from _inside(solo, bindings, indent + "  ")
        case Members(members=members):
            for member in members:
                yield f"{indent}{member.name}"
                yield from _items(member.items, bindings, indent + "  ")
        case Solo(agent):
            yield from (f"{indent}{part}" for part in agent.parts)
        case Notice() | Deferral():
            return
        case _:
            assert_never(work)


def _who(solo: Solo) -> str:
    model = "no model" if solo.model is None else repr(solo.model)
    return f"agent {solo.agent.name}, {model}"
