"""Everything that goes wrong on the way to a provider and back, and what is done about it."""

from __future__ import annotations

import threading
import time

import pytest

from bigbrain.errors import (
    ContextTooLong,
    ModelBroke,
    ModelBusy,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    RunCancelled,
)
from bigbrain.events import Finished, collect
from bigbrain.models import connect
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from tests.contracts.model import QUESTION
from tests.models.asking import Spoken, answer, asks, partly, spec, text_of
from tests.upstream import Upstream
from tests.upstream_answers import words


@pytest.mark.parametrize(
    ("name", "kind", "retryable"),
    [
        ("status:400", ModelRefused, False),
        ("status:401", ModelRefused, False),
        ("status:404", ModelRefused, False),
        ("too-long", ContextTooLong, False),
        ("status:429:retry-after=2", ModelBusy, True),
        ("status:500", ModelBroke, True),
        ("status:529", ModelOverloaded, True),
        ("status:500:should-retry=false", ModelBroke, False),
    ],
)
def test_a_refusal_is_raised_by_kind(
    up: Upstream, provider: Spoken, name: str, kind: type[ModelError], retryable: bool
) -> None:
    with pytest.raises(kind) as caught:
        next(asks(up, provider, name).ask(QUESTION, Scope()))

    assert caught.value.retryable is retryable
    assert caught.value.retry_after == (2 if "retry-after" in name else None)


@pytest.mark.parametrize("name", ["reset:before", "reset:after:3", "cut:3", "truncate:3", "garbage", "html"])
def test_an_answer_that_breaks_off_is_never_taken_for_complete(up: Upstream, provider: Spoken, name: str) -> None:
    events, error = partly(asks(up, provider, name))

    assert isinstance(error, ModelBroke)
    assert not any(isinstance(event, Finished) for event in events)
    assert text_of(events) == ("w0 w1 w2 " if name.endswith("3") else "")


@pytest.mark.parametrize("name", ["hang", "hang:after:3"])
def test_a_silent_server_is_a_timeout(up: Upstream, provider: Spoken, name: str) -> None:
    events, error = partly(asks(up, provider, name, timeout=0.1))

    assert isinstance(error, ModelTimeout)
    assert text_of(events) == ("w0 w1 w2 " if "after" in name else "")


def test_the_timeout_counts_silence_and_not_the_whole_answer(up: Upstream, provider: Spoken) -> None:
    assert answer(asks(up, provider, "tokens:30@60", timeout=0.2)).text == "".join(words(30))


def test_a_server_that_is_not_there_is_a_broken_connection(provider: Spoken) -> None:
    with Upstream() as gone:
        pass

    with pytest.raises(ModelBroke, match=r"the connection to `http://127\.0\.0\.1:.*` failed"):
        answer(asks(gone, provider, "echo"))


@pytest.mark.parametrize("after", [0, 2])
def test_an_error_inside_a_stream_is_raised_by_its_kind(up: Upstream, provider: Spoken, after: int) -> None:
    events, error = partly(asks(up, provider, f"error-in-stream:overloaded:{after}"))

    assert isinstance(error, ModelError)
    assert error.retryable
    assert text_of(events) == "".join(words(after))


@pytest.mark.parametrize(
    "fault", ["status:500", "status:529", "status:429:retry-after=0.01", "reset:before", "error-in-stream:overloaded"]
)
def test_a_call_that_failed_before_its_answer_is_made_again(up: Upstream, provider: Spoken, fault: str) -> None:
    events = list(asks(up, provider, f"fail:2:{fault}", retries=2).ask(QUESTION, Scope()))

    assert collect(events).text == "recovered"
    assert len(events) == 5
    assert [request.headers["x-stainless-retry-count"] for request in up.requests] == ["0", "1", "2"]


def test_retries_are_bounded(up: Upstream, provider: Spoken) -> None:
    with pytest.raises(ModelOverloaded):
        answer(asks(up, provider, "status:529", retries=2))

    assert up.stats.requests == 3


@pytest.mark.parametrize("name", ["status:400", "status:500:should-retry=false", "status:429:retry-after=3600"])
def test_what_cannot_succeed_soon_is_not_tried_again(up: Upstream, provider: Spoken, name: str) -> None:
    with pytest.raises(ModelError):
        answer(asks(up, provider, name, retries=2))

    assert up.stats.requests == 1


@pytest.mark.parametrize("fault", ["error-in-stream:overloaded:1", "reset:after:1", "truncate:1"])
def test_nothing_is_tried_again_once_some_text_was_given(up: Upstream, provider: Spoken, fault: str) -> None:
    events, _ = partly(asks(up, provider, f"fail:1:{fault}", retries=2))

    assert text_of(events) == "w0 "
    assert up.stats.requests == 1


@pytest.mark.parametrize("name", ["hang", "hang:after:2", "tokens:10000@20"])
def test_cancelling_ends_a_call_and_its_connection_at_once(up: Upstream, provider: Spoken, name: str) -> None:
    scope = Scope()
    cancelled_at: list[float] = []

    def cancel() -> None:
        up.until(lambda stats: stats.open == 1)
        cancelled_at.append(time.monotonic())
        scope.cancel(RunCancelled("stopped"))

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(RunCancelled, match="stopped"):
        list(asks(up, provider, name, retries=2).ask(QUESTION, scope))
    ended = time.monotonic()
    thread.join()

    assert ended - cancelled_at[0] < 0.2
    assert up.until(lambda stats: stats.cancelled == 1 and stats.open == 0, within=0.2)
    assert up.stats.requests == 1


def test_cancelling_ends_the_wait_before_a_retry(up: Upstream, provider: Spoken) -> None:
    scope = Scope()
    patient = connect(spec(up, provider, "status:529").having(retries=5, pause=60), Settings())

    def cancel() -> None:
        up.until(lambda stats: stats.refused == 1)
        scope.cancel(RunCancelled())

    threading.Thread(target=cancel).start()
    with pytest.raises(RunCancelled):
        list(patient.ask(QUESTION, scope))

    assert up.stats.requests == 1


def test_cancelling_one_call_leaves_the_others_alone(up: Upstream, provider: Spoken) -> None:
    scope, texts = Scope(), []
    steady = asks(up, provider, "tokens:30@100")
    others = [threading.Thread(target=lambda: texts.append(answer(steady).text)) for _ in range(3)]
    for thread in others:
        thread.start()
    assert up.until(lambda stats: stats.open == 3)
    threading.Thread(target=lambda: up.until(lambda stats: stats.open == 4) and scope.cancel(RunCancelled())).start()
    with pytest.raises(RunCancelled):
        list(asks(up, provider, "hang").ask(QUESTION, scope))
    for thread in others:
        thread.join()

    assert texts == ["".join(words(30))] * 3


def test_a_scope_that_is_cancelled_late_harms_no_later_call_on_the_same_connection(
    up: Upstream, provider: Spoken
) -> None:
    early = Scope()
    asked = asks(up, provider, "tokens:3")
    collect(asked.ask(QUESTION, early))
    later = asks(up, provider, "tokens:20@200").ask(QUESTION, Scope())
    got = [next(later)]
    early.cancel(RunCancelled())
    got.extend(later)

    assert collect(got).text == "".join(words(20))
    assert up.stats.connections == 1


def test_closing_the_events_ends_the_call_at_the_server(up: Upstream, provider: Spoken) -> None:
    events = asks(up, provider, "tokens:10000@50").ask(QUESTION, Scope())
    next(events)
    events.close()

    assert up.until(lambda stats: stats.cancelled == 1 and stats.open == 0, within=0.2)


def test_a_connection_is_used_again(up: Upstream, provider: Spoken) -> None:
    for name in ("tokens:5", "json", "status:400", "reasoning"):
        with_result = asks(up, provider, name)
        try:
            answer(with_result)
        except ModelRefused:
            assert name == "status:400"

    assert (up.stats.requests, up.stats.connections) == (4, 1)
