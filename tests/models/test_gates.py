from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from bigbrain.errors import ModelRefused, RunCancelled
from bigbrain.events import Delta
from bigbrain.models import Asks, connect
from bigbrain.models.gates import Gates, gates
from bigbrain.models.spec import Provider
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from tests.contracts.model import QUESTION
from tests.models.asking import answer, spec
from tests.upstream import Upstream


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def until(true: Callable[[], bool]) -> bool:
    """Waits, two seconds at most, until something is true."""
    patience = threading.Event()
    return any(true() or patience.wait(0.002) for _ in range(1000))


class Caller:
    """Someone who goes through a gate and stays inside until told to leave."""

    def __init__(self, gates: Gates, limit: int, model: str = "m") -> None:
        self.inside, self.leaving, self.scope = threading.Event(), threading.Event(), Scope()
        self.error: Exception | None = None
        self._gates, self._limit, self._model = gates, limit, model
        self.thread = started(self._call)

    def _call(self) -> None:
        try:
            with self._gates.passed(self._model, self._limit, self.scope):
                self.inside.set()
                self.leaving.wait(5)
        except RunCancelled as exc:
            self.error = exc

    def leave(self) -> None:
        self.leaving.set()
        self.thread.join()


def test_those_beyond_the_limit_wait_for_one_to_leave() -> None:
    gates = Gates()
    first, second = Caller(gates, 2), Caller(gates, 2)
    assert first.inside.wait(2)
    assert second.inside.wait(2)
    third = Caller(gates, 2)
    assert until(lambda: gates.waiting() == 1)
    assert not third.inside.is_set()

    first.leave()

    assert third.inside.wait(2)
    assert gates.waiting() == 0
    second.leave()
    third.leave()


def test_who_has_waited_longest_goes_first() -> None:
    gates = Gates()
    callers = [Caller(gates, 1)]
    assert callers[0].inside.wait(2)
    for number in range(1, 4):
        callers.append(Caller(gates, 1))
        assert until(lambda number=number: gates.waiting() == number)
    order = []
    for caller in callers:
        assert caller.inside.wait(2)
        order.append([other.inside.is_set() for other in callers])
        caller.leave()

    assert order == [[number <= turn for number in range(4)] for turn in range(4)]


def test_models_do_not_wait_for_each_other() -> None:
    gates = Gates()
    one, other = Caller(gates, 1, "one"), Caller(gates, 1, "other")

    assert one.inside.wait(2)
    assert other.inside.wait(2)
    one.leave()
    other.leave()


def test_a_lower_limit_of_one_use_holds_nobody_else_up() -> None:
    gates = Gates()
    first = Caller(gates, 3)
    assert first.inside.wait(2)
    modest = Caller(gates, 1)
    assert until(lambda: gates.waiting() == 1)
    second = Caller(gates, 3)
    assert second.inside.wait(2)

    second.leave()
    assert not modest.inside.is_set()
    first.leave()

    assert modest.inside.wait(2)
    modest.leave()


def test_cancelling_ends_the_wait_and_gives_up_the_place_in_line() -> None:
    gates = Gates()
    first = Caller(gates, 1)
    assert first.inside.wait(2)
    second = Caller(gates, 1)
    assert until(lambda: gates.waiting() == 1)
    third = Caller(gates, 1)
    assert until(lambda: gates.waiting() == 2)

    second.scope.cancel(RunCancelled("stopped"))
    second.thread.join(2)

    assert str(second.error) == "stopped"
    first.leave()
    assert third.inside.wait(2)
    third.leave()


def test_a_place_is_given_up_whatever_happens_inside() -> None:
    gates = Gates()
    with pytest.raises(ZeroDivisionError), gates.passed("m", 1, Scope()):
        raise ZeroDivisionError

    with gates.passed("m", 1, Scope()):
        assert gates.waiting() == 0


def test_a_thread_is_never_made_to_wait_for_itself() -> None:
    gates = Gates()
    with ExitStack() as stack:
        for name in ("one", "one", "other", "other"):
            stack.enter_context(gates.passed(name, 1, Scope()))
        outsider = Caller(gates, 1, "one")
        assert until(lambda: gates.waiting() == 1)

    assert outsider.inside.wait(2)
    outsider.leave()


def test_two_threads_that_want_each_others_models_do_not_wait_for_ever() -> None:
    gates, both = Gates(), threading.Barrier(2, timeout=5)
    done: list[str] = []

    def call(first: str, second: str) -> None:
        with gates.passed(first, 1, Scope()):
            both.wait()
            with gates.passed(second, 1, Scope()):
                done.append(first)

    threads = [started(lambda: call("a", "b")), started(lambda: call("b", "a"))]
    for thread in threads:
        thread.join(5)

    assert sorted(done) == ["a", "b"]


def test_a_process_has_gates_of_its_own() -> None:
    mine = gates()
    child = os.fork()
    if child == 0:
        os._exit(0 if gates() is not mine else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert gates() is mine


def limited(up: Upstream, provider: Provider, name: str, limit: int = 1) -> Asks:
    return connect(spec(up, provider, name).having(max_concurrent=limit), Settings())


def test_a_model_is_asked_by_no_more_than_its_limit_at_once(up: Upstream, provider: Provider) -> None:
    asked = limited(up, provider, "tokens:10@200", 2)
    most, texts = [0], []

    def ask() -> None:
        events = asked.ask(QUESTION, Scope())
        text = ""
        for event in events:
            most[0] = max(most[0], up.stats.open)
            text += event.text if isinstance(event, Delta) else ""
        texts.append(text)

    for thread in [started(ask) for _ in range(8)]:
        thread.join()

    assert most[0] <= 2
    assert texts == ["".join(f"w{number} " for number in range(10))] * 8
    assert up.stats.requests == 8


def test_uses_of_one_model_share_its_limit_whatever_their_knobs(up: Upstream, provider: Provider) -> None:
    plain = spec(up, provider, "hang:after:1").having(max_concurrent=1)
    first = connect(plain, Settings()).ask(QUESTION, Scope())
    next(first)
    second = started(lambda: next(connect(plain.having(max_tokens=9), Settings()).ask(QUESTION, Scope())))
    assert until(lambda: gates().waiting() == 1)
    assert up.stats.requests == 1

    first.close()
    second.join(5)

    assert up.stats.requests == 2


def test_cancelling_a_call_that_waits_for_its_turn_asks_nobody(up: Upstream, provider: Provider) -> None:
    asked, scope = limited(up, provider, "hang:after:1"), Scope()
    first = asked.ask(QUESTION, Scope())
    next(first)
    errors: list[Exception] = []

    def ask() -> None:
        try:
            next(asked.ask(QUESTION, scope))
        except RunCancelled as exc:
            errors.append(exc)

    waiting = started(ask)
    assert until(lambda: gates().waiting() == 1)
    scope.cancel(RunCancelled("stopped"))
    waiting.join(2)
    first.close()

    assert [str(error) for error in errors] == ["stopped"]
    assert up.stats.requests == 1


def test_a_handler_may_ask_again_while_its_first_answer_is_open(up: Upstream, provider: Provider) -> None:
    asked = limited(up, provider, "hang:after:1")
    first = asked.ask(QUESTION, Scope())
    next(first)

    second = asked.ask(QUESTION, Scope())
    next(second)

    assert up.stats.requests == 2
    first.close()
    second.close()


def test_a_failed_call_gives_up_its_place(up: Upstream, provider: Provider) -> None:
    refused = limited(up, provider, "status:400")
    for _ in range(3):
        started_in_a_thread: list[str] = []

        def ask(told: list[str] = started_in_a_thread) -> None:
            with pytest.raises(ModelRefused):
                answer(refused)
            told.append("refused")

        started(ask).join(5)
        assert started_in_a_thread == ["refused"]


def test_the_pause_before_a_retry_holds_no_place(up: Upstream, provider: Provider) -> None:
    scope = Scope()
    patient = connect(spec(up, provider, "fail:1:status:529").having(max_concurrent=1, retries=1, pause=60), Settings())

    def ask() -> None:
        with pytest.raises(RunCancelled):
            list(patient.ask(QUESTION, scope))

    waiting = started(ask)
    assert up.until(lambda stats: stats.refused == 1)

    assert answer(limited(up, provider, "fail:1:status:529")).text == "recovered"
    scope.cancel(RunCancelled())
    waiting.join(2)
    assert up.stats.requests == 2
