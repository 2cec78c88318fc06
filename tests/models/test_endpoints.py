from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from bigbrain.errors import WiringError
from bigbrain.models import FixedModel, Model, connect
from bigbrain.models.endpoints import Address, address, endpoint
from bigbrain.settings import Settings
from bigbrain.wire import openai_responses

ENVIRONMENT = Settings(
    api_key="key-1",
    base_url="http://127.0.0.1:1/v1",
    anthropic_api_key="key-2",
    anthropic_base_url="http://127.0.0.1:2",
)


def test_each_provider_has_its_own_address_and_key_from_the_environment() -> None:
    assert address(Model("m"), ENVIRONMENT) == Address("openai", "http://127.0.0.1:1/v1", "key-1")
    assert address(Model("m", provider="anthropic"), ENVIRONMENT) == Address("anthropic", "http://127.0.0.1:2", "key-2")


def test_each_protocol_of_openai_has_its_endpoint() -> None:
    responses = address(Model("m", api="responses"), ENVIRONMENT)

    assert (responses.provider, responses.key, responses.api) == ("openai", "key-1", "responses")
    assert endpoint(responses).dialect is openai_responses


@pytest.mark.parametrize("knobs", [{"api": "smoke"}, {"api": "responses", "provider": "anthropic"}])
def test_a_protocol_that_a_provider_does_not_speak_is_refused(knobs: dict[str, Any]) -> None:
    with pytest.raises(WiringError, match=r"`chat` and `responses`|of `openai` only"):
        Model("m", **knobs)


def test_a_models_own_address_and_key_come_first() -> None:
    own = Model("m", base_url="http://127.0.0.1:3/v1", api_key="own")

    assert address(own, ENVIRONMENT) == Address("openai", "http://127.0.0.1:3/v1", "own")


def test_the_environments_key_is_not_sent_to_another_server() -> None:
    assert address(Model("m", base_url="http://127.0.0.1:3/v1"), ENVIRONMENT).key == "none"


def test_a_server_of_ones_own_needs_no_key() -> None:
    assert address(Model("m"), Settings(base_url="http://127.0.0.1:1/v1")).key == "none"


@pytest.mark.parametrize(
    ("provider", "variable"), [("openai", "BIG_BRAIN_API_KEY"), ("anthropic", "BIG_BRAIN_ANTHROPIC_API_KEY")]
)
def test_a_missing_key_names_its_variable(provider: str, variable: str) -> None:
    with pytest.raises(WiringError, match=f"model `m` has no key; set `{variable}` or the model's `api_key`"):
        connect(Model("m", provider=provider), Settings())


def test_what_answers_by_itself_needs_no_connection() -> None:
    fixed = FixedModel("hello")

    assert connect(fixed, Settings()) is fixed


def test_an_endpoint_is_made_once() -> None:
    at = Address("anthropic", "http://127.0.0.1:9", "test-key")

    assert endpoint(at) is endpoint(at)
    assert endpoint(at) is not endpoint(at._replace(key="other-key"))


def test_connecting_imports_no_sdk_and_asking_only_its_own() -> None:
    script = """
import sys
from bigbrain.models import Model, connect, load
from bigbrain.settings import Settings
connect(Model("m", provider="anthropic", api_key="k"), Settings())
print("openai" in sys.modules, "anthropic" in sys.modules)
load("anthropic")
print("openai" in sys.modules, "anthropic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False", "False", "True"]
