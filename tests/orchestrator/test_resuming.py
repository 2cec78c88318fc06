"""A task that is lost at any moment and taken up again: no finished call is made again, and none is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bigbrain.messages import Message, ToolCall, user
from bigbrain.orchestrator import Agent, Orchestrator, TaskResult, Tool
from bigbrain.orchestrator.backends import ModelBackend
from bigbrain.orchestrator.options import Options
from bigbrain.orchestrator.tasks import Listeners, Task
from bigbrain.run import Run
from bigbrain.savepoints import PlaceRounds, Savepoints
from bigbrain.testing import ScriptedModel
from tests.orchestrator.users import DESCRIBE, told


class Lost(BaseException):
    """Raised in the place of a worker's death."""


@dataclass
class Worker:
    """Does a task on the lines that earlier workers have saved, and dies at a call or at a line if it is to."""

    lines: list[bytes] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    dies_at_call: str = ""
    dies_at_line: int = -1

    def call(self, name: str) -> str:
        self.called.append(name)
        if name == self.dies_at_call:
            self.dies_at_call = ""
            raise Lost
        return f"{name}!"

    def save(self, line: bytes) -> None:
        self.lines.append(line)
        if len(self.lines) == self.dies_at_line:
            raise Lost

    def works(self, model: ScriptedModel, **options: Any) -> TaskResult:
        agents = (Agent("a", "d", [Tool("t", "d", "which", "it", self.call)]),)
        rounds = PlaceRounds(Savepoints(tuple(self.lines), self.save), "0#0")
        task = Task(
            agents,
            Options(**options),
            ModelBackend(model, "m"),
            Run(rounds=rounds),
            history=(),
            begin=(user("go"),),
            listeners=Listeners(token=lambda _: None),
        )
        return task.result()


def calls(*names: str) -> str:
    return " ".join(f'{{"action": "call", "agent": "a", "tool": "t", "input": "{name}"}}' for name in names)


END = '{"action": "finish", "answer": "done"}'
REPLIES = [DESCRIBE, calls("1"), calls("2", "3", "4"), "only words", calls("5"), END]
LINES = 8
"""What the replies are put by in: a line for each describe, call and fault, and one for the end."""


def left(model: ScriptedModel) -> ScriptedModel:
    return ScriptedModel(*REPLIES[len(model.asked) :])


def undisturbed() -> tuple[TaskResult, ScriptedModel]:
    model = ScriptedModel(*REPLIES)
    return Worker().works(model), model


def test_what_is_put_by_is_a_line_for_each_action() -> None:
    worker = Worker()
    worker.works(ScriptedModel(*REPLIES))

    assert len(worker.lines) == LINES


@pytest.mark.parametrize("line", range(1, LINES + 1))
def test_a_worker_lost_behind_any_line_repeats_nothing(line: int) -> None:
    whole, model = undisturbed()
    worker, first = Worker(dies_at_line=line), ScriptedModel(*REPLIES)
    with pytest.raises(Lost):
        worker.works(first)
    second = left(first)

    result = worker.works(second)

    assert worker.called == ["1", "2", "3", "4", "5"]
    assert (result.status, result.answer, result.steps) == ("success", "done", whole.steps)
    assert result.tool_traces == whole.tool_traces
    assert len(first.asked) + len(second.asked) == len(REPLIES)
    if second.asked:
        assert told(second) == told(model)


@pytest.mark.parametrize("name", ["1", "2", "3", "4", "5"])
def test_only_the_call_that_was_under_way_is_made_again(name: str) -> None:
    worker, first = Worker(dies_at_call=name), ScriptedModel(*REPLIES)
    with pytest.raises(Lost):
        worker.works(first)
    # a reply of which nothing is done yet is not on record
    begun = name in ("1", "2", "5")

    result = worker.works(ScriptedModel(*REPLIES[len(first.asked) - begun :]))

    assert result.ok
    assert sorted(worker.called) == sorted(["1", "2", "3", "4", "5", name])
    assert [trace.input for trace in result.tool_traces] == ["1", "2", "3", "4", "5"]


def test_the_model_is_told_what_the_user_has_of_an_answer_that_was_lost() -> None:
    model = ScriptedModel(DESCRIBE, '{"action": "finish", "answer": "User 1 was', END)
    task = Task(
        (Agent("user-agent", "d"),),
        Options(),
        ModelBackend(model, "m"),
        Run(),
        history=(),
        begin=(user("go"),),
        listeners=Listeners(token=lambda _: None),
        begun='User "1"',
    )

    task.result()

    first, second, third = ([message.text for message in request.messages[1:]] for request in model.asked)
    lost = r'must begin with exactly this: "User \"1\""'
    assert (len(first), len(second), len(third)) == (2, 4, 5)
    assert first[0] == "go"
    assert first[-1].endswith(lost)
    assert second[-1].endswith(lost)
    assert third[-1].endswith('must begin with exactly this: "User 1 was"'), "what it has said since goes first"


def test_steps_are_counted_across_attempts() -> None:
    worker = Worker(dies_at_line=2)
    with pytest.raises(Lost):
        worker.works(ScriptedModel(*REPLIES))

    result = worker.works(ScriptedModel(*[calls("x")] * 9), max_steps=4)

    assert (result.status, result.steps) == ("error", 4)
    assert "`max_steps=4`" in result.answer


def test_faults_are_counted_across_attempts() -> None:
    worker = Worker(dies_at_line=1)
    with pytest.raises(Lost):
        worker.works(ScriptedModel("words"))

    result = worker.works(ScriptedModel("words", "words"), repairs=1)

    assert "2 replies in a row" in result.answer
    assert result.steps == 2


def test_another_question_takes_up_nothing() -> None:
    worker = Worker()
    worker.works(ScriptedModel(*REPLIES))
    model = ScriptedModel(END)
    rounds = PlaceRounds(Savepoints(tuple(worker.lines)), "0#0")
    task = Task(
        (),
        Options(),
        ModelBackend(model, "m"),
        Run(rounds=rounds),
        history=(),
        begin=(user("something else"),),
        listeners=Listeners(),
    )

    assert task.result().steps == 1


def test_another_place_takes_up_nothing() -> None:
    worker = Worker()
    worker.works(ScriptedModel(*REPLIES))

    assert Savepoints(tuple(worker.lines)).rounds("1#0").known("task") == ()


def test_the_record_holds_messages_that_any_version_can_read() -> None:
    kept: list[Sequence[Message]] = []

    class Rounds:
        def known(self, loop: str) -> Sequence[Sequence[Message]]:
            return ()

        def settled(self, loop: str, messages: Sequence[Message]) -> None:
            kept.append(messages)

    Task(
        (),
        Options(),
        ModelBackend(ScriptedModel(DESCRIBE, END), "m"),
        Run(rounds=Rounds()),
        history=(),
        begin=(user("go"),),
        listeners=Listeners(),
    ).result()

    assert [[message.role for message in messages] for messages in kept] == [["assistant", "tool"], ["assistant"]]
    assert kept[0][0].text == DESCRIBE
    assert not any(isinstance(part, ToolCall) for messages in kept for message in messages for part in message.parts)


def test_outside_of_a_run_nothing_is_kept() -> None:
    orchestrator = Orchestrator([], model=ScriptedModel(DESCRIBE, END, END))

    assert orchestrator.execute_task("go").steps == 2
    assert orchestrator.execute_task("go").steps == 1
