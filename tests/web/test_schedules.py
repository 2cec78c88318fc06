"""`/v1/schedules` and `bigbrain schedules`: what is going to happen, seen and changed by whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from bigbrain import Brain, Chat, Every, Flow, Once, Turn, agent, respond
from bigbrain.settings import Settings
from bigbrain.testing import Client, Clock
from tests.engine.acting import until
from web import create_app

START = datetime(2026, 6, 1, 12, tzinfo=UTC)


@agent
def work(turn: Turn, chat: Chat) -> None:
    if turn.last.text == "fail":
        raise ValueError("the secret words")
    turn.reply("worked")


@agent
def echo(turn: Turn, chat: Chat) -> None:
    """Says nothing of its own."""


@contextmanager
def site(clock: Clock, *, keys: tuple[str, ...] = ()) -> Iterator[tuple[FlaskClient, Client]]:
    brain = Brain("b", Flow(echo) >> respond >> Once(hours=1, retries=0) >> Flow(work).named("later"))
    brain.add_trigger(Every("0 15 * * *", tz="Europe/Berlin") >> Flow(work).named("daily"))
    with Client(brain, now=clock.now) as client:
        app = create_app(client.reception, settings=Settings(keys=keys))
        yield app.test_client(), client


def ask(web: FlaskClient, text: str, key: str = "") -> None:
    asked = {"model": "b", "messages": [{"role": "user", "content": text}]}
    answer = web.post("/v1/chat/completions", json=asked, headers=bearer(key))
    assert answer.status_code == 200


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def listed(web: FlaskClient, key: str = "") -> list[dict[str, object]]:
    return web.get("/v1/schedules", headers=bearer(key)).json["data"]


def test_schedules_of_the_code_and_of_requests_are_listed_newest_first() -> None:
    clock = Clock(START)
    with site(clock) as (web, _):
        clock.advance(1)
        ask(web, "go")
        until(lambda: len(listed(web)) == 2)
        later, daily = listed(web)
        shown = web.get("/v1/schedules/daily").json

    assert daily == shown
    assert (daily["object"], daily["kind"], daily["cron"], daily["tz"]) == (
        "schedule",
        "every",
        "0 15 * * *",
        "Europe/Berlin",
    )
    assert daily["due"] == int(datetime(2026, 6, 1, 13, tzinfo=UTC).timestamp() * 1000)
    assert (later["trigger"], later["kind"], later["brain"]) == ("later", "once", None)
    assert later["run"]
    assert "request" not in later


def test_a_key_sees_its_own_schedules_only() -> None:
    with site(Clock(START), keys=("one", "two")) as (web, _):
        ask(web, "go", "one")
        until(lambda: listed(web, "one"))
        [mine] = listed(web, "one")

        assert listed(web, "two") == []
        assert web.get(f"/v1/schedules/{mine['id']}", headers=bearer("two")).status_code == 404
        for action in ("cancel", "run"):
            path = f"/v1/schedules/{mine['id']}/{action}"
            assert web.post(path, headers=bearer("two")).status_code == 404
            assert web.post(path).status_code == 401
        assert len(listed(web, "one")) == 1


def test_a_schedule_is_cancelled_once() -> None:
    with site(Clock(START)) as (web, _):
        assert web.post("/v1/schedules/daily/cancel").json["due"] is None
        again = web.post("/v1/schedules/daily/cancel")
        assert (again.status_code, again.json["error"]["code"]) == (409, "schedule_over")
        assert listed(web)[0]["cancelled"] is not None
        assert web.post("/v1/schedules/nothing/cancel").status_code == 404


def test_a_schedule_is_run_now_and_its_run_is_in_the_runs_api() -> None:
    with site(Clock(START)) as (web, client):
        run = web.post("/v1/schedules/daily/run").json["run"]
        client.fired("daily")
        shown = web.get(f"/v1/runs/{run}").json

        assert (shown["status"], shown["flow"]) == ("done", "trigger:daily")
        assert run in [row["id"] for row in web.get("/v1/runs").json["data"]]
        assert listed(web)[0]["due"] is not None


def test_a_firing_that_failed_for_good_is_listed_without_its_secrets_and_taken_up_again() -> None:
    clock = Clock(START)
    with site(clock) as (web, client):
        ask(web, "fail")
        until(lambda: len(listed(web)) == 2)
        clock.advance(3600)
        client.fired("later")
        until(lambda: web.get("/v1/schedules/dead").json["data"])
        [dead] = web.get("/v1/schedules/dead").json["data"]
        retried = web.post(f"/v1/schedules/dead/{dead['run']}/retry")
        again = web.post("/v1/schedules/dead/nothing/retry")

    assert dead["error"]["code"] == "handler_failed"
    assert "secret" not in str(dead)
    assert (retried.status_code, again.status_code) == (200, 404)


def test_a_page_that_is_asked_for_wrongly_is_refused() -> None:
    with site(Clock(START)) as (web, _):
        for query in ("limit=0", "limit=x", "after=x", "after=-daily"):
            assert web.get(f"/v1/schedules?{query}").status_code == 400


def test_a_handler_lists_and_cancels_what_its_own_brain_is_going_to_do() -> None:
    brain = Brain("b")

    @agent
    def secretary(turn: Turn, chat: Chat) -> None:
        ids = [one.id for one in brain.schedules.list() if one.trigger == turn.last.text]
        turn.reply(", ".join(id for id in ids if brain.schedules.cancel(id)) or "nothing")

    brain.add_flow(Flow(secretary))
    brain.add_trigger(Every("@daily") >> Flow(work).named("daily"))
    with Client(brain, now=Clock(START).now) as client:
        answers = [client.chat(text).text for text in ("daily", "daily", "other")]
        run_id = brain.schedules.run_now("daily")
        assert brain.schedules.run_now("other") is None
        client.fired("daily")

    assert answers == ["daily", "nothing", "nothing"]
    assert run_id is not None


@pytest.mark.parametrize("limit", [1, 2])
def test_pages_follow_each_other(limit: int) -> None:
    clock = Clock(START)
    with site(clock) as (web, _):
        for number in range(3):
            ask(web, f"{number}")
        until(lambda: len(listed(web)) == 4)
        seen, after = [], ""
        while after is not None:
            page = web.get("/v1/schedules", query_string={"limit": limit, **({"after": after} if after else {})}).json
            seen += [row["id"] for row in page["data"]]
            after = page["after"]

    assert len(seen) == len(set(seen)) == 4
