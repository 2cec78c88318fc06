"""All samples in one brain, each flow under its own name, so that one deployment serves them all."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from bigbrain.brain import Brain
from bigbrain.flows import Flow
from bigbrain.settings import Settings
from bigbrain.triggers.standing import Built

FOLDER = Path(__file__).resolve().parents[2] / "samples"
NAMES = sorted(
    [path.stem for path in FOLDER.glob("*.py")] + [path.parent.name for path in FOLDER.glob("*/__init__.py")],
)


class EverySample(Brain):
    """The flows of several brains, each with the models of its own brain."""

    def __init__(self, brains: list[Brain]) -> None:
        super().__init__("every_sample")
        self.brains = brains

    @property
    def flows(self) -> dict[str, Flow]:
        return {name: flow for brain in self.brains for name, flow in brain.flows.items()}

    def built(self, settings: Settings) -> Built:
        every = [brain.built(settings) for brain in self.brains]
        return Built(
            {name: flow for one in every for name, flow in one.flows.items()},
            {id: standing for one in every for id, standing in one.standing.items()},
            tuple(fault for one in every for fault in one.faults),
            {id: endpoint for one in every for id, endpoint in one.endpoints.items()},
        )


brain = EverySample([import_module(f"samples.{name}").brain for name in NAMES])
