from __future__ import annotations

import pytest

from bigbrain.errors import WiringError
from bigbrain.models import FixedModel, Model, Models, model

SMALL, LARGE = Model("small", temperature=0.3), Model("large")


@pytest.fixture
def models() -> Models:
    models = Models()
    models.add(SMALL, ("cheap", "fast"))
    models.add(LARGE, ("smart", "fast"))
    return models


def test_the_first_model_with_all_the_tags_is_found(models: Models) -> None:
    assert models.resolve(model("fast")) == SMALL
    assert models.resolve(model("fast", "smart")) == LARGE
    assert models.resolve(model("fast", "cheap")) == SMALL


def test_tags_given_later_add_to_the_models_tags(models: Models) -> None:
    models.add(SMALL, "tiny")

    assert models.resolve(model("tiny", "fast")) == SMALL
    assert models.tags == ("cheap", "fast", "smart", "tiny")


def test_registering_a_tag_again_does_not_take_it_away(models: Models) -> None:
    models.add(Model("late"), ("cheap",))

    assert models.resolve(model("cheap")) == SMALL


def test_an_unknown_tag_names_the_known_ones(models: Models) -> None:
    with pytest.raises(WiringError, match="no model has the tags `slow`; known tags: `cheap`, `fast`, `smart`"):
        models.resolve(model("slow"))


def test_overrides_change_a_copy(models: Models) -> None:
    assert models.resolve(model("cheap", temperature=0.9)) == Model("small", temperature=0.9)
    assert models.resolve(model("cheap")) == SMALL


def test_no_model_at_all_is_a_fault_of_the_wiring() -> None:
    with pytest.raises(WiringError, match="no model is registered"):
        Models().resolve(model())


def test_the_ladder_takes_the_nearest(models: Models) -> None:
    agent, flow, group = Model("agent"), Model("flow"), Model("group")

    assert models.ladder(agent, flow, group) == agent
    assert models.ladder(None, flow, group) == flow
    assert models.ladder(None, None, group) == group


def test_the_ladder_ends_with_the_default_and_then_the_first_added(models: Models) -> None:
    assert models.ladder(None, None) == SMALL
    models.add(LARGE, default=True)
    assert models.ladder(None, None) == LARGE
    assert Models().ladder(None, None) is None


def test_an_override_without_tags_is_a_rung_of_its_own(models: Models) -> None:
    hot = model(temperature=0.9)

    assert models.ladder(hot, None) == Model("small", temperature=0.9)
    assert models.ladder(hot, model("smart")) == Model("large", temperature=0.9)
    assert models.ladder(hot, model(temperature=0.1, max_tokens=5)) == Model("small", temperature=0.9, max_tokens=5)
    assert Models().ladder(hot) is None


def test_the_ladder_resolves_tags(models: Models) -> None:
    assert models.ladder(None, model("smart"), SMALL) == LARGE
    with pytest.raises(WiringError, match="`nope`"):
        models.ladder(model("nope"), SMALL)


def test_a_fixed_model_stands_for_a_model_whatever_is_overridden() -> None:
    models = Models()
    models.add(FixedModel("hello"), "demo")

    assert models.resolve(model("demo", temperature=0.9)) == FixedModel("hello")


def test_fallbacks_are_looked_up_with_the_model(models: Models) -> None:
    first = Model("first", fallbacks=(model("smart"), model("cheap", temperature=0.1), FixedModel("sorry")))

    assert models.resolve(first) == Model(
        "first", fallbacks=(LARGE, Model("small", temperature=0.1), FixedModel("sorry"))
    )
    assert models.ladder(None, first) == models.resolve(first)


def test_a_fallbacks_own_fallbacks_stand_in_the_same_line(models: Models) -> None:
    models.add(Model("middle", fallbacks=(model("cheap"),)), "middle")

    assert models.resolve(Model("first", fallbacks=(model("middle"), LARGE))) == Model(
        "first", fallbacks=(Model("middle"), SMALL, LARGE)
    )


def test_two_models_may_stand_in_for_each_other() -> None:
    models = Models()
    models.add(Model("a", fallbacks=(model("b"),)), "a")
    models.add(Model("b", fallbacks=(model("a"),)), "b")

    assert models.resolve(model("a")) == Model("a", fallbacks=(Model("b"),))
    assert models.resolve(model("b")) == Model("b", fallbacks=(Model("a"),))


def test_an_unknown_tag_of_a_fallback_names_the_model_and_the_known_tags(models: Models) -> None:
    models.add(Model("third", fallbacks=(model("nope"),)), "third")

    with pytest.raises(WiringError) as caught:
        models.ladder(Model("first", fallbacks=(model("third"),)))

    assert caught.value.faults == (
        "a fallback of model `third`: no model has the tags `nope`; known tags: `cheap`, `fast`, `smart`, `third`",
    )


def test_how_an_answer_is_wanted_holds_for_fallbacks_and_where_it_comes_from_does_not(models: Models) -> None:
    models.add(Model("first", fallbacks=(LARGE, FixedModel("sorry"))), "first")
    asked = models.resolve(model("first", temperature=0.9, stop=("END",), base_url="http://127.0.0.1:1", retries=0))

    assert asked == Model(
        "first",
        temperature=0.9,
        stop=("END",),
        base_url="http://127.0.0.1:1",
        retries=0,
        fallbacks=(Model("large", temperature=0.9, stop=("END",)), FixedModel("sorry")),
    )


def test_a_use_may_have_fallbacks_of_its_own(models: Models) -> None:
    assert models.resolve(model("cheap", fallbacks=(model("smart"),))) == SMALL.having(fallbacks=(LARGE,))
    assert models.ladder(model(fallbacks=[LARGE]), SMALL) == SMALL.having(fallbacks=(LARGE,))
