"""The tasks: one line each, because what they do is the engine's business."""

from __future__ import annotations

from celery import Task

from workers import app
from workers.process import process


@app.task(bind=True, name="workers.tasks.step")  # type: ignore[untyped-decorator]  # celery has no types
def step(self: Task, run_id: str, path: str, attempt: int) -> None:
    """Executes a step of a run; where it is of no more use, the rest of the chain is dropped."""
    if not process.engine().run_step(run_id, path, attempt):
        self.request.chain = None


@app.task(name="workers.tasks.finish")  # type: ignore[untyped-decorator]
def finish(run_id: str) -> None:
    """Closes a run whose steps are all done."""
    process.runs().finish(run_id)


@app.task(name="workers.tasks.wake")  # type: ignore[untyped-decorator]
def wake() -> None:
    """Takes up what is due: steps whose worker was lost, chains that never arrived."""
    process.runs().wake()
