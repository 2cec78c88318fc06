from __future__ import annotations

from collections.abc import Callable

import pytest

from bigbrain.events import Delta, Finished, Opened, Started
from bigbrain.messages import Thinking, ToolCall, Usage
from bigbrain.models import Asks, FixedModel
from bigbrain.scope import Scope
from tests.contracts.model import QUESTION, ModelContract


class TestFixedModel(ModelContract):
    @pytest.fixture
    def speaking(self) -> Callable[[str], Asks]:
        return FixedModel

    @pytest.fixture
    def calling(self) -> Asks:
        return FixedModel(calls=(ToolCall("c1", "look", '{"n": 0}'),))

    @pytest.fixture
    def endless(self) -> Asks:
        return FixedModel("word " * 10_000, delay=0.005)


def test_a_fixed_model_streams_word_by_word_and_costs_nothing() -> None:
    events = list(FixedModel("I am fixed.").ask(QUESTION, Scope()))

    assert [event.text for event in events if isinstance(event, Delta)] == ["I", " am", " fixed."]
    assert events[-1] == Finished("end", Usage())


def test_an_empty_fixed_model_answers_with_nothing() -> None:
    assert list(FixedModel().ask(QUESTION, Scope())) == [Started("fixed-fixed", "fixed"), Finished("end")]


def test_a_fixed_model_gives_any_parts() -> None:
    events = list(FixedModel(parts=(Thinking("hm", vendor={"anthropic": {"signature": "QQ"}}),)).ask(QUESTION, Scope()))

    assert events[1] == Opened(0, Thinking("", vendor={"anthropic": {"signature": "QQ"}}))
