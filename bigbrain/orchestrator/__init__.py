"""The second way to write an agent: a model that finds its way through agents and their tools by a strict protocol."""

from __future__ import annotations

from bigbrain.orchestrator.cancellation import Cancellation as Cancellation
from bigbrain.orchestrator.results import TaskResult as TaskResult
from bigbrain.orchestrator.results import ToolTrace as ToolTrace
