"""What clients see of thinking: a transparent brain's model's, an author's own, never that of an inner agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from werkzeug.test import TestResponse

from bigbrain import All, Brain, Chat, Flow, Model, Turn, agent, respond
from bigbrain.events import collect
from bigbrain.flows import Flow as AnyFlow
from bigbrain.messages import JSON, Response, Text, Thinking
from bigbrain.models import FixedModel
from bigbrain.wire import anthropic, openai_chat, sse
from tests.scripted import Script
from tests.upstream import Upstream
from tests.web.site import BOTH, CHAT, MESSAGES, asking, serving

SECRET = Response(parts=(Thinking("secret thought"), Text("words")), stop="end")


def read(path: str, response: TestResponse) -> Response:
    assert response.status_code == 200, response.data
    dialect = openai_chat if path == CHAT else anthropic
    if response.mimetype == "application/json":
        return dialect.read_response(response.json)
    return collect(dialect.read_events(sse.read([response.get_data()])))


def said(path: str, response: TestResponse) -> list[tuple[str, str]]:
    parts = read(path, response).parts
    return [(type(part).__name__, part.text) for part in parts if isinstance(part, Thinking | Text)]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_thinking_passes_and_goes_back_to_the_model_as_it_came(
    upstream: Upstream, provider: str, path: str, stream: bool
) -> None:
    url = upstream.openai if provider == "openai" else upstream.anthropic
    with serving(Brain("b", Flow(model=Model("reasoning", provider=provider, base_url=url)))) as site:
        response = site.client.post(path, json=asking(stream=stream))
        answer = read(path, response)
        dialect = openai_chat if path == CHAT else anthropic
        whole: Any = dialect.write_response(answer, dialect.read_request(asking()))
        message = whole["choices"][0]["message"] if path == CHAT else {"role": "assistant", "content": whole["content"]}
        history = [*asking()["messages"], message, {"role": "user", "content": "more"}]
        site.client.post(path, json={**asking(), "messages": history}).get_data()

    (_, again) = upstream.requests
    assert [part.text for part in answer.parts] == ["let me see", "done"]
    assistant = again.body["messages"][1]
    if provider == "openai":
        assert assistant["reasoning_content"] == "let me see"
    else:
        assert assistant["content"][0] == {"type": "thinking", "thinking": "let me see", "signature": "QUJD"}


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_an_author_shows_thinking_of_its_own(path: str, stream: bool) -> None:
    @agent
    def talk(turn: Turn, chat: Chat) -> None:
        turn.reply("the answer", thinking=("let me ", "", "see"))
        turn.reply("and more", thinking="once again")

    with serving(Brain("b", Flow(talk))) as site:
        told = said(path, site.client.post(path, json=asking(stream=stream)))

    thought, text = ("Thinking", "let me see"), ("Text", "the answer")
    if path == MESSAGES:
        assert told == [thought, text, ("Thinking", "once again"), ("Text", "\n\nand more")]
    elif stream:
        assert [each for each in told if each[0] == "Text"] == [text, ("Text", "\n\nand more")]
    else:
        assert told == [("Thinking", "let me seeonce again"), ("Text", "the answer\n\nand more")]


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_an_author_passes_on_what_its_model_thought(path: str, stream: bool) -> None:
    @agent(model=Script(SECRET))
    def talk(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.ask("think"), thinking=True)

    with serving(Brain("b", Flow(talk))) as site:
        told = said(path, site.client.post(path, json=asking(stream=stream)))

    assert told == [("Thinking", "secret thought"), ("Text", "words")]


def replying(turn: Turn, chat: Chat) -> None:
    turn.reply(chat.ask("think"))


def keeping(turn: Turn, chat: Chat) -> None:
    turn.reply(f"quoted: {chat.ask('think').text}")


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "flow",
    [
        lambda: Flow(agent(model=Script(SECRET))(replying)),
        lambda: Flow(agent(model=Script(SECRET))(keeping)),
        lambda: Flow(model=Script(SECRET)) >> Flow(model=FixedModel("last")),
        lambda: Flow(model=Script(SECRET)) >> Flow(model=FixedModel("last")) >> respond,
        lambda: All(Flow(model=Script(SECRET)), Flow(model=FixedModel("last"))) >> respond,
    ],
)
def test_what_an_inner_agent_thinks_never_leaks(path: str, stream: bool, flow: Callable[[], AnyFlow]) -> None:
    with serving(Brain("b", flow())) as site:
        body = site.client.post(path, json=asking(stream=stream)).get_data()

    assert b"secret" not in body


def test_thinking_of_what_is_no_reply_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    @agent
    def talk(turn: Turn, chat: Chat) -> None:
        turn.reply("text", thinking=True)

    with serving(Brain("b", Flow(talk))) as site:
        assert site.client.post(CHAT, json=asking()).status_code == 500
    assert "give the thinking itself" in caplog.text


@pytest.mark.parametrize("fields", [{}, {"thinking": {"type": "disabled"}}, {"thinking": {"type": "adaptive"}}])
def test_every_wish_to_think_is_taken(fields: dict[str, JSON]) -> None:
    with serving(Brain("b", Flow(model=Script(SECRET)))) as site:
        assert said(MESSAGES, site.client.post(MESSAGES, json=asking(**fields)))[-1] == ("Text", "words")
