"""A model that goes on with an answer whose beginning it is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bigbrain import Brain, Chat, Flow, Model, Turn, agent, respond
from bigbrain.events import Closed, Delta, Finished, Opened
from bigbrain.messages import Request, Text, ToolCall, assistant, user
from bigbrain.models import connect
from bigbrain.prefilling import Prefilled, prefilled
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.testing import Client
from tests.upstream import Upstream
from tests.upstream_answers import Answer, Call, words

ASKED = Request(messages=(user("go"),))


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


def model(up: Upstream, provider: str = "openai", **knobs: object) -> Model:
    url = up.openai if provider == "openai" else up.anthropic
    return Model("m", provider=provider, base_url=url, api_key="k", **{"prefill": True, **knobs})


def whole(up: Upstream, one: Model, beginning: str) -> list[object]:
    asks = prefilled(connect(one, Settings()), ASKED, beginning)
    return [event for event in asks.ask(ASKED, Scope()) if isinstance(event, (Opened, Delta, Closed, Finished))]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_beginning_is_the_last_message_and_the_answer_has_it(up: Upstream, provider: str) -> None:
    up.script(Answer(tokens=(" two", " three")))

    events = whole(up, model(up, provider), "one ")

    assert "".join(event.text for event in events if isinstance(event, Delta)) == "one two three"
    assert up.requests[-1].body["messages"][-1]["role"] == "assistant"
    assert "one" in str(up.requests[-1].body["messages"][-1]["content"])
    # white space at the end, which a provider may refuse, is left to the model
    assert "one " not in str(up.requests[-1].body["messages"][-1]["content"])


def test_the_fields_that_a_server_wants_for_it_are_sent_then_only(up: Upstream) -> None:
    up.script(Answer(tokens=("x",)), Answer(tokens=("x",)))
    one = model(up, prefill={"continue_final_message": True})

    whole(up, one, "")
    whole(up, one, "begun")

    assert ["continue_final_message" in request.body for request in up.requests] == [False, True]


def test_an_answer_that_goes_on_with_a_call_has_the_beginning_before_it(up: Upstream) -> None:
    up.script(Answer(calls=(Call("look"),)))

    events = whole(up, model(up), "let me look")

    assert [(event.index, type(event.part)) for event in events if isinstance(event, Opened)] == [
        (0, Text),
        (1, ToolCall),
    ]
    assert isinstance(events[-1], Finished)


def test_an_answer_with_nothing_more_is_the_beginning(up: Upstream) -> None:
    up.script(Answer(tokens=()))

    events = whole(up, model(up), "that is all")

    assert [event.text for event in events if isinstance(event, Delta)] == ["that is all"]


def test_who_cannot_go_on_is_asked_for_all(up: Upstream) -> None:
    able, unable = connect(model(up), Settings()), connect(model(up, prefill=False), Settings())

    assert isinstance(prefilled(able, ASKED, "a"), Prefilled)
    assert prefilled(able, ASKED, " \n") is able
    assert prefilled(unable, ASKED, "a") is unable
    # the client has given a beginning of its own
    assert prefilled(able, Request(messages=(user("go"), assistant("so"))), "a") is able


def cut_short(up: Upstream, flow: Flow) -> tuple[str, list[dict[str, object]]]:
    """The answer of a flow whose model breaks off in the midst of it and is asked again, and what it was asked."""
    up.script(Answer(tokens=words(12), reset_after=6), Answer(tokens=(" and", " more")))
    with Client(Brain("b", flow.named("kept").durable(retries=1) >> respond)) as client:
        answer = client.chat("go")
    return answer.text, [request.body for request in up.requests]


def test_a_durable_flow_goes_on_with_what_the_client_has(up: Upstream) -> None:
    text, asked = cut_short(up, Flow(model=model(up, retries=0)))

    assert text == "w0 w1 w2 w3 w4 w5 and more"
    assert [len(body["messages"]) for body in asked] == [1, 2]
    assert asked[1]["messages"][-1]["content"] == "w0 w1 w2 w3 w4 w5"


def test_a_handler_goes_on_where_it_says_so(up: Upstream) -> None:
    @agent(model=model(up, retries=0))
    def says(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.ask(*turn.messages, beginning=turn.begun))

    text, asked = cut_short(up, Flow(says))

    assert text == "w0 w1 w2 w3 w4 w5 and more"
    assert len(asked[1]["messages"]) == 2
