from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass

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
    WiringError,
)
from bigbrain.events import Event, Started, collect
from bigbrain.messages import Request, ToolCall
from bigbrain.models import Asks, FixedModel, Model, connect, model
from bigbrain.models.fallbacks import Fallbacks
from bigbrain.models.spec import Provider
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from tests.contracts.model import QUESTION, ModelContract
from tests.models.asking import KEY, answer, partly, spec, text_of
from tests.upstream import Upstream


@dataclass(frozen=True)
class Failing:
    """Fails, after it has announced an answer."""

    error: ModelError
    name: str = "failing"

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        yield Started("x", self.name)
        raise self.error


class TestFallbacks(ModelContract):
    @pytest.fixture
    def speaking(self) -> Callable[[str], Asks]:
        return lambda text: Fallbacks([("a", Failing(ModelBusy())), ("b", FixedModel(text))])

    @pytest.fixture
    def calling(self) -> Asks:
        fixed = FixedModel(calls=(ToolCall("c1", "look", '{"n": 0}'),))
        return Fallbacks([("a", Failing(ModelBroke())), ("b", fixed)])

    @pytest.fixture
    def endless(self) -> Asks:
        return Fallbacks([("a", FixedModel("word " * 10_000, delay=0.005)), ("b", FixedModel("never"))])


def failure_of(*errors: ModelError) -> ModelError:
    """What is raised when all models fail, each with one of the errors."""
    line = [(f"m{number}", Failing(error)) for number, error in enumerate(errors)]
    with pytest.raises(ModelError) as caught:
        answer(Fallbacks(line))
    return caught.value


@pytest.mark.parametrize(
    "fault", ["status:401", "status:400", "status:429", "status:529", "reset:before", "too-long", "html", "garbage"]
)
def test_whatever_fails_before_its_answer_is_followed_by_the_fallback(
    up: Upstream, provider: Provider, fault: str
) -> None:
    asked = connect(
        spec(up, provider, fault).having(fallbacks=(spec(up, provider, "text:saved by"),)),
        Settings(),
    )

    assert answer(asked).text == "saved by"
    assert [request.body["model"] for request in up.requests] == [fault, "text:saved by"]


def test_a_silent_server_is_given_up_for_the_fallback(up: Upstream) -> None:
    silent = spec(up, "openai", "hang").having(timeout=0.1, fallbacks=(spec(up, "anthropic", "text:other"),))

    assert answer(connect(silent, Settings())).text == "other"


def test_the_answer_names_the_model_that_gave_it(up: Upstream) -> None:
    line = spec(up, "openai", "status:500").having(fallbacks=(spec(up, "anthropic", "text:hi"),))

    assert answer(connect(line, Settings())).model == "text:hi"


def test_a_model_that_answers_is_the_only_one_asked(up: Upstream, provider: Provider) -> None:
    asked = connect(
        spec(up, provider, "text:fine").having(fallbacks=(spec(up, provider, "text:never"),)),
        Settings(),
    )

    assert answer(asked).text == "fine"
    assert up.stats.requests == 1


def test_each_model_makes_its_own_retries(up: Upstream) -> None:
    last = spec(up, "openai", "fail:1:status:503").having(retries=1)
    line = spec(up, "anthropic", "status:529").having(retries=2, fallbacks=(last,))

    assert answer(connect(line, Settings())).text == "recovered"
    assert [request.body["model"] for request in up.requests] == ["status:529"] * 3 + ["fail:1:status:503"] * 2


@pytest.mark.parametrize("fault", ["error-in-stream:overloaded:1", "reset:after:1", "truncate:1"])
def test_no_fallback_is_asked_once_some_text_was_given(up: Upstream, provider: Provider, fault: str) -> None:
    asked = connect(
        spec(up, provider, fault).having(fallbacks=(spec(up, provider, "text:never"),)),
        Settings(),
    )
    events, error = partly(asked)

    assert text_of(events) == "w0 "
    assert isinstance(error, ModelError)
    assert "none of" not in str(error)
    assert up.stats.requests == 1


def test_what_only_announced_an_answer_is_not_shown() -> None:
    events = list(Fallbacks([("a", Failing(ModelBroke())), ("b", FixedModel("yes"))]).ask(QUESTION, Scope()))

    assert [event.model for event in events if isinstance(event, Started)] == ["fixed"]


def test_when_all_fail_each_is_named_with_its_words() -> None:
    error = failure_of(ModelRefused("bad key"), ModelTimeout("60 s are over"), ModelBroke("reset"))

    assert str(error) == (
        "none of 3 models answered: `m0`: ModelRefused: bad key; "
        "`m1`: ModelTimeout: 60 s are over; `m2`: ModelBroke: reset"
    )
    assert error.public == "The model behind this brain took too long."


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ((ModelBusy(), ModelRefused()), ModelBusy),
        ((ModelRefused(), ModelOverloaded(), ModelBroke()), ModelOverloaded),
        ((ContextTooLong(), ModelRefused()), ContextTooLong),
        ((ModelRefused(), ContextTooLong()), ContextTooLong),
        ((ContextTooLong(), ModelTimeout()), ModelTimeout),
        ((ModelRefused("first"), ModelRefused("second")), ModelRefused),
    ],
)
def test_when_all_fail_the_most_telling_error_is_raised(errors: tuple[ModelError, ...], kind: type[ModelError]) -> None:
    error = failure_of(*errors)

    assert type(error) is kind
    assert (error.status, error.code) == (kind.status, kind.code)
    assert error.__cause__ in errors


def test_when_all_fail_the_soonest_retry_counts() -> None:
    assert failure_of(ModelBusy(retry_after=30), ModelBusy(retry_after=5), ModelBroke()).retry_after == 5
    assert failure_of(ModelRefused(retry_after=1), ModelBusy(retry_after=5)).retry_after == 5
    assert failure_of(ModelRefused(), ModelBroke()).retry_after is None


def test_the_judgement_of_a_server_outlives_its_error() -> None:
    hopeless = ModelBroke()
    hopeless.retryable = False

    assert failure_of(hopeless, ModelRefused()).retryable is False


def test_a_failure_that_is_raised_changes_none_of_the_models_own() -> None:
    own = ModelBusy("full", retry_after=9)
    failure_of(own, ModelBusy(retry_after=1))

    assert (str(own), own.retry_after) == ("full", 9)


def test_no_key_stands_in_the_error_of_all(up: Upstream) -> None:
    line = spec(up, "openai", "status:401").having(fallbacks=(spec(up, "anthropic", "status:401"),))
    with pytest.raises(ModelRefused, match="none of 2 models answered") as caught:
        answer(connect(line, Settings()))

    assert KEY not in str(caught.value)


def test_a_fallback_is_told_to_whoever_reads_the_log(caplog: pytest.LogCaptureFixture) -> None:
    answer(Fallbacks([("first", Failing(ModelBroke("reset"))), ("b", FixedModel("yes"))]))

    assert [record.getMessage() for record in caplog.records] == [
        "model `first` failed and its fallback is asked, if it has one: reset"
    ]


def test_a_cancelled_call_asks_no_fallback(up: Upstream, provider: Provider) -> None:
    scope = Scope()
    asked = connect(
        spec(up, provider, "hang").having(fallbacks=(spec(up, provider, "text:never"),)),
        Settings(),
    )
    canceller = threading.Thread(
        target=lambda: up.until(lambda stats: stats.open == 1) and scope.cancel(RunCancelled("stopped"))
    )
    canceller.start()
    with pytest.raises(RunCancelled, match="stopped"):
        list(asked.ask(QUESTION, scope))
    canceller.join()

    assert up.stats.requests == 1


def test_what_answers_by_itself_may_be_the_last_resort(up: Upstream) -> None:
    line = spec(up, "openai", "status:500").having(fallbacks=[FixedModel("sorry, later")])

    assert answer(connect(line, Settings())).text == "sorry, later"


def test_a_fallbacks_own_fallbacks_come_after_it(up: Upstream) -> None:
    second = spec(up, "openai", "status:502").having(fallbacks=(spec(up, "openai", "status:503"),))
    first = spec(up, "openai", "status:500").having(fallbacks=(second, spec(up, "openai", "text:end")))
    answer(connect(first, Settings()))

    assert [request.body["model"] for request in up.requests] == ["status:500", "status:502", "status:503", "text:end"]


def test_a_model_that_comes_twice_is_asked_once(up: Upstream) -> None:
    first = spec(up, "openai", "status:500")
    with pytest.raises(ModelBroke):
        answer(connect(first.having(fallbacks=(first, first)), Settings()))

    assert up.stats.requests == 1


def test_every_fallback_without_a_key_is_a_fault_of_the_wiring() -> None:
    line = Model("a", fallbacks=(Model("b", provider="anthropic"), Model("c", api_key="k"), FixedModel("x")))

    with pytest.raises(WiringError) as caught:
        connect(line, Settings())

    assert [fault.split(";")[0] for fault in caught.value.faults] == ["model `a` has no key", "model `b` has no key"]


def test_a_reference_needs_a_brain_to_be_looked_up() -> None:
    with pytest.raises(WiringError, match="a fallback of model `a`: only a brain looks up a reference to `fast`"):
        connect(Model("a", api_key="k", fallbacks=(model("fast"),)), Settings())


def test_connecting_a_line_shows_no_key(up: Upstream) -> None:
    line = spec(up, "openai", "a").having(fallbacks=(spec(up, "openai", "b"),))

    assert repr(connect(line, Settings())) == "Fallbacks(a, b)"
    assert KEY not in repr(line)


def test_a_fallback_is_its_whole_answer(up: Upstream) -> None:
    events = list(
        connect(spec(up, "openai", "status:500").having(fallbacks=(spec(up, "openai", "tokens:5"),)), Settings()).ask(
            QUESTION, Scope()
        )
    )

    assert collect(events).text == "w0 w1 w2 w3 w4 "
    assert isinstance(events[0], Started)
