from __future__ import annotations

import pytest

from bigbrain.errors import WiringError
from bigbrain.messages import Request, ToolSpec, user
from bigbrain.models import Model, ModelRef, compose, model


def test_having_gives_a_changed_copy() -> None:
    plain = Model("m", temperature=0.3)

    assert plain.having(temperature=0.9, max_tokens=10) == Model("m", temperature=0.9, max_tokens=10)
    assert plain.temperature == 0.3


def test_a_key_is_never_shown() -> None:
    assert "canary" not in repr(Model("m", api_key="canary"))
    assert "canary" not in str(Model("m", api_key="canary"))


@pytest.mark.parametrize(
    ("knobs", "fault"),
    [
        ({"name": ""}, "a model needs a `name`"),
        ({"provider": "acme"}, "no provider `acme`; there are `openai` and `anthropic`"),
        ({"timeout": 0}, "`timeout` is 0; give seconds above 0"),
        ({"retries": -1}, "`retries` is -1; give 0 or more"),
        ({"pause": -1}, "`pause` is -1; give seconds, 0 or more"),
        ({"max_tokens": 0}, "`max_tokens` is 0; give 1 or more"),
        ({"max_concurrent": 0}, "`max_concurrent` is 0; give 1 or more, or None"),
        ({"fallbacks": "fast"}, "`fallbacks` is 'fast'; give a list"),
        ({"fallbacks": Model("x")}, r"`fallbacks` is Model\(.*; give a list"),
        ({"fallbacks": ["fast"]}, r"its fallback 'fast' is no model; give a `Model` or `model\(…\)`"),
    ],
)
def test_impossible_values_are_faults_of_the_wiring(knobs: dict[str, object], fault: str) -> None:
    with pytest.raises(WiringError, match=fault):
        Model("m").having(**knobs)


def test_fallbacks_may_be_given_as_a_list() -> None:
    assert Model("m", fallbacks=[Model("n")]) == Model("m", fallbacks=(Model("n"),))
    assert hash(Model("m", fallbacks=[Model("n")])) == hash(Model("m", fallbacks=(Model("n"),)))


def test_a_reference_holds_tags_and_overrides() -> None:
    assert model("cheap", "fast", temperature=0.2) == ModelRef(("cheap", "fast"), {"temperature": 0.2})


def test_a_request_goes_out_with_the_models_knobs_and_the_askers_limits() -> None:
    tool = ToolSpec("look")
    asked = Request(
        model="the brain",
        messages=(user("hi"),),
        tools=(tool,),
        tool_choice="any",
        temperature=2.0,
        top_k=4,
        max_tokens=50,
        stop=("X",),
    )
    knobs = Model("m", temperature=0.5, max_tokens=99, top_p=0.9, stop=("END",), think="low", extra={"seed": 7})

    assert compose(knobs, asked) == Request(
        model="m",
        messages=(user("hi"),),
        tools=(tool,),
        tool_choice="any",
        stream=True,
        temperature=0.5,
        max_tokens=50,
        top_p=0.9,
        stop=("END", "X"),
        think="low",
        extra={"openai": {"seed": 7}},
    )
