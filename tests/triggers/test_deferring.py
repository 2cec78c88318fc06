"""A trigger that a run reaches: what is put on record for later, and with what."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import fakeredis
import msgspec
import pytest
import redis

from bigbrain import All, Brain, Chat, Checkpoint, Every, Flow, Once, One, Turn, Webhook, agent, respond
from bigbrain.messages import Request, ToolSpec, user
from bigbrain.testing import Client
from bigbrain.triggers.seeds import carrying
from bigbrain.turns import TRIGGER


@pytest.fixture
def server() -> redis.Redis:
    return fakeredis.FakeRedis(server=fakeredis.FakeServer(), max_connections=1000)


@agent
def work(turn: Turn, chat: Chat) -> None:
    turn.reply("worked")


A = Flow(work)
LATER = Flow(work).named("later")
NEVER = Checkpoint("never")


def asked(server: redis.Redis, flow: Flow, request: Request | str = "go", run_id: str = "r1") -> dict[str, str]:
    """The status and the answer of a run."""
    with Client(Brain("b", flow), server=server) as client:
        answer = client.ask(request, run_id=run_id)
        return {"status": client.record(run_id).status, "text": answer.text}


def schedules(server: redis.Redis) -> dict[str, tuple[int, dict[str, bytes]]]:
    """Every schedule: its instant in ms, its fields."""
    rows = server.zrange("bb:schedules", 0, -1, withscores=True)
    return {
        name.decode(): (
            int(at),
            {field.decode(): value for field, value in server.hgetall(f"bb:schedule:{name.decode()}").items()},
        )
        for name, at in rows
    }


def request_of(fields: dict[str, bytes]) -> Request:
    return msgspec.json.decode(fields["request"], type=Request)


def test_reaching_a_trigger_runs_what_precedes_and_puts_off_what_follows(server: redis.Redis) -> None:
    before = datetime.now(UTC).timestamp() * 1000

    told = asked(server, A >> respond >> Once(minutes=10) >> LATER)

    [(id, (at, fields))] = schedules(server).items()
    assert told == {"status": "done", "text": "worked"}
    assert id.startswith("later:")
    assert 600_000 <= at - before < 620_000
    assert [message.text for message in request_of(fields).messages] == ["go", "worked"]
    assert (fields["kind"], fields["flow"], fields["trigger"]) == (b"once", b"trigger:later", b"later")


def test_the_clients_request_its_tools_and_what_a_trigger_carried_survive_any_flow_before(server: redis.Redis) -> None:
    spec = ToolSpec("look", "Looks.", {"type": "object"})
    asked_for = Request(messages=(user("go"),), tools=(spec,), tool_choice="none", temperature=0.2, user="sam")
    request = carrying(asked_for, {"payload": {"a": 1}, "metadata": {"b": "2"}})

    asked(server, All(A, A) >> A >> Once(minutes=1) >> LATER, request)

    [(_, fields)] = schedules(server).values()
    kept = request_of(fields)
    assert (kept.tools, kept.tool_choice, kept.temperature, kept.user) == ((spec,), "none", 0.2, "sam")
    assert kept.extra[TRIGGER] == {"payload": {"a": 1}, "metadata": {"b": "2"}, "lineage": 1}


def test_two_requests_that_reach_the_same_once_are_two_schedules(server: redis.Redis) -> None:
    flow = A >> Once("2099-01-01T00:00") >> LATER

    asked(server, flow, "one", "r1")
    asked(server, flow, "two", "r2")

    texts = {request_of(fields).messages[0].text for _, fields in schedules(server).values()}
    assert texts == {"one", "two"}


IN_2099 = int(datetime(2099, 1, 1, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (lambda turn: datetime(2099, 1, 1, tzinfo=UTC), IN_2099),
        (lambda turn: turn.last.text.removeprefix("at "), IN_2099),
        (lambda turn: None, None),
    ],
)
def test_a_function_of_the_turn_says_when(
    server: redis.Redis, when: Callable[[Turn], datetime | str | timedelta | None], expected: int | None
) -> None:
    @agent
    def silent(turn: Turn, chat: Chat) -> None:
        """Says nothing."""

    asked(server, Flow(silent) >> Once(when) >> LATER, "at 2099-01-01T00:00Z")

    assert [at for at, _ in schedules(server).values()] == ([] if expected is None else [expected])


def test_a_function_that_gives_no_time_fails_the_run_and_says_what_it_gave(server: redis.Redis) -> None:
    with Client(Brain("b", A >> Once(lambda turn: "soon") >> LATER), server=server) as client:
        client.ask("go", run_id="r1")
        record = client.record("r1")

    assert record.status == "failed"
    assert record.error["code"] == "trigger_failed"
    assert "trigger `later`: `soon` is no time" in record.error["detail"]


def test_a_function_that_raises_is_told_as_that_of_its_trigger(server: redis.Redis) -> None:
    def when(turn: Turn) -> None:
        raise ZeroDivisionError("never")

    with Client(Brain("b", A >> Once(when) >> LATER), server=server) as client:
        client.ask("go", run_id="r1")
        record = client.record("r1")

    assert "the time of trigger `later`" in record.error["detail"]
    assert "ZeroDivisionError: never" in record.error["detail"]


def test_every_that_a_run_reaches_begins_with_its_next_instant(server: redis.Redis) -> None:
    asked(server, A >> Every("0 12 * * *", tz="Asia/Tokyo", catch_up="all") >> LATER)

    [(at, fields)] = schedules(server).values()
    assert datetime.fromtimestamp(at / 1000, UTC).strftime("%H:%M:%S") == "03:00:00"
    assert (fields["cron"], fields["tz"], fields["overlap"]) == (b"0 12 * * *", b"Asia/Tokyo", b"queue")


def test_a_webhook_that_a_run_reaches_keeps_what_was_said(server: redis.Redis) -> None:
    asked(server, A >> Webhook("paid", unsigned=True) >> A)

    fields = {name.decode(): value for name, value in server.hgetall("bb:hook:paid").items()}
    assert [message.text for message in request_of(fields).messages] == ["go", "worked"]
    assert fields["flow"] == b"trigger:paid"


@agent
def losing(turn: Turn, chat: Chat) -> None:
    turn.wait_for(NEVER)


def test_one_keeps_the_trigger_of_its_winner_and_drops_a_losers(server: redis.Redis) -> None:
    winner = A >> Once(minutes=1) >> Flow(work).named("won")
    early = (Once(minutes=1) >> Flow(work).named("early")).named("first") >> Flow(losing)
    late = Flow(losing) >> Once(minutes=1) >> Flow(work).named("late")
    hook = (Webhook("lost", unsigned=True) >> A).named("hook") >> Flow(losing)

    asked(server, One(early, late, hook, winner))

    assert [fields["trigger"] for _, fields in schedules(server).values()] == [b"won"]
    assert not server.exists("bb:hook:lost")


def test_what_wins_an_inner_race_and_loses_the_outer_one_schedules_nothing(server: redis.Redis) -> None:
    inner = One((Once(minutes=1) >> Flow(work).named("inner")).named("first"), Flow(losing)) >> Flow(losing)

    asked(server, One(inner, A >> Once(minutes=1) >> Flow(work).named("outer")))

    assert [fields["trigger"] for _, fields in schedules(server).values()] == [b"outer"]


def test_every_member_of_all_and_of_a_select_keeps_its_trigger(server: redis.Redis) -> None:
    one = Once(minutes=1) >> Flow(work).named("one")
    two = A >> Once(minutes=1) >> Flow(work).named("two")

    asked(server, All(one, two) >> A)

    assert {fields["trigger"] for _, fields in schedules(server).values()} == {b"one", b"two"}


def test_a_lineage_of_eight_triggers_is_allowed_and_a_ninth_is_refused(server: redis.Redis) -> None:
    flow = A >> Once(minutes=1) >> LATER
    for led, status in [(7, "done"), (8, "failed")]:
        request = carrying(Request(messages=(user("go"),)), {"lineage": led})
        assert asked(server, flow, request, f"r{led}")["status"] == status

    [(_, fields)] = schedules(server).values()
    assert request_of(fields).extra[TRIGGER]["lineage"] == 8


def test_the_cap_holds_for_webhooks_as_well(server: redis.Redis) -> None:
    request = carrying(Request(messages=(user("go"),)), {"lineage": 8})

    assert asked(server, A >> Webhook("paid", unsigned=True) >> A, request)["status"] == "failed"
    assert not server.exists("bb:hook:paid")


def test_a_step_that_runs_again_puts_nothing_off_twice(server: redis.Redis) -> None:
    flow = (A >> Once(minutes=1) >> LATER).named("job").durable()
    with Client(Brain("b", flow), server=server) as client:
        client.crash_at("once later", done=True)
        client.ask("go", run_id="r1")
        client.record("r1")

    assert client.crashes == 1
    assert len(schedules(server)) == 1
