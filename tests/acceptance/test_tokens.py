"""Acceptance 8.8: who pays for which tokens."""

from __future__ import annotations

import threading

import pytest

from bigbrain import Brain, Chat, Flow, Turn, Usage, agent, respond
from bigbrain.flows import All, Group, One
from bigbrain.testing import Client, Says, ScriptedModel
from tests.acceptance.making import PATIENCE


def costs(input: int, output: int) -> ScriptedModel:
    return ScriptedModel(Says("x", usage=Usage(input, output)), repeat=True)


def test_a_chain_sums_the_tokens_of_its_flows() -> None:
    flow = Flow(model=costs(10, 1)) >> Flow(model=costs(20, 2)) >> respond >> Flow(model=costs(40, 4)) >> respond
    with Client(Brain("b", flow)) as client:
        assert client.chat("go").usage == Usage(70, 7)


@pytest.mark.parametrize("group", [Group, All])
@pytest.mark.parametrize("protocol", ["chat", "record"])
def test_a_group_sums_the_tokens_of_all_its_members(group, protocol: str) -> None:
    flow = group(Flow(model=costs(10, 1)), Flow(model=costs(20, 2))) >> respond
    with Client(Brain("b", flow)) as client:
        usage = client.chat("go", run_id="r").usage
        [step] = client.record("r").steps

    assert (usage if protocol == "chat" else Usage(**step["usage"])) == Usage(30, 3)


def test_one_counts_what_a_stopped_loser_had_spent() -> None:
    spent, decided = threading.Event(), threading.Event()

    @agent
    def loser(turn: Turn, chat: Chat) -> None:
        chat.ask("x").text
        spent.set()
        decided.wait(PATIENCE)

    @agent
    def winner(turn: Turn, chat: Chat) -> None:
        assert spent.wait(PATIENCE)
        turn.reply(chat.ask("x"))

    with Client(
        Brain("b", One(Flow(loser, model=costs(10, 1)), Flow(winner, model=costs(20, 2))) >> respond)
    ) as client:
        assert client.chat("go").usage == Usage(30, 3)
    decided.set()


def test_the_end_of_a_flow_tells_what_it_spent_itself_also_of_members_that_overlap() -> None:
    """Inverted for members: the seed takes differences of one tally, so that overlapping members count each other's."""
    meeting = threading.Barrier(2, timeout=PATIENCE)

    @agent
    def meet(turn: Turn, chat: Chat) -> None:
        meeting.wait()
        turn.reply(chat.ask("x"))
        meeting.wait()

    group = All(Flow(meet, model=costs(10, 1)).named("one"), Flow(meet, model=costs(20, 2)).named("two")).named("all")
    flow = Flow(model=costs(40, 4)).named("before") >> group >> respond
    with Client(Brain("b", flow)) as client:
        client.chat("go", run_id="r")
        ends = {event.flow: event.detail["usage"] for event in client.trace("r") if event.kind == "flow.end"}

    assert ends["b/before"] == {"input": 40, "output": 4}
    assert ends["b/all/one"] == {"input": 10, "output": 1}
    assert ends["b/all/two"] == {"input": 20, "output": 2}
