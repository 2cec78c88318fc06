"""Any model of bigbrain writes an orchestrator's replies, whatever wire it speaks."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bigbrain.errors import ModelBroke, ModelTimeout, RunCancelled
from bigbrain.messages import Usage, assistant, system, user
from bigbrain.models import Model, connect
from bigbrain.orchestrator.backends import Conversation, ModelBackend, Said
from bigbrain.orchestrator.cancellation import Cancellation
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.testing import Breaks, Says, ScriptedModel
from tests.upstream import Upstream

TALK = Conversation("Be brief.", history=(user("hi"), assistant("hello")), task=(user("and now?"),))


def ask(backend: ModelBackend, talk: Conversation = TALK, *, scope: Scope | None = None, seconds: float = 30.0) -> Any:
    told: list[str] = []
    spent: list[Usage] = []
    said = backend.ask(
        talk, told=told.append, spent=spent.append, scope=scope or Scope(), deadline=time.monotonic() + seconds
    )
    return said, told, spent


def test_the_pieces_are_told_as_they_come_and_are_the_text() -> None:
    model = ScriptedModel(Says(chunks=("Not", " mu", "ch."), usage=Usage(3, 2)))

    said, told, spent = ask(ModelBackend(model, "m"))

    assert said == Said("Not much.")
    assert told == ["Not", " mu", "ch."]
    assert spent == [Usage(3, 2)]
    assert model.last.messages == (system("Be brief."), user("hi"), assistant("hello"), user("and now?"))


def test_what_is_fresh_follows_the_last_reply_of_the_task() -> None:
    assert TALK.fresh == (user("and now?"),)
    later = Conversation("", task=(system("known"), user("a"), assistant("b"), user("c"), user("d")))

    assert later.fresh == (user("c"), user("d"))
    assert later.messages == later.task


def test_a_reply_that_breaks_off_is_paid_and_raised() -> None:
    spent: list[Usage] = []
    told: list[str] = []
    backend = ModelBackend(ScriptedModel(Breaks("half")), "m")

    with pytest.raises(ModelBroke):
        backend.ask(TALK, told=told.append, spent=spent.append, scope=Scope(), deadline=time.monotonic() + 30)

    assert told == ["half"]
    assert spent == [Usage()]


def test_a_reply_that_takes_too_long_is_ended() -> None:
    model = ScriptedModel(Says("never", delay=30))

    with pytest.raises(ModelTimeout, match="timeout"):
        ask(ModelBackend(model, "m"), seconds=0.03)

    assert model.closed == 1


def test_a_cancelled_question_is_ended() -> None:
    stop = Cancellation()
    model = ScriptedModel(lambda _: stop.cancel("enough") or Says("never", delay=30))  # type: ignore[func-returns-value]

    with pytest.raises(RunCancelled, match="enough"):
        ask(ModelBackend(model, "m"), scope=stop.scope)


def body(model: Model, **options: bool) -> dict[str, Any]:
    with Upstream() as upstream:
        url = upstream.anthropic if model.provider == "anthropic" else upstream.openai
        connected = connect(model.having(base_url=url, api_key="k"), Settings())
        said, _, _ = ask(ModelBackend(connected, "m", **options))
        assert said.text == "ok"
        return upstream.requests[0].body


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_both_wires_carry_the_conversation(provider: Any) -> None:
    sent = body(Model("text:ok", provider=provider, temperature=0, max_tokens=77))

    assert "Be brief." in str(sent.get("system") or sent["messages"][0])
    assert [message["role"] for message in sent["messages"]][-3:] == ["user", "assistant", "user"]
    assert sent["temperature"] == 0
    assert 77 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))
    assert "response_format" not in sent
    assert "cache_control" not in str(sent)


def test_json_only_is_asked_of_the_provider() -> None:
    assert body(Model("text:ok"), json_only=True)["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_caching_marks_the_instructions_on_both_wires(provider: Any) -> None:
    sent = body(Model("text:ok", provider=provider, max_tokens=9), caching=True)

    [block] = sent["system"] if provider == "anthropic" else sent["messages"][0]["content"]
    assert block == {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
