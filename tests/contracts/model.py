"""What everything that can be asked promises, whoever answers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

import pytest

from bigbrain.errors import RunCancelled
from bigbrain.events import Delta, Finished, Started, checked, collect
from bigbrain.messages import Request, ToolSpec, user
from bigbrain.models import Asks
from bigbrain.scope import Scope

QUESTION = Request(messages=(user("hi"),))


class ModelContract:
    """Inherit it and say what answers in which way."""

    @pytest.fixture
    def speaking(self) -> Callable[[str], Asks]:
        """Something that answers with the given text, in several pieces."""
        raise NotImplementedError

    @pytest.fixture
    def calling(self) -> Asks:
        """Something that calls the tool `look` with `{"n": 0}`."""
        raise NotImplementedError

    @pytest.fixture
    def endless(self) -> Asks:
        """Something that answers slowly, and longer than any test."""
        raise NotImplementedError

    def test_the_events_are_in_legal_order(self, speaking: Callable[[str], Asks]) -> None:
        events = list(checked(speaking("one two three").ask(QUESTION, Scope())))

        assert isinstance(events[0], Started)
        assert isinstance(events[-1], Finished)

    @pytest.mark.parametrize("text", ["one two three", "fox 🦊 北\n\n  end"])
    def test_the_text_comes_whole_and_in_pieces(self, speaking: Callable[[str], Asks], text: str) -> None:
        events = list(speaking(text).ask(QUESTION, Scope()))

        assert collect(events).text == text
        assert sum(isinstance(event, Delta) for event in events) > 1

    def test_the_answer_says_why_it_ended(self, speaking: Callable[[str], Asks]) -> None:
        assert collect(speaking("done").ask(QUESTION, Scope())).stop == "end"

    def test_a_call_comes_with_its_arguments(self, calling: Asks) -> None:
        asked = Request(messages=(user("hi"),), tools=(ToolSpec("look", "", {"type": "object"}),))
        answer = collect(checked(calling.ask(asked, Scope())))

        assert [(call.name, json.loads(call.arguments)) for call in answer.calls] == [("look", {"n": 0})]
        assert answer.stop == "calls"

    def test_it_answers_again_and_again(self, speaking: Callable[[str], Asks]) -> None:
        asks = speaking("same")

        assert [collect(asks.ask(QUESTION, Scope())).text for _ in range(3)] == ["same"] * 3

    def test_several_threads_ask_at_once(self, speaking: Callable[[str], Asks]) -> None:
        asks = speaking("one two three")
        texts: list[str] = []
        threads = [
            threading.Thread(target=lambda: texts.append(collect(asks.ask(QUESTION, Scope())).text)) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert texts == ["one two three"] * 6

    def test_nothing_is_asked_in_a_cancelled_scope(self, speaking: Callable[[str], Asks]) -> None:
        scope = Scope()
        scope.cancel(RunCancelled("stopped by a test"))

        with pytest.raises(RunCancelled, match="stopped by a test"):
            next(speaking("never").ask(QUESTION, scope))

    def test_an_answer_may_be_left_early(self, endless: Asks) -> None:
        events = endless.ask(QUESTION, Scope())
        assert isinstance(next(events), Started)

        events.close()

        assert list(events) == []

    def test_cancelling_ends_a_streaming_answer(self, endless: Asks) -> None:
        scope = Scope()
        cancelled_at: list[float] = []

        def cancel() -> None:
            cancelled_at.append(time.monotonic())
            scope.cancel(RunCancelled())

        with pytest.raises(RunCancelled):
            for event in endless.ask(QUESTION, scope):
                if isinstance(event, Delta) and not cancelled_at:
                    threading.Thread(target=cancel).start()

        assert time.monotonic() - cancelled_at[0] < 0.2
