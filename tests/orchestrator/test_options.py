"""Every option, its default, what it does, and what cannot be meant by it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from bigbrain.errors import WiringError
from bigbrain.models import Model, ModelRef
from bigbrain.models import model as tagged
from bigbrain.orchestrator import Orchestrator
from bigbrain.orchestrator.options import Options, Wanted
from bigbrain.testing import ScriptedModel
from tests.orchestrator.users import FINISH, Desk
from tests.upstream import Upstream
from tests.upstream_answers import Answer

SESSION = "6f1f3a52-2f5d-4d0e-9c3e-0f6f6a3c9a11"

DEFAULTS = {
    "backend": "model",
    "optional_prompt": "",
    "max_steps": 50,
    "steps_interval": None,
    "timeout": 60.0,
    "cancellation": None,
    "model": None,
    "api_key": None,
    "server_url": None,
    "temperature": 0.0,
    "max_tokens": 8192,
    "enable_prompt_caching": False,
    "enforce_json_output": False,
    "session_id": None,
    "cli_path": "claude",
}


def test_the_defaults_are_those_of_the_table() -> None:
    options = Orchestrator([]).options

    assert {name: getattr(options, name) for name in DEFAULTS} == DEFAULTS


def test_every_option_may_be_given() -> None:
    assert {one.name for one in fields(Options)} == set(get_type_hints(Wanted))


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"maxSteps": 5}, "`maxSteps` is no option of an orchestrator; did you mean `max_steps`?"),
        ({"timeoutMs": 5}, "did you mean `timeout`?"),
        ({"zzz": 5}, "`zzz` is no option"),
        ({"backend": "openai"}, "it is `model` here"),
        ({"backend": "claude-code"}, "it is `claude_code` here"),
        ({"backend": "other"}, "give `model` or `claude_code`"),
        ({"backend": 3}, "something with `ask`"),
        ({"backend": "claude_code"}, "needs a UUID"),
        ({"backend": "claude_code", "session_id": "mine"}, "`session_id` is 'mine'"),
        ({"backend": "claude_code", "session_id": SESSION, "model": ScriptedModel()}, "as the CLI spells it"),
        ({"backend": "claude_code", "session_id": SESSION, "cli_path": ""}, "`cli_path` is empty"),
        ({"session_id": SESSION}, "for the Claude Code CLI only"),
        ({"max_steps": 0}, "`max_steps` is 0"),
        ({"repairs": -1}, "`repairs` is -1"),
        ({"timeout": 0}, "`timeout` is 0"),
        ({"timeout": float("inf")}, "`timeout` is inf"),
        ({"steps_interval": -1}, "`steps_interval` is -1"),
        ({"on_tool_error": "ignore"}, "`on_tool_error` is 'ignore'"),
        ({"model": 3}, "`model` is 3"),
        ({"model": ScriptedModel(), "api_key": "k"}, "give them to the `Model` itself"),
        ({"name": ""}, "`name` is empty"),
    ],
)
def test_what_cannot_be_meant_is_found_when_it_is_made(given: Any, fault: str) -> None:
    with pytest.raises(WiringError) as caught:
        Orchestrator([], **given)

    assert fault in str(caught.value)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(WiringError) as caught:
        Orchestrator([], max_steps=0, timeout=-1, repairs=-1)

    assert len(caught.value.faults) == 3


def test_a_key_is_not_shown() -> None:
    assert "sk-secret" not in repr(Orchestrator([], api_key="sk-secret").options)


class TestModel:
    def test_a_name_is_a_model_at_the_server_with_the_usual_defaults(self) -> None:
        with Upstream() as upstream:
            upstream.script(Answer(tokens=(FINISH,)))
            result = Orchestrator(
                Desk().agents, api_key="sk-1", model="some-model", server_url=upstream.openai
            ).execute_task("go")
            [request] = upstream.requests

        assert result.ok
        assert (request.path, request.key) == ("/v1/chat/completions", "sk-1")
        body = request.body
        assert (body["model"], body["temperature"]) == ("some-model", 0)
        assert 8192 in (body.get("max_tokens"), body.get("max_completion_tokens"))
        assert "response_format" not in body
        assert isinstance(body["messages"][0]["content"], str)

    def test_without_a_name_it_is_gpt_4o(self) -> None:
        wanted = Options(api_key="k").wanted_model

        assert isinstance(wanted, Model)
        assert (wanted.name, wanted.base_url) == ("gpt-4o", None)
        assert isinstance(Options().lone_model, Model)
        assert Options().lone_model.name == "gpt-4o"  # type: ignore[union-attr]

    def test_every_knob_reaches_the_server(self) -> None:
        with Upstream() as upstream:
            upstream.script(Answer(tokens=(FINISH,)))
            Orchestrator(
                Desk().agents,
                api_key="k",
                server_url=upstream.openai,
                temperature=0.7,
                max_tokens=99,
                enforce_json_output=True,
                enable_prompt_caching=True,
            ).execute_task("go", on_token=lambda _: None)
            body = upstream.requests[0].body

        assert body["temperature"] == 0.7
        assert 99 in (body.get("max_tokens"), body.get("max_completion_tokens"))
        assert body["response_format"] == {"type": "json_object"}
        assert body["stream"] is True
        [block] = body["messages"][0]["content"]
        assert block["cache_control"] == {"type": "ephemeral"}

    def test_what_a_model_says_itself_goes_first(self) -> None:
        own = Options(model=Model("m", temperature=0.5)).wanted_model
        referred = Options(model=tagged("cheap", max_tokens=5)).wanted_model

        assert isinstance(own, Model)
        assert (own.temperature, own.max_tokens) == (0.5, 8192)
        assert isinstance(referred, ModelRef)
        assert (referred.tags, referred.knobs) == (("cheap",), {"temperature": 0.0, "max_tokens": 5})

    def test_a_knob_may_be_left_to_the_provider(self) -> None:
        wanted = Options(model="m", temperature=None, max_tokens=None).wanted_model

        assert isinstance(wanted, Model)
        assert (wanted.temperature, wanted.max_tokens) == (None, None)

    def test_anthropics_own_protocol_is_spoken_as_well(self) -> None:
        with Upstream() as upstream:
            upstream.script(Answer(tokens=tuple(FINISH)))
            model = Model("claude-x", provider="anthropic", base_url=upstream.anthropic, api_key="k")
            given: list[str] = []
            result = Orchestrator(Desk().agents, model=model).execute_task("go", on_token=given.append)
            [request] = upstream.requests

        assert result.ok
        assert "".join(given) == result.answer
        assert request.path == "/v1/messages"
        assert "user-agent" in str(request.body["system"])
        assert result.usage.input > 0

    def test_the_environment_says_where_and_with_which_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with Upstream() as upstream:
            upstream.script(Answer(tokens=(FINISH,)))
            monkeypatch.setenv("BIG_BRAIN_BASE_URL", upstream.openai)
            monkeypatch.setenv("BIG_BRAIN_API_KEY", "sk-env")
            result = Orchestrator(Desk().agents).execute_task("go")
            [request] = upstream.requests

        assert result.ok
        assert (request.key, request.body["model"]) == ("sk-env", "gpt-4o")

    def test_tags_are_looked_up_by_a_brain_only(self) -> None:
        result = Orchestrator(Desk().agents, model=tagged("cheap")).execute_task("go")

        assert result.status == "error"
        assert "only a brain" in result.answer
