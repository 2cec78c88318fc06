"""Durable flows: what a worker's death costs, and what it does not."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import fakeredis
import msgspec
import pytest

from bigbrain import Brain, Chat, Flow, Turn, WiringError, agent, respond, tool
from bigbrain.agents import Agent
from bigbrain.engine.marks import is_mark
from bigbrain.errors import ModelBroke
from bigbrain.events import Closed, Delta, Event, Failed, Finished, Opened, checked, collect, replay
from bigbrain.flows import All, Group, One, Select
from bigbrain.messages import Request, Response, Text, ToolCall, Usage, user
from bigbrain.progress import attempts_of
from bigbrain.resuming import Continuing
from bigbrain.testing import Client, Says, ScriptedModel
from tests.engine.acting import until


class Counting:
    """Makes agents that count how often they act."""

    def __init__(self) -> None:
        self.acted: list[str] = []

    def says(self, *texts: str, name: str = "", select: str = "") -> Agent:
        @agent(name=name or (texts[0] if texts else "silent"))
        def act(turn: Turn, chat: Chat) -> None:
            self.acted.append(name or texts[0])
            for text in texts:
                turn.reply(iter(text))
            if select:
                turn.select(select)

        return act


@pytest.fixture
def counting() -> Counting:
    return Counting()


def durable(*agents: Agent, name: str = "kept") -> Flow:
    return Flow(*agents).named(name).durable()


@pytest.mark.parametrize("done", [False, True])
def test_a_client_notices_nothing_of_a_worker_that_died(counting: Counting, done: bool) -> None:
    with Client(Brain("b", durable(counting.says("one two", "three")))) as client:
        client.crash_at("0", done=done)
        answer = client.chat("go")

    assert answer.text == "one two\n\nthree"
    assert len(counting.acted) == 1 + done


def test_a_completed_step_is_not_done_again(counting: Counting) -> None:
    flow = (Flow(counting.says("a")) >> Flow(counting.says("b")) >> Flow(counting.says("c"))).named("x").durable()
    with Client(Brain("b", flow >> respond)) as client:
        client.crash_at("1", done=True)
        answer = client.chat("go")

    assert answer.text == "a\n\nb\n\nc"
    assert counting.acted == ["a", "b", "b", "c"]


def test_what_was_delivered_before_is_not_delivered_again(counting: Counting) -> None:
    flow = (Flow(counting.says("one")) >> respond >> Flow(counting.says("two")) >> respond).named("x").durable()
    with Client(Brain("b", flow)) as client:
        client.crash_at("2", done=True)
        answer = client.chat("go")

    assert answer.text == "one\n\ntwo"
    list(checked(answer.events))


def moody(*texts: str) -> tuple[Agent, fakeredis.FakeRedis]:
    """An agent that says something else each time, and the server whose clients have it before the turn ends."""
    left, server = iter(texts), fakeredis.FakeRedis(server=fakeredis.FakeServer(), max_connections=1000)

    @agent
    def says_next(turn: Turn, chat: Chat) -> None:
        log = f"bb:run:{turn.run_id}:log"
        before = server.xinfo_stream(log)["last-generated-id"]

        def pieces() -> Iterator[str]:
            yield next(left)
            until(lambda: server.xinfo_stream(log)["last-generated-id"] != before)

        turn.reply(pieces())

    return says_next, server


def test_an_answer_that_comes_out_otherwise_ends_with_an_error_and_the_run_goes_on() -> None:
    says_next, server = moody("first try", "second try")
    flow = durable(says_next) >> respond >> Flow(Counting().says("after"))
    with Client(Brain("b", flow), server=server) as client:
        client.crash_at("0", done=True)
        answer = client.ask("go", run_id="r")
        record = client.record("r")
        again = client.ask("go", run_id="r")

    assert answer.failed is not None
    assert (answer.failed.code, answer.failed.retryable) == ("run_interrupted", True)
    assert answer.text in ("", "first try")
    assert record.status == "done"
    # the same request under the same id has the whole answer of the run that went on
    assert (again.failed, again.text) == (None, "second try")


def test_what_comes_after_an_answer_that_came_out_otherwise_is_told_as_well() -> None:
    first = durable(Counting().says("one")) >> respond
    says_next, server = moody("two", "2")
    flow = first >> Flow(says_next).named("y").durable() >> respond >> Flow(Counting().says("three")) >> respond
    with Client(Brain("b", flow), server=server) as client:
        client.crash_at("2", done=True)
        answer = client.ask("go", run_id="r")
        again = client.ask("go", run_id="r")
        third = client.ask("go", run_id="r")

    assert answer.failed is not None
    assert again.text == "one\n\n2\n\nthree"
    list(checked(again.events))
    assert third.text == again.text


def test_an_answer_that_comes_out_otherwise_twice_is_the_last_one() -> None:
    says_next, server = moody("a", "b", "c")
    with Client(Brain("b", durable(says_next) >> respond), server=server) as client:
        client.crash_at("0", done=True, times=2)
        answer = client.ask("go", run_id="r")
        client.record("r")
        again = client.ask("go", run_id="r")

    assert answer.failed is not None
    assert again.text == "c"


@pytest.mark.parametrize(("before_mark", "told"), [(None, Opened), (1, Failed), (0, Opened)])
def test_whoever_has_a_part_that_was_taken_back_hears_so_wherever_it_goes_on(
    before_mark: int | None, told: type[Event]
) -> None:
    says_next, server = moody("first try", "second try")
    with Client(Brain("b", durable(says_next) >> respond), server=server) as client:
        client.crash_at("0", done=True)
        client.ask("go", run_id="r")
        client.record("r")
        log = client.reception.runs.store.client.xrange("bb:run:r:log")
        [mark] = [int(id.decode().split("-")[0]) for id, fields in log if is_mark(fields[b"e"])]
        # entry 1 opens the log and stays
        with client.reception.hub.follow("r", 1 if before_mark is None else mark - before_mark) as follower:
            follower.post("again")
            events = follower.read(5)

    assert isinstance(events[0], told)
    assert follower.over


def test_a_client_that_has_nothing_yet_gets_the_answer_that_came_out_otherwise() -> None:
    says_next, server = moody("first try", "second try")
    with Client(Brain("b", durable(says_next) >> respond), server=server) as client:
        client.crash_at("0", done=True)
        asked = Request(messages=(user("go"),))
        with client.reception.receive(asked, "r", 0.0) as (started, follower, _):
            follower.whole = True
            events = [started]
            while not follower.over:
                told = follower.read(10)
                if follower.anew:
                    follower.anew = False
                    del events[1:]
                events += told

    assert collect(events).text == "second try"


def test_a_flow_that_is_not_durable_is_not_run_again(counting: Counting) -> None:
    with Client(Brain("b", durable(counting.says("a")) >> Flow(counting.says("b")))) as client:
        client.crash_at("1")
        answer = client.ask("go")

    assert answer.failed is not None
    assert answer.failed.code == "run_interrupted"


def test_a_step_that_fails_is_run_again_as_often_as_it_may(counting: Counting) -> None:
    tries: list[int] = []

    @agent
    def flaky(turn: Turn, chat: Chat) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise ModelBroke("the first time")
        turn.reply("the second time")

    with Client(Brain("b", Flow(flaky).named("x").durable(retries=1))) as client:
        answer = client.chat("go")
        steps = client.record(answer.run_id).steps

    assert answer.text == "the second time"
    assert [step["result"] for step in steps] == ["model_broke", "done"]


def test_a_step_that_fails_too_often_fails_with_its_last_error() -> None:
    @agent
    def broken(turn: Turn, chat: Chat) -> None:
        raise ModelBroke("always")

    with Client(Brain("b", Flow(broken).named("x").durable(retries=1))) as client:
        answer = client.ask("go")

    assert answer.failed is not None
    assert answer.failed.code == "model_broke"


def test_a_run_that_lasts_longer_than_its_time_to_live_is_given_up() -> None:
    @agent
    def broken(turn: Turn, chat: Chat) -> None:
        raise ModelBroke("always")

    with Client(Brain("b", Flow(broken).named("x").durable(retries=9, ttl=0.5))) as client:
        answer = client.ask("go")

    assert answer.failed is not None
    assert answer.failed.code == "run_expired"


def test_a_settled_round_of_tool_calls_is_not_repeated() -> None:
    ran: list[str] = []

    @tool
    def look(where: str) -> str:
        """Looks somewhere."""
        ran.append(where)
        return "seen"

    @agent
    def house(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.resolve(turn.last, tools=[look]))

    call = ToolCall("c1", "look", '{"where": "door"}')
    model = ScriptedModel(Says(calls=(call,)), "it is shut", "it is shut")
    with Client(Brain("b", Flow(house, model=model).named("house").durable())) as client:
        client.crash_at("0", done=True)
        answer = client.chat("is the door open?")

    assert answer.text == "it is shut"
    assert ran == ["door"]
    assert len(model.asked) == 3
    assert model.asked[2].messages[-1].results[0].text == "seen"


@pytest.mark.parametrize("group", [All, Group])
def test_the_finished_members_of_a_group_are_not_done_again(group, counting: Counting) -> None:
    flow = group(Flow(counting.says("a")), Flow(counting.says("b"))).named("both").durable()
    with Client(Brain("b", flow >> respond)) as client:
        client.crash_at("0", done=True)
        answer = client.chat("go")

    assert sorted(counting.acted) == ["a", "b"]
    assert sorted(answer.text.split("\n\n")) == ["a", "b"]


def test_a_group_keeps_the_order_of_arrival_when_it_goes_on(counting: Counting) -> None:
    first = Flow(counting.says("1")) >> Flow(counting.says("2")) >> Flow(counting.says("3"))
    with Client(Brain("b", Group(first, Flow(counting.says("x"))).named("g").durable() >> respond)) as client:
        client.crash_at("0", done=True)
        answer = client.chat("go")
    order = [text for text in answer.text.split("\n\n") if text != "x"]

    assert order == ["1", "2", "3"]
    assert len(counting.acted) == 4


def test_a_race_that_was_won_is_not_run_again(counting: Counting) -> None:
    flow = One(Flow(counting.says("only"))).named("race").durable()
    with Client(Brain("b", flow >> respond)) as client:
        client.crash_at("0", done=True)
        answer = client.chat("go")

    assert answer.text == "only"
    assert counting.acted == ["only"]


def test_a_chosen_member_goes_on_without_choosing_again(counting: Counting) -> None:
    select = Select(Flow(counting.says("left")).named("left"), Flow(counting.says("right")).named("right"))
    flow = (Flow(counting.says("router", name="router", select="right")) >> select).named("x").durable()
    with Client(Brain("b", flow >> respond)) as client:
        client.crash_at("1/right/0")
        answer = client.chat("go")

    assert answer.text == "router\n\nright"
    assert counting.acted == ["router", "right"]


def test_spread_members_survive_as_well(counting: Counting) -> None:
    flow = All(Flow(counting.says("a")), Flow(counting.says("b")), spread=True).named("both").durable()
    with Client(Brain("b", flow >> respond)) as client:
        client.crash_at("0/1/0", done=True)
        answer = client.chat("go")

    assert answer.text == "a\n\nb"
    assert counting.acted.count("a") == 1


def test_a_poisoned_step_is_given_up_after_three_workers(counting: Counting) -> None:
    with Client(Brain("b", durable(counting.says("x")))) as client:
        client.crash_at("0", times=3)
        answer = client.ask("go")

    assert answer.failed is not None
    assert answer.failed.code == "run_failed"
    assert counting.acted == []


@pytest.mark.parametrize(("kept", "acted"), [(True, ["a"]), (False, ["a", "a"])])
def test_a_run_that_failed_goes_on_from_its_last_step_or_begins_anew_when_nothing_of_it_is_durable(
    counting: Counting, kept: bool, acted: list[str]
) -> None:
    fails = iter([True, False])

    @agent
    def once(turn: Turn, chat: Chat) -> None:
        turn.reply("half")
        if next(fails):
            raise ModelBroke("once")

    flow = (Flow(counting.says("a")) >> respond >> Flow(once) >> respond).named("x")
    with Client(Brain("b", flow.durable() if kept else flow)) as client:
        failed = client.ask("go", run_id="r")
        answer = client.chat("go", run_id="r")
        record = client.record("r")

    assert failed.failed is not None
    assert answer.text == "a\n\nhalf"
    assert record.status == "done"
    assert counting.acted == acted
    assert [(one.path, one.result) for one in attempts_of(record)][-1] == ("2", "done")


def test_what_runs_in_the_background_is_not_begun_anew_when_the_client_has_its_answer(counting: Counting) -> None:
    fails = iter([True, False])

    @agent
    def once(turn: Turn, chat: Chat) -> None:
        if next(fails):
            raise ModelBroke("once")

    with Client(Brain("b", Flow(counting.says("a")) >> respond >> Flow(once))) as client:
        client.chat("go", run_id="r")
        assert client.record("r").status == "failed"
        assert client.reception.runs.retry("r")
        assert client.record("r").status == "done"
        again = client.chat("go", run_id="r")

    assert again.text == "a"
    assert counting.acted == ["a"]


def changed(**terms: int) -> tuple[Brain, Brain, list[str]]:
    """A brain whose second step fails, the next version of it, in which the first flow is another, and what was done."""
    done: list[str] = []

    @agent
    def breaks(turn: Turn, chat: Chat) -> None:
        raise ModelBroke

    @agent
    def tells(turn: Turn, chat: Chat) -> None:
        done.append("second")
        turn.reply("done")

    counting = Counting()
    before = (Flow(counting.says("a")).named("old") >> Flow(breaks)).named("x").durable(**terms)
    after = (Flow(counting.says("a")).named("new") >> Flow(tells)).named("x").durable(**terms)
    return Brain("b", before >> respond), Brain("b", after >> respond), done


def test_a_run_of_another_structure_ends_with_an_error() -> None:
    before, after, done = changed()
    server = fakeredis.FakeRedis()
    with Client(before, server=server) as client:
        assert client.ask("go", run_id="r").failed is not None
    with Client(after, server=server) as client:
        failed = client.ask("go", run_id="r").failed

    assert failed is not None
    assert failed.code == "brain_changed"
    assert done == []


def test_a_forward_compatible_run_goes_on_where_its_next_step_is_in_the_new_structure() -> None:
    before, after, done = changed(forward_compatible=True)
    server = fakeredis.FakeRedis()
    with Client(before, server=server) as client:
        assert client.ask("go", run_id="r").failed is not None
    with Client(after, server=server) as client:
        answer = client.chat("go", run_id="r")

    assert answer.text == "a\n\ndone"
    assert done == ["second"]


@pytest.mark.parametrize(("waits", "status"), [(True, "done"), (False, "failed")])
def test_a_run_whose_flow_is_not_served_waits_for_it_if_it_is_to(waits: bool, status: str) -> None:
    before, after, _ = changed(forward_compatible=True, resume_on_reregister=waits)
    server = fakeredis.FakeRedis()
    with Client(before, server=server) as client:
        assert client.ask("go", run_id="r").failed is not None
    with Client(Brain("other", Flow(model=ScriptedModel())), server=server) as client:
        runs = client.reception.runs
        runs.retry("r")
        for _ in range(3):
            runs.wake()
        if not waits:
            assert client.record("r").status == "failed"
    with Client(after, server=server) as client:
        client.reception.runs.wake()
        assert client.record("r").status == status


def test_a_message_that_comes_to_a_process_without_the_flow_ends_no_run_that_waits_for_it() -> None:
    before, after, _ = changed(forward_compatible=True, resume_on_reregister=True, retries=1)
    server = fakeredis.FakeRedis()
    with Client(before, server=server) as client:
        assert client.ask("go", run_id="r").failed is not None
    with Client(Brain("other", Flow(model=ScriptedModel())), server=server) as client:
        client.reception.runs.store.retry("r")
        waiting = client.reception.runs.store.record("r")
        assert waiting is not None
        # as a message of the version before that was in the queue still
        assert not client.engine.run_step("r", waiting.cursor, waiting.attempt)
        again = client.reception.runs.store.record("r")
        assert again is not None
    with Client(after, server=server) as client:
        record = client.record("r")

    assert (again.status, again.attempt, again.error) == ("running", waiting.attempt + 1, None)
    assert record.status == "done"


def test_the_order_of_retries_and_deaths_does_not_matter_to_the_text() -> None:
    tries: list[int] = []

    @agent
    def stumbles(turn: Turn, chat: Chat) -> None:
        def pieces() -> Iterator[str]:
            yield "one "
            tries.append(1)
            if len(tries) < 2:
                raise ModelBroke("in the middle")
            yield "two"

        turn.reply(pieces())

    with Client(Brain("b", Flow(stumbles).named("x").durable(retries=1))) as client:
        client.crash_at("0", done=True)
        answer = client.ask("go")

    assert answer.failed is None
    assert answer.text == "one two"


@pytest.mark.parametrize("wrong", [{"retries": -1}, {"ttl": 0}, {"ttl": -3.0}])
def test_a_durability_that_cannot_be_meant_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(WiringError):
        Flow().named("x").durable(**wrong)


# Going on where the client is


def continued(told: list[Event], again: list[Event]) -> tuple[list[Event], int]:
    """What is emitted of a new attempt, and how often what was told before was taken back."""
    emitted: list[Event] = []
    taken: list[int] = []
    continuing = Continuing(emitted.append, told, 0, lambda: taken.append(len(emitted)))
    for event in again:
        continuing(event)
    continuing.end()
    assert taken in ([], [0])
    assert continuing.anew == bool(taken)
    return emitted, len(taken)


def cut_everywhere(events: list[Event]) -> Generator[tuple[list[Event], list[Event]]]:
    for index in range(len(events) + 1):
        yield events[:index], events[index:]


WHOLE = Response("r", "b", 0, (Text("one two"), ToolCall("c", "look", '{"a":1}'), Text("three")), stop="end")
PARTS = [event for event in replay(WHOLE) if isinstance(event, (Opened, Delta, Closed))]
PIECES = [
    piece
    for event in PARTS
    for piece in ([Delta(event.index, char) for char in event.text] if isinstance(event, Delta) else [event])
]


@pytest.mark.parametrize("again", [PARTS, PIECES])
def test_wherever_the_first_attempt_was_cut_the_client_gets_the_whole_once(again: list[Event]) -> None:
    for told, _ in cut_everywhere(PIECES):
        emitted, taken_back = continued(told, again)

        assert not taken_back
        assert collect([*told, *emitted]).parts == WHOLE.parts
        list(checked([*[*replay(Response("r"))][:1], *told, *emitted, Finished("end")]))


@pytest.mark.parametrize(
    "again",
    [
        [Opened(0, Text()), Delta(0, "one THREE")],
        [Opened(0, Text()), Delta(0, "on"), Closed(0)],
        [Opened(0, ToolCall("c", "look"))],
        [],
    ],
)
def test_whatever_comes_out_otherwise_is_told_whole_in_place_of_what_was_told(again: list[Event]) -> None:
    emitted, taken_back = continued([Opened(0, Text()), Delta(0, "one t")], again)

    assert taken_back
    assert emitted == again


# What is kept, and in which version


@pytest.mark.parametrize(
    ("field", "key"), [("state", "bb:run:r"), ("saved", "bb:run:r:saved")], ids=["state", "savepoints"]
)
def test_what_a_newer_version_has_kept_is_a_clear_error(field: str, key: str) -> None:
    server, tries = fakeredis.FakeRedis(), iter([True, False])

    @agent
    def once(turn: Turn, chat: Chat) -> None:
        if next(tries):
            raise ModelBroke("once")
        turn.reply("never")

    brain = Brain("b", Flow(once).named("x").durable() >> respond)
    with Client(brain, server=server) as client:
        assert client.ask("go", run_id="r").failed is not None
        newer = b'{"version":2,"place":"x","messages":[]}'
        server.hset(key, field, newer) if field == "state" else server.rpush(key, newer)
        assert client.reception.runs.retry("r")
        record = client.record("r")

    assert record.error["code"] == "brain_changed"
    assert "kept in version 2 and this bigbrain reads versions up to 1: update all workers" in record.error["detail"]


def test_what_is_kept_is_json_with_its_version() -> None:
    server = fakeredis.FakeRedis()
    model = ScriptedModel(Says("one", usage=Usage(1, 1)), repeat=True)
    with Client(Brain("b", Flow(model=model).named("x").durable() >> respond), server=server) as client:
        client.crash_at("0", done=True, times=3)
        client.ask("go", run_id="r")
        client.record("r")
        state, saved = server.hget("bb:run:r", "state"), server.lrange("bb:run:r:saved", 0, -1)

    assert saved
    assert [msgspec.json.decode(kept)["version"] for kept in (state, *saved)] == [1] * (1 + len(saved))


# What is kept without `durable`, and for how long


def test_without_durable_nothing_is_put_by_and_nothing_is_taken_up() -> None:
    """A store alone keeps no checkpoints: it hands the conversation from one step to the next, and that is all."""
    server, ran = fakeredis.FakeRedis(), list[str]()

    @tool
    def look() -> str:
        """Looks somewhere."""
        ran.append("look")
        # a round was settled before: a durable flow would have put it by
        put_by.append(server.exists("bb:run:r:saved"))
        return "seen"

    @agent
    def house(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.resolve(turn.last, tools=[look]))

    put_by: list[int] = []
    calls = [Says(calls=(ToolCall(f"c{number}", "look", "{}"),)) for number in range(2)]
    model = ScriptedModel("first", *calls, "it is shut", "first", *calls, "it is shut")
    flow = Flow(model=model) >> All(Flow(house, model=model), Flow(Counting().says("b"))) >> respond
    with Client(Brain("b", flow), server=server) as client:
        client.crash_at("1", done=True)
        lost = client.ask("go", run_id="r")
        answer = client.chat("go", run_id="r")

    assert lost.failed is not None
    assert lost.failed.code == "run_interrupted"
    # both steps again, from the very beginning
    assert answer.text == "first\n\nit is shut\n\nb"
    assert (len(model.asked), ran, put_by) == (8, ["look"] * 4, [0] * 4)


def test_a_run_that_is_done_keeps_its_answer_and_its_record_and_nothing_to_go_on_from() -> None:
    server = fakeredis.FakeRedis()
    flow = (Flow(model=ScriptedModel("one")) >> respond >> Flow(model=ScriptedModel("two")) >> respond).named("x")
    with Client(Brain("b", flow.durable()), server=server) as client:
        first = client.chat("go", run_id="r")
        record = client.record("r")
        kept = {key.decode().removeprefix("bb:run:r") for key in server.scan_iter("bb:run:r*")}
        again = client.chat("go", run_id="r")

    assert kept <= {"", ":log", ":steps", ":followers"}
    assert {"", ":log", ":steps"} <= kept
    assert again.text == first.text == "one\n\ntwo"
    assert [one.path for one in attempts_of(record)] == ["0", "2"]


def test_what_is_taken_from_a_checkpoint_costs_nothing() -> None:
    @agent
    def once(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.ask("b").text)
        if len(model.asked) == 2:
            raise ModelBroke("once")

    model = ScriptedModel(*[Says("x", usage=Usage(5, 5))] * 3)
    flow = (Flow(model=model) >> respond >> Flow(once, model=model) >> respond).named("x").durable()
    with Client(Brain("b", flow)) as client:
        client.ask("go", run_id="r")
        client.chat("go", run_id="r")
        first, failed, second = attempts_of(client.record("r"))
        spent = client.record("r").state["account"]

    # the first step is not asked for again, so it is paid once; the step that failed was asked for twice
    assert [one.usage for one in (first, failed, second)] == [Usage(5, 5)] * 3
    assert (len(model.asked), spent) == (3, {"usage": {"input": 15, "output": 15}, "calls": 3})


def test_an_answer_that_is_given_again_costs_nothing_in_the_record() -> None:
    model = ScriptedModel(Says("x", usage=Usage(5, 5)))
    with Client(Brain("b", Flow(model=model).named("x").durable())) as client:
        client.chat("go", run_id="r")
        before = client.record("r")
        client.chat("go", run_id="r")
        after = client.record("r")

    assert before.state == after.state
    assert (len(model.asked), before.replayed, after.replayed) == (1, 0, 1)
