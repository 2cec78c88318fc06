"""Acceptance 8.2 and 8.3: Select, All, One and Group."""

from __future__ import annotations

import threading

from bigbrain import Chat, Flow, Turn, agent, respond
from bigbrain.flows import All, Group, One, Select
from tests.acceptance.making import PATIENCE, answer, looking, saying, told


def test_without_a_selection_nothing_runs_and_the_conversation_passes_through() -> None:
    seen: list[tuple[str, ...]] = []
    answer(saying("before") >> Select(saying("x").named("a"), saying("y").named("b")) >> looking(seen))

    assert seen == [("go", "before")]


def test_respond_passes_the_conversation_on_and_is_told() -> None:
    seen: list[tuple[str, ...]] = []
    events = told(saying("one") >> respond >> looking(seen) >> saying("two") >> respond)

    assert seen == [("go", "one")]
    assert [event.kind for event in events].count("respond") == 2
    assert all(event.run == "r" and event.at > 0 for event in events)


def test_all_keeps_the_order_of_declaration_though_its_first_member_is_the_slowest() -> None:
    others_are_done = threading.Event()

    @agent
    def slow(turn: Turn, chat: Chat) -> None:
        assert others_are_done.wait(PATIENCE)
        turn.reply("slow")

    @agent
    def quick(turn: Turn, chat: Chat) -> None:
        turn.reply("quick")
        others_are_done.set()

    assert answer(All(Flow(slow), Flow(quick)) >> respond) == "slow\n\nquick"


def test_no_member_of_one_may_stream_and_the_winners_text_reaches_the_client_through_respond() -> None:
    streams: list[object] = []
    won = threading.Event()

    @agent
    def winner(turn: Turn, chat: Chat) -> None:
        streams.append(turn.stream())
        turn.reply("won")

    @agent
    def loser(turn: Turn, chat: Chat) -> None:
        streams.append(turn.stream())
        turn.reply("lost")
        won.wait(PATIENCE)

    assert answer(One(Flow(winner), Flow(loser)) >> respond) == "won"
    won.set()
    assert set(streams) == {None}


def test_what_wins_an_inner_race_and_loses_the_outer_one_leaves_nothing() -> None:
    inner_won, outer_won = threading.Event(), threading.Event()

    @agent
    def hold(turn: Turn, chat: Chat) -> None:
        inner_won.set()
        outer_won.wait(PATIENCE)

    @agent
    def later(turn: Turn, chat: Chat) -> None:
        assert inner_won.wait(PATIENCE)
        turn.reply("outer")
        turn.select("right")

    inner = One(saying("inner", select="wrong"))
    rooms = Select(saying("wrong").named("wrong"), saying("right").named("right"))

    assert answer(One(inner >> Flow(hold), Flow(later)) >> rooms >> respond) == "outer\n\nright"
    outer_won.set()


def test_group_merges_the_replies_of_all_its_members() -> None:
    seen: list[tuple[str, ...]] = []
    text = answer(Group(saying("a"), saying("b", "c")) >> looking(seen) >> respond)

    assert sorted(text.split("\n\n")) == ["a", "b", "c"]
    assert sorted(seen[0]) == ["a", "b", "c", "go"]
