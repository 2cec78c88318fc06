"""`/v1/runs`: what a client can see of its runs, and do to them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec
import pytest

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.errors import ModelBusy
from bigbrain.flows import All, Flow, Select, respond
from bigbrain.messages import JSON
from bigbrain.models import FixedModel
from bigbrain.settings import Settings
from bigbrain.turns import Turn
from bigbrain.wire import sse
from tests.web.site import CHAT, Pausing, Site, asking, saying, serving

ROOT = Path(__file__).parents[2]
NAMES = re.compile(r"`(\w+)`")
RUNS = "/v1/runs"
BEAT = b": keep-alive\n\n"
KEYED = Settings(keys=("one", "other"))


def start(site: Site, run_id: str, *, model: str = "b", key: str = "") -> None:
    """Has a run answered and be over."""
    headers = {"X-Run-Id": run_id, **({"x-api-key": key} if key else {})}
    site.client.post(CHAT, json=asking(model=model), headers=headers)


def ids(site: Site, query: str = "", **headers: str) -> list[str]:
    return [row["id"] for row in site.client.get(RUNS + query, headers=headers).json["data"]]


def flaky() -> Brain:
    """A brain whose first answer fails."""
    tries = count(1)

    @agent
    def fail_once(turn: Turn, chat: Chat) -> None:
        if next(tries) == 1:
            raise ModelBusy("our key is sk-1")
        turn.reply("at last")

    return Brain("b", Flow(fail_once))


def test_runs_are_listed_newest_first_and_page_by_page() -> None:
    with serving(saying("x")) as site:
        for number in range(5):
            start(site, f"r.{number}")
        pages, query = list[list[str]](), "?limit=2"
        for _ in range(3):
            page = site.client.get(RUNS + query).json
            pages.append([row["id"] for row in page["data"]])
            query = f"?limit=2&after={page['after']}"

    assert pages == [["r.4", "r.3"], ["r.2", "r.1"], ["r.0"]]
    assert (page["has_more"], page["after"]) == (False, None)


def test_runs_that_began_in_one_moment_are_all_listed_once() -> None:
    with serving(saying("x")) as site:
        for number in range(5):
            start(site, f"r{number}")
            site.house.store.client.zadd("bb:runs:open", {f"open:r{number}": 1000})
        seen, query = list[str](), "?limit=2"
        while query:
            page = site.client.get(RUNS + query).json
            seen += [row["id"] for row in page["data"]]
            query = f"?limit=2&after={page['after']}" if page["after"] else ""

    assert seen == ["r4", "r3", "r2", "r1", "r0"]


def test_a_list_holds_what_its_filter_wants() -> None:
    brain = flaky()
    brain.add_flow(Flow(model=FixedModel("x")), name="other")
    with serving(brain) as site:
        start(site, "bad")
        start(site, "good")
        start(site, "foreign", model="other")
        site.record("foreign")

        assert ids(site, "?status=failed") == ["bad"]
        assert ids(site, "?flow=b") == ["good", "bad"]
        assert ids(site, "?flow=b&status=done") == ["good"]
        assert ids(site, "?status=running") == []


@pytest.mark.parametrize("query", ["?status=odd", "?limit=0", "?limit=x", "?after=x", "?after=1-", "?after=x-r"])
def test_a_query_that_cannot_be_meant_is_refused_by_name(query: str) -> None:
    with serving(saying("x")) as site:
        response = site.client.get(RUNS + query, headers={"anthropic-version": "2023-06-01"})

    assert response.status_code == 400
    assert response.json["error"]["param"] == query[1:].partition("=")[0]


def test_a_run_is_shown_with_its_steps_and_what_they_cost() -> None:
    with serving(Brain("b", Flow(model=FixedModel("one")) >> respond >> Flow(model=FixedModel("two")))) as site:
        start(site, "r")
        site.record("r")
        run = site.client.get(f"{RUNS}/r").json

    assert (run["id"], run["object"], run["status"], run["flow"], run["answered"]) == ("r", "run", "done", "b", True)
    assert run["begun"] <= run["ended"]
    assert [(step["attempt"], step["result"]) for step in run["steps"]] == [(1, "done"), (1, "done")]
    assert run["usage"]["calls"] == 2
    assert (run["error"], run["replayed"]) == (None, 0)


def test_a_run_is_shown_as_a_tree_with_times_and_costs() -> None:
    one, two = (Flow(model=FixedModel(text)) for text in ("one", "two"))

    @agent(selects=("yes", "no"))
    def choose(turn: Turn, chat: Chat) -> None:
        turn.select("yes")

    group = All(one.named("x"), two, spread=True).named("g")
    flow = Flow(choose) >> Select(one.named("yes"), two.named("no")) >> respond >> All(one, two) >> group
    with serving(Brain("b", flow)) as site:
        start(site, "r")
        site.record("r")
        run = site.client.get(f"{RUNS}/r").json
    tree = run["tree"]

    def told(nodes: list[dict[str, JSON]]) -> list[JSON]:
        return [(node.get("path"), node.get("status"), told(node.get("inside", []))) for node in nodes]

    assert [(node["kind"], node.get("name")) for node in tree] == [
        ("step", "b"),
        ("select", "b"),
        ("respond", None),
        ("step", "b"),
        ("step", "b/g"),
    ]
    assert told(tree) == [
        ("0", "done", []),
        ("1", None, [(None, None, [("1/yes/0", "done", [])]), (None, None, [("1/no/0", "skipped", [])])]),
        ("2", None, []),
        ("3", "done", [(None, None, [("3/0/0", "done", [])]), (None, None, [("3/1/0", "done", [])])]),
        ("4", "done", [(None, None, [("4/0/0", "done", [])]), (None, None, [("4/1/0", "done", [])])]),
    ]
    assert [node["name"] for node in tree[4]["inside"]] == ["x", "1"]
    steps = [node for node in tree if node["kind"] == "step"]
    assert all(run["begun"] <= node["begun"] <= node["ended"] <= run["ended"] for node in steps)
    assert [step["path"] for step in run["steps"]] == ["0", "1/yes/0", "3", "4"]


def test_a_step_under_way_stands_in_the_tree_and_what_comes_after_it_is_pending() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model) >> Flow(model=FixedModel("x")))) as site:
        asked = site.client.post(CHAT, json=asking(stream=True), headers={"X-Run-Id": "r"})
        assert model.reached.wait(5)
        run = site.client.get(f"{RUNS}/r").json
        model.may_go_on.set()
        asked.get_data()

    assert [(node["status"], node.get("attempts", 0), "ended" in node) for node in run["tree"]] == [
        ("running", 1, False),
        ("pending", 0, False),
    ]


def test_a_run_of_another_structure_is_shown_by_its_steps_alone() -> None:
    with serving(saying("x")) as site:
        start(site, "r")
        site.record("r")
        site.house.store.client.hset("bb:run:open:r", "plan", "other")
        run = site.client.get(f"{RUNS}/r").json

    assert [(node["kind"], node["path"], node["name"], node["status"]) for node in run["tree"]] == [
        ("step", "0", "b", "done")
    ]


def test_a_failure_is_shown_without_its_inside() -> None:
    with serving(flaky()) as site:
        start(site, "r")
        response = site.client.get(f"{RUNS}/r")

    assert response.json["status"] == "failed"
    assert response.json["error"] == {
        "code": "model_busy",
        "message": "The model behind this brain is over its limits; try again later.",
    }
    assert b"sk-1" not in response.data


@pytest.mark.parametrize("run_id", ["unknown", "..", "a%2Fb", "x" * 500, "r~1"])
@pytest.mark.parametrize("rest", ["", "/events"])
def test_a_run_that_is_not_there_is_not_found(run_id: str, rest: str) -> None:
    with serving(saying("x")) as site:
        response = site.client.get(f"{RUNS}/{run_id}{rest}")

        assert response.status_code == 404
        assert response.json["error"]["type"]


def test_a_key_sees_its_own_runs_only() -> None:
    with serving(saying("x"), KEYED) as site:
        start(site, "r", key="one")
        other = {"x-api-key": "other"}
        statuses = [site.client.get(f"{RUNS}/r{rest}", headers=other).status_code for rest in ("", "/events")]
        statuses += [site.client.post(f"{RUNS}/r/{verb}", headers=other).status_code for verb in ("cancel", "retry")]

        assert statuses == [404] * 4
        assert ids(site, **other) == []
        assert ids(site, **{"x-api-key": "one"}) == ["r"]
        assert site.client.get(RUNS).status_code == 401


def test_members_of_a_group_are_not_runs_of_a_client() -> None:
    with serving(saying("x")) as site:
        start(site, "r")
        site.house.store.client.copy("bb:run:open:r", "bb:run:open:r.1.0")

        assert site.client.get(f"{RUNS}/r.1.0").status_code == 404


def frames(data: bytes) -> list[tuple[str, list[dict[str, JSON]]]]:
    """The ids and the events of a stream of events."""
    told = [line[4:].decode() for line in data.split(b"\n") if line.startswith(b"id: ")]
    return list(zip(told, (msgspec.json.decode(frame.data) for frame in sse.read([data])), strict=True))


def text_of(data: bytes) -> str:
    return "".join(event["text"] for _, events in frames(data) for event in events if event["type"] == "delta")


def test_the_events_of_a_run_are_its_log() -> None:
    with serving(saying("one two three")) as site:
        start(site, "r.1")
        response = site.client.get(f"{RUNS}/r.1/events")

    told = frames(response.data)
    kinds = [event["type"] for _, events in told for event in events]
    assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert [int(entry.partition("-")[0]) for entry, _ in told] == list(range(1, len(told) + 1))
    assert told[0][1][0]["id"] == "r.1"
    assert (kinds[:2], kinds[-2:]) == (["started", "opened"], ["closed", "finished"])
    assert text_of(response.data) == "one two three"


@pytest.mark.parametrize("part", [slice(None), slice(1)], ids=["id", "number"])
@pytest.mark.parametrize("by", ["Last-Event-ID", "after"])
def test_the_tail_after_any_event_is_exact(by: str, part: slice) -> None:
    with serving(
        Brain("b", Flow(model=FixedModel("one")) >> respond >> Flow(model=FixedModel("two")) >> respond)
    ) as site:
        start(site, "r")
        whole = site.client.get(f"{RUNS}/r/events").data
        told = [entry for entry, _ in frames(whole)]
        cuts = [whole.index(f"id: {later}\n".encode()) for later in told[1:]] + [len(whole)]
        for entry, cut in zip(told, cuts, strict=True):
            last = "-".join(entry.split("-")[part])
            if by == "after":
                tail = site.client.get(f"{RUNS}/r/events?after={last}").data
            else:
                # a browser repeats the address when it comes back
                tail = site.client.get(f"{RUNS}/r/events?after=0", headers={by: last}).data

            assert whole[:cut] + tail == whole
    assert len(told) > 2


@pytest.mark.parametrize("number", [2, 99])
def test_who_has_an_event_that_a_killed_server_forgot_hears_so_and_gets_no_half_of_another(number: int) -> None:
    with serving(saying("one two three")) as site:
        start(site, "r")
        told = frames(site.client.get(f"{RUNS}/r/events", headers={"Last-Event-ID": f"{number}-1"}).data)

    [(_, [event])] = told
    assert (event["type"], event["code"], event["retryable"]) == ("failed", "run_interrupted", True)


def test_the_events_of_a_run_under_way_come_live_and_end_with_it() -> None:
    model = Pausing("begun")
    with serving(Brain("b", Flow(model=model)), heartbeat=0.05) as site:
        asked = site.client.post(CHAT, json=asking(stream=True), headers={"X-Run-Id": "r"})
        assert model.reached.wait(5)
        chunks: Iterator[bytes] = iter(site.client.get(f"{RUNS}/r/events").response)
        data = b""
        while b"begun" not in data:
            data += next(chunks)
        cut = frames(data)[-1][0]
        later = iter(site.client.get(f"{RUNS}/r/events", headers={"Last-Event-ID": cut}).response)
        model.may_go_on.set()
        rest, tail = (b"".join(each).replace(BEAT, b"") for each in (chunks, later))
        asked.get_data()

        assert rest == tail
        assert data.replace(BEAT, b"") + tail == site.client.get(f"{RUNS}/r/events").data
        assert len(site.house.hub) == 0


def test_after_the_last_event_there_is_nothing_to_wait_for_though_the_run_goes_on() -> None:
    may_go_on = threading.Event()

    @agent
    def after(turn: Turn, chat: Chat) -> None:
        assert may_go_on.wait(10)

    with serving(Brain("b", Flow(model=FixedModel("x")) >> respond >> Flow(after))) as site:
        start(site, "r")
        last = frames(site.client.get(f"{RUNS}/r/events").data)[-1][0]
        tail = site.client.get(f"{RUNS}/r/events?after={last}")
        may_go_on.set()

    assert (tail.status_code, tail.data) == (200, b"")


def test_a_silent_run_says_that_it_lives() -> None:
    model = Pausing("")
    with serving(Brain("b", Flow(model=model)), heartbeat=0.05) as site:
        asked = site.client.post(CHAT, json=asking(stream=True), headers={"X-Run-Id": "r"})
        chunks = iter(site.client.get(f"{RUNS}/r/events?after=1").response)
        first = next(chunks)
        model.may_go_on.set()
        rest = b"".join(chunks)
        asked.get_data()

    assert first == BEAT
    assert b'"finished"' in rest


@pytest.mark.parametrize("number", ["x", "-1", "1.0", "9" * 16, "1-", "1-x", "1-2-3", "\u0663"])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    with serving(saying("x")) as site:
        start(site, "r")

        assert site.client.get(f"{RUNS}/r/events?after={number}").status_code == 400
        assert site.client.get(f"{RUNS}/r/events", headers={"Last-Event-ID": number}).status_code == 400


def test_cancelling_answers_when_the_run_is_over_and_may_be_repeated() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        asked = site.client.post(CHAT, json=asking(stream=True), headers={"X-Run-Id": "r"})
        assert model.reached.wait(5)
        begun = time.monotonic()
        answers = [site.client.post(f"{RUNS}/r/cancel") for _ in range(2)]
        took = time.monotonic() - begun

        assert [(answer.status_code, answer.json["status"]) for answer in answers] == [(200, "cancelled")] * 2
        assert answers[0].json["error"]["code"] == "run_cancelled"
        assert took < 2
        assert b"cancelled" in asked.data


def test_cancelling_a_finished_run_leaves_it_finished() -> None:
    with serving(saying("x")) as site:
        start(site, "r")
        site.record("r")

        assert site.client.post(f"{RUNS}/r/cancel").json["status"] == "done"
        assert site.client.post(f"{RUNS}/unknown/cancel").status_code == 404


def test_a_failed_run_can_be_taken_up_again_and_no_other() -> None:
    with serving(flaky()) as site:
        start(site, "r")
        retried = site.client.post(f"{RUNS}/r/retry")
        record = site.record("r")
        refused = site.client.post(f"{RUNS}/r/retry")
        told = site.client.get(f"{RUNS}/r/events").data

    assert (retried.status_code, record.status) == (200, "done")
    assert (refused.status_code, refused.json["error"]["code"]) == (409, "run_not_failed")
    assert text_of(told) == "at last"


def test_a_cancelled_run_can_be_taken_up_again_by_its_own_request() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        asked = site.client.post(CHAT, json=asking(stream=True), headers={"X-Run-Id": "r"})
        assert model.reached.wait(5)
        site.client.post(f"{RUNS}/r/cancel")
        asked.get_data()
        model.may_go_on.set()
        again = site.client.post(CHAT, json=asking(), headers={"X-Run-Id": "r"})

        assert again.json["choices"][0]["message"]["content"] == "begun"
        assert site.client.get(f"{RUNS}/r").json["status"] == "done"


@pytest.mark.slow
def test_a_run_that_does_not_stop_in_time_is_told_as_stopping() -> None:
    reached, may_go_on = threading.Event(), threading.Event()

    @agent
    def deaf(turn: Turn, chat: Chat) -> None:
        reached.set()
        may_go_on.wait(30)

    with serving(Brain("b", Flow(deaf)), heartbeat=0.05) as site:
        asked = site.client.post(CHAT, json=asking(stream=True), headers={"X-Run-Id": "r"})
        assert reached.wait(5)
        late = site.client.post(f"{RUNS}/r/cancel")
        may_go_on.set()
        then = site.client.post(f"{RUNS}/r/cancel")
        asked.close()

    assert (late.status_code, late.json["error"]["code"]) == (504, "run_stopping")
    assert (then.status_code, then.json["status"]) == (200, "cancelled")


def test_the_list_forgets_runs_that_are_gone() -> None:
    with serving(saying("x")) as site:
        start(site, "r")
        site.record("r")
        store = site.house.store
        store.client.delete("bb:run:open:r")
        left = ids(site)
        store.client.zadd("bb:kept", {"open open:r": 1})
        store.wake()

        assert left == []
        assert store.client.exists("bb:runs:open", "bb:kept") == 0


def test_the_page_about_runs_names_every_field_and_no_other() -> None:
    page = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    tables = re.findall(r"\| Field \| \|\n\| --- \| --- \|\n((?:\|.*\n)+)", page)
    of_run, of_attempt = (
        {name for row in table.splitlines() for name in NAMES.findall(row.split("|")[1])} for table in tables
    )
    group = All(Flow(model=FixedModel("x")).named("x"))
    with serving(Brain("b", group.named("g") >> respond)) as site:
        start(site, "r")
        site.record("r")
        run = site.client.get(f"{RUNS}/r").json
    (attempt,) = run["steps"]

    assert of_run == set(run) - {"id", "object"}
    assert of_attempt == set(attempt)
    assert set(NAMES.findall(page)) >= {name for node in run["tree"] for name in node} | set(attempt["inside"][0])
