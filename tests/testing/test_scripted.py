"""A model that follows a script, and what it remembers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from bigbrain.errors import ModelBroke, ModelBusy, RunCancelled
from bigbrain.events import Closed, Delta, Finished, Opened, Started, checked, collect
from bigbrain.messages import Request, Text, Thinking, ToolCall, Usage, user
from bigbrain.models import Asks
from bigbrain.scope import Scope
from bigbrain.testing import Breaks, Says, ScriptedModel
from tests.contracts.model import QUESTION, ModelContract


class TestScriptedModel(ModelContract):
    @pytest.fixture
    def speaking(self) -> Callable[[str], Asks]:
        return lambda text: ScriptedModel(text, repeat=True)

    @pytest.fixture
    def calling(self) -> Asks:
        return ScriptedModel(Says(calls=(ToolCall("c1", "look", '{"n": 0}'),)))

    @pytest.fixture
    def endless(self) -> Asks:
        return ScriptedModel(Says("word " * 10_000, delay=0.005))


def texts(model: ScriptedModel, *questions: str) -> list[str]:
    return [collect(model.ask(Request(messages=(user(text),)), Scope())).text for text in questions]


def test_the_answers_come_in_the_order_of_the_script() -> None:
    assert texts(ScriptedModel("one", Says("two"), ["th", "ree"]), "a", "b", "c") == ["one", "two", "three"]


def test_a_function_answers_according_to_the_request() -> None:
    model = ScriptedModel(lambda request: Says(request.messages[-1].text.upper()), repeat=True)

    assert texts(model, "a", "b") == ["A", "B"]


def test_an_answer_with_everything_comes_as_a_model_gives_it() -> None:
    call = ToolCall("c1", "look", "{}")
    says = Says(chunks=["So", "", " far"], thinking="Hm.", calls=(call,), usage=Usage(3, 2))

    events = list(checked(ScriptedModel(says, name="m").ask(QUESTION, Scope())))

    assert events == [
        Started("m-1", "m"),
        Opened(0, Thinking()),
        Delta(0, "Hm."),
        Closed(0),
        Opened(1, Text()),
        Delta(1, "So"),
        Delta(1, " far"),
        Closed(1),
        Opened(2, ToolCall("c1", "look")),
        Delta(2, "{}"),
        Closed(2),
        Finished("calls", Usage(3, 2)),
    ]


def test_an_answer_ends_as_the_script_says() -> None:
    assert collect(ScriptedModel(Says("so", stop="length")).ask(QUESTION, Scope())).stop == "length"


def test_an_empty_text_is_an_answer_of_nothing() -> None:
    assert list(ScriptedModel("").ask(QUESTION, Scope())) == [Started("scripted-1", "scripted"), Finished("end")]


@pytest.mark.parametrize("error", [ModelBusy("full"), ModelBusy])
def test_an_error_comes_before_anything_of_an_answer(error: Exception | type[Exception]) -> None:
    model = ScriptedModel(error, "better")

    with pytest.raises(ModelBusy):
        next(model.ask(QUESTION, Scope()))
    assert texts(model, "again") == ["better"]


def test_an_answer_breaks_off_after_what_came_before() -> None:
    events = []

    with pytest.raises(ModelBroke):
        for event in ScriptedModel(Breaks("so far")).ask(QUESTION, Scope()):
            events.append(event)

    assert events == [Started("scripted-1", "scripted"), Opened(0, Text()), Delta(0, "so"), Delta(0, " far")]


def test_an_answer_breaks_off_before_its_first_word() -> None:
    stream = ScriptedModel(Breaks(error=ModelBusy())).ask(QUESTION, Scope())

    assert next(stream) == Started("scripted-1", "scripted")
    with pytest.raises(ModelBusy):
        next(stream)


def test_a_question_too_many_says_how_many_came() -> None:
    model = ScriptedModel("only one")
    texts(model, "first")

    with pytest.raises(AssertionError, match="`scripted` has 1 answers and was asked 2 times"):
        texts(model, "second")


def test_something_that_is_no_answer_is_named() -> None:
    with pytest.raises(TypeError, match="`scripted` cannot answer 7"):
        texts(ScriptedModel(7), "go")  # type: ignore[arg-type]


def test_what_was_asked_is_kept_in_order() -> None:
    model = ScriptedModel("x", repeat=True)
    with pytest.raises(AssertionError, match="was not asked"):
        _ = model.last
    texts(model, "a", "b")

    assert [request.messages[-1].text for request in model.asked] == ["a", "b"]
    assert model.last == model.asked[1]


def test_nothing_is_asked_before_the_first_event_is_wanted() -> None:
    model = ScriptedModel("x")
    stream = model.ask(QUESTION, Scope())

    assert model.asked == []
    next(stream)
    assert model.asked == [QUESTION]


def test_answers_that_are_left_before_their_end_are_counted() -> None:
    model = ScriptedModel("one two", repeat=True)
    left, whole = model.ask(QUESTION, Scope()), model.ask(QUESTION, Scope())
    next(left)
    left.close()
    for event in whole:
        if isinstance(event, Finished):
            whole.close()

    assert model.closed == 1


def test_cancelling_ends_a_delay_at_once_and_counts() -> None:
    model, scope = ScriptedModel(Says("never", delay=60)), Scope()
    stream = model.ask(QUESTION, scope)
    next(stream)
    threading.Thread(target=lambda: scope.cancel(RunCancelled())).start()

    with pytest.raises(RunCancelled):
        next(stream)
    assert model.closed == 1


def test_an_error_of_the_script_is_no_answer_that_was_left() -> None:
    model = ScriptedModel(Breaks("so"))
    with pytest.raises(ModelBroke):
        list(model.ask(QUESTION, Scope()))

    assert model.closed == 0


def test_chunks_are_taken_one_by_one() -> None:
    taken = []

    def chunks() -> Iterator[str]:
        for piece in ("a", "b"):
            taken.append(piece)
            yield piece

    stream = ScriptedModel(chunks()).ask(QUESTION, Scope())
    events = [next(stream) for _ in range(3)]

    assert events[-1] == Delta(0, "a")
    assert taken == ["a"]


def test_many_threads_get_each_answer_once() -> None:
    model = ScriptedModel(*(str(number) for number in range(40)))
    got: list[str] = []
    threads = [threading.Thread(target=lambda: got.extend(texts(model, *"abcde"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(int, got)) == list(range(40))
    assert len(model.asked) == 40
