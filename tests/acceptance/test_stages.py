"""Acceptance 8.4 and 8.5: the stages of an answer, and what of it is live."""

from __future__ import annotations

import threading

import pytest

from bigbrain import Brain, Chat, Flow, Request, Turn, agent, respond
from bigbrain.events import Delta, Failed, Finished
from bigbrain.flows import All, Group, One, Select
from bigbrain.testing import Client, Says, ScriptedModel
from tests.acceptance.making import answer, gated, heard_live, saying


def claiming(text: str, streams: list[bool]) -> Flow:
    """A flow that streams where it may, and notes whether it could."""

    @agent
    def claim(turn: Turn, chat: Chat) -> None:
        stream = turn.stream()
        streams.append(stream is not None)
        if stream is None:
            turn.reply(text)
        else:
            stream.write(text)

    return Flow(claim)


@pytest.mark.parametrize("group", [All, One, Group])
def test_a_respond_inside_a_group_has_no_client_and_the_next_one_outside_delivers(group) -> None:
    """Changed: every run has a log of its answer, so the places without a client are the groups' members."""
    member = saying("first") >> respond >> saying("second")

    assert answer(group(member) >> respond) == "first\n\nsecond"


def test_a_buffered_reply_reaches_the_client_in_one_piece() -> None:
    with Client(Brain("b", saying("one two three") >> saying() >> respond)) as client:
        assert client.chat("go").deltas == ("one two three",)


def test_three_stages_arrive_in_order_live_and_in_the_joined_answer() -> None:
    first, second = threading.Event(), threading.Event()

    def after(gate: threading.Event, text: str) -> Flow:
        @agent
        def handler(turn: Turn, chat: Chat) -> None:
            assert gate.wait(5), "the client has not got the stage before"
            turn.reply(text)

        return Flow(handler)

    flow = saying("one") >> respond >> after(first, "two") >> respond >> after(second, "three") >> respond

    assert heard_live(flow, ("one", first), ("two", second)) == "one\n\ntwo\n\nthree"
    assert answer(flow) == "one\n\ntwo\n\nthree"


def test_the_answer_to_an_empty_conversation_is_empty_and_no_crash() -> None:
    with Client(Brain("b", saying())) as client:
        got = client.chat(Request())

    assert (got.text, got.stop) == ("", "end")


def test_a_respond_after_a_select_lets_its_member_stream() -> None:
    streams: list[bool] = []
    rooms = Select(claiming("live", streams).named("a"), default="a")

    assert answer(saying("before") >> rooms >> respond) == "before\n\nlive"
    assert streams == [True]


def test_the_text_of_a_groups_member_is_delivered_by_the_next_respond() -> None:
    assert answer(Group(saying("said in the group")) >> saying() >> respond) == "said in the group"


def test_what_stands_before_each_respond_may_stream_else_the_last_and_names_hide_nothing() -> None:
    staged: list[bool] = []
    one, two, three, last = (claiming(text, staged).named(text) for text in ("one", "two", "three", "last"))
    answer(((one >> two).named("both") >> respond >> three.named("again") >> respond).named("all") >> last)
    plain: list[bool] = []
    first, second = claiming("x", plain), claiming("y", plain)
    answer((first >> second.named("end")).named("all"))

    assert staged == [False, True, True, False]
    assert plain == [False, True]


def test_a_default_agent_before_a_respond_streams_token_by_token() -> None:
    heard = threading.Event()
    model = ScriptedModel(Says(chunks=gated("begun", heard, " and done")()))

    assert heard_live(Flow(model=model) >> respond, ("begun", heard)) == "begun and done"


def test_two_stages_each_stream_live() -> None:
    first, second = threading.Event(), threading.Event()
    models = [
        ScriptedModel(Says(chunks=gated("a", first, "b")())),
        ScriptedModel(Says(chunks=gated("c", second, "d")())),
    ]
    flow = Flow(model=models[0]) >> respond >> Flow(model=models[1]) >> respond

    assert heard_live(flow, ("a", first), ("c", second)) == "ab\n\ncd"


def test_two_agents_of_one_flow_never_stream_and_both_replies_are_delivered() -> None:
    streams: list[bool] = []
    agents = [claiming(text, streams).body.agents[0] for text in ("one", "two")]

    assert answer(Flow(*agents) >> respond) == "one\n\ntwo"
    assert streams == [False, False]


def test_a_handler_that_streams_then_fails_without_closing_does_not_hang_the_client() -> None:
    @agent
    def leave(turn: Turn, chat: Chat) -> None:
        stream = turn.stream()
        assert stream is not None
        stream.write("begun")
        raise ValueError("left")

    with Client(Brain("b", Flow(leave) >> respond)) as client:
        events = client.ask("go").events

    assert [event.text for event in events if isinstance(event, Delta)] == ["begun"]
    assert isinstance(events[-1], Failed)


def test_a_client_that_streams_and_one_that_waits_get_the_same_text_where_the_seed_gave_two() -> None:
    """Inverted: in the seed, replies before a stream were lost, stages had no separator, a reply beside a stream
    was dropped, and a stage inside a member counted as told though nobody had got it.
    """
    streams: list[bool] = []

    @agent
    def both(turn: Turn, chat: Chat) -> None:
        with turn.stream() as stream:  # type: ignore[union-attr]
            stream.write("streamed")
        turn.reply("replied")

    member = (saying("in a member") >> respond >> saying("after it")).named("m")
    flow = (
        saying("earlier") >> Flow(both) >> respond >> Select(member, default="m") >> claiming("x", streams) >> respond
    )
    with Client(Brain("b", flow)) as client:
        got = client.chat("go")

    expected = "earlier\n\nstreamed\n\nreplied\n\nin a member\n\nafter it\n\nx"
    assert "".join(got.deltas) == got.text == expected
    assert [isinstance(event, Finished) for event in got.events].count(True) == 1
