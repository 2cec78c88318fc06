from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from bigbrain.errors import ModelBroke, ModelBusy, ModelRefused
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started, collect
from bigbrain.messages import Text, ToolCall
from bigbrain.models import Model, connect
from bigbrain.models.asks import settled
from bigbrain.models.connection import delay
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from tests.contracts.model import QUESTION
from tests.upstream import Upstream

STARTED, OPENED, DELTA = Started("a", "m"), Opened(0, Text()), Delta(0, "hi")


def breaking(*events: Event) -> Iterator[Event]:
    yield from events
    raise ModelBroke


@pytest.mark.parametrize(("before", "given"), [((STARTED,), 0), ((STARTED, OPENED), 0), ((STARTED, OPENED, DELTA), 3)])
def test_an_answer_counts_as_begun_when_some_of_it_is_there(before: tuple[Event, ...], given: int) -> None:
    got = []
    with pytest.raises(ModelBroke):
        for event in settled(breaking(*before)):
            got.append(event)

    assert len(got) == given


@pytest.mark.parametrize(
    "events",
    [
        [STARTED, Finished("end")],
        [STARTED, OPENED, DELTA, Closed(0), Finished("end")],
        [
            STARTED,
            Opened(0, ToolCall("c", "look")),
            Closed(0),
            Opened(1, ToolCall("d", "look")),
            Closed(1),
            Finished("calls"),
        ],
    ],
)
def test_a_complete_answer_comes_through_as_it_was(events: list[Event]) -> None:
    assert list(settled(iter(events))) == events


def test_delays_double_up_to_a_bound_and_are_spread() -> None:
    delays = [delay(ModelBroke(), 0.5, tries) or 0 for tries in range(8)]

    assert all(0.75 * full <= got <= full for got, full in zip(delays, [0.5, 1, 2, 4, 8, 8, 8, 8], strict=True))


def test_a_server_says_when_to_come_back() -> None:
    assert delay(ModelBusy(retry_after=7), 0.5, 0) == 7


def test_hopeless_and_far_off_tries_are_left_out() -> None:
    assert delay(ModelRefused(), 0.5, 0) is None
    assert delay(ModelBusy(retry_after=3600), 0.5, 0) is None


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_forked_child_opens_connections_of_its_own(provider: str) -> None:
    with Upstream() as up:
        base_url = up.openai if provider == "openai" else up.anthropic
        asked = connect(Model("text:fine", provider=provider, base_url=base_url, api_key="k"), Settings())
        assert collect(asked.ask(QUESTION, Scope())).text == "fine"
        child = os.fork()
        if child == 0:
            fine = collect(asked.ask(QUESTION, Scope())).text == "fine"
            os._exit(0 if fine else 1)
        _, status = os.waitpid(child, 0)
        again = collect(asked.ask(QUESTION, Scope())).text

    assert (os.waitstatus_to_exitcode(status), again) == (0, "fine")
    assert (up.stats.requests, up.stats.connections) == (3, 2)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_error_document_under_status_200_is_no_answer(provider: str) -> None:
    with Upstream() as up:
        base_url = up.openai if provider == "openai" else up.anthropic
        asked = connect(
            Model("error-document", provider=provider, base_url=base_url, api_key="k", retries=0), Settings()
        )
        with pytest.raises(ModelBroke):
            collect(asked.ask(QUESTION, Scope()))

    assert up.stats.requests == 1
