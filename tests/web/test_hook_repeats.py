"""A delivery is one run, however often it is sent and whatever happens to the run."""

from __future__ import annotations

import threading
import time

import pytest
from werkzeug.test import TestResponse

from bigbrain import Brain, FixedModel, Flow, Webhook, respond
from bigbrain.webhooks import plain_hmac
from tests.web.hooking import Heard, ended, hooked, post
from tests.web.site import Site, serving
from tests.webhooks.senders import GITHUB, PLAIN, SENDERS, STRIPE, Sender

each_sender = pytest.mark.parametrize("sender", SENDERS, ids=lambda sender: sender.name)


@each_sender
def test_a_delivery_that_is_replayed_is_answered_alike_and_runs_once(sender: Sender) -> None:
    heard = Heard("done")
    with serving(hooked(heard.flow >> respond, sender)) as site:
        first, again = post(site, sender), post(site, sender)

    assert (first.status_code, first.text) == (200, "done")
    assert (again.status_code, again.text) == (200, "done")
    assert first.headers["X-Run-Id"] == again.headers["X-Run-Id"]
    assert len(heard.bodies) == 1


@pytest.mark.parametrize("sender", [GITHUB, PLAIN], ids=lambda sender: sender.name)
def test_a_replay_under_another_id_is_the_same_delivery_where_the_id_is_not_signed(sender: Sender) -> None:
    heard = Heard("done")
    with serving(hooked(heard.flow >> respond, sender)) as site:
        first, again = post(site, sender), post(site, sender, id="d-2")

    assert (again.status_code, again.text) == (200, "done")
    assert first.headers["X-Run-Id"] == again.headers["X-Run-Id"] == "hook:d-1"
    assert len(heard.bodies) == 1


def test_a_further_try_may_differ_where_its_id_says_that_it_is_the_same_event() -> None:
    heard = Heard("done")
    fewer = STRIPE.body.replace(b'"pending_webhooks": 1', b'"pending_webhooks": 0')
    with serving(hooked(heard.flow >> respond, STRIPE)) as site:
        answers = [post(site, STRIPE), post(site, STRIPE, fewer)]

    assert fewer != STRIPE.body
    assert [answer.status_code for answer in answers] == [200, 200]
    assert heard.bodies == [STRIPE.body]


def test_an_id_that_is_not_signed_cannot_stand_for_two_bodies() -> None:
    heard = Heard()
    with serving(hooked(heard.flow, GITHUB)) as site:
        first = post(site, GITHUB)
        other = post(site, GITHUB, b"{}")
        ended(site, first)

    assert (first.status_code, other.status_code) == (202, 409)
    assert heard.bodies == [GITHUB.body]


def test_bodies_that_differ_in_their_time_only_are_two_deliveries() -> None:
    heard = Heard()
    bodies = [b'{"at":1}', b'{"at":2}']
    with serving(hooked(heard.flow)) as site:
        runs = [
            site.client.post(
                "/v1/hooks/hook", data=body, headers={"X-Signature": PLAIN.headers(0, body=body)["X-Signature"]}
            )
            for body in bodies
        ]
        for run in runs:
            ended(site, run)

    assert sorted(body or b"" for body in heard.bodies) == bodies


def test_a_body_may_come_again_where_repetitions_are_welcome() -> None:
    heard = Heard()
    brain = Brain("b", Flow(model=FixedModel("x")))
    brain.add_trigger(Webhook("hook", verify=plain_hmac(PLAIN.secret, repeats=True)) >> heard.flow)
    with serving(brain) as site:
        for run in [post(site, id="d-1"), post(site, id="d-2"), post(site, id="d-2")]:
            ended(site, run)

    assert len(heard.bodies) == 2


def test_a_delivery_that_failed_runs_again_when_it_is_sent_again() -> None:
    heard = Heard("done", failures=1)
    with serving(hooked(heard.flow >> respond, retries=0)) as site:
        first, again = post(site), post(site)

    assert (first.status_code, first.json["error"]["code"]) == (500, "handler_failed")
    assert (again.status_code, again.text) == (200, "done")
    assert first.headers["X-Run-Id"] == again.headers["X-Run-Id"] == "hook:d-1"


def test_a_failure_in_the_background_runs_again_when_it_is_sent_again() -> None:
    heard = Heard(failures=1)
    with serving(hooked(heard.flow, retries=0)) as site:
        assert ended(site, post(site)).status == "failed"
        assert ended(site, post(site)).status == "done"

    assert len(heard.bodies) == 2


def test_a_repetition_while_the_first_is_under_way_waits_for_the_same_answer() -> None:
    heard = Heard("done")
    heard.may_end.clear()
    answers: list[TestResponse] = []
    with serving(hooked(heard.flow >> respond)) as site:
        senders = [threading.Thread(target=lambda: answers.append(post(site))) for _ in range(2)]
        for sender in senders:
            sender.start()
        assert heard.began.wait(10)
        heard.may_end.set()
        for sender in senders:
            sender.join(10)

    assert [(answer.status_code, answer.text) for answer in answers] == [(200, "done")] * 2
    assert len(heard.bodies) == 1


def test_a_sender_that_has_waited_long_enough_is_told_where_its_run_is() -> None:
    heard = Heard("done")
    heard.may_end.clear()
    with serving(hooked(heard.flow >> respond), patience=0.1) as site:
        response = post(site)
        heard.may_end.set()
        record = ended(site, response)
        later = post(site)

    assert (response.status_code, response.json["id"]) == (202, "hook:d-1")
    assert record.status == "done"
    assert (later.status_code, later.text) == (200, "done")


def test_a_repetition_long_after_the_run_was_done_runs_nothing() -> None:
    heard = Heard("done")
    with serving(hooked(heard.flow >> respond)) as site:
        key = "open:hook:d-1"
        assert post(site).status_code == 200
        ended(site, post(site))
        assert site.house.store.client.delete(*site.house.store.client.keys(f"bb:run:{key}*")) > 0
        again = post(site)
        left = site.house.store.client.ttl(f"bb:done:{key}")

    assert again.status_code == 202
    assert len(heard.bodies) == 1
    assert 0 < left <= 3 * 86400


def test_an_id_that_no_run_can_have_is_written_otherwise() -> None:
    heard = Heard()
    with serving(hooked(heard.flow)) as site:
        response = post(site, id="d 1/é" * 99)
        again = post(site, id="d 1/é" * 99)
        ended(site, response)

    assert response.status_code == again.status_code == 202
    assert response.headers["X-Run-Id"] == again.headers["X-Run-Id"]
    assert len(heard.bodies) == 1


def test_one_delivery_to_two_webhooks_is_two_runs() -> None:
    first, second = Heard(), Heard()
    brain = hooked(first.flow, STRIPE)
    brain.add_trigger(Webhook("other", verify=STRIPE.verifier(STRIPE.secret)) >> second.flow)
    with serving(brain) as site:
        for run in [post(site, STRIPE), post(site, STRIPE, path="/v1/hooks/other")]:
            ended(site, run)

    assert len(first.bodies) == len(second.bodies) == 1


def test_a_delivery_that_failed_goes_on_from_its_last_step_and_still_knows_its_headers() -> None:
    first, second = Heard(), Heard("done", failures=1)
    both = (first.flow >> second.flow).named("both").durable()
    with serving(hooked(both >> respond, retries=0)) as site:
        failed, again = post(site, X_Sig_Foo="1"), post(site, X_Sig_Foo="2")

    assert (failed.status_code, again.status_code, again.text) == (500, 200, "done")
    assert (len(first.bodies), len(second.bodies)) == (1, 2)
    # what the first call brought is what its run has
    assert [headers["X-Sig-Foo"] for headers in second.headers] == ["1", "1"]


def test_a_durable_flow_in_a_body_goes_on_where_its_worker_was_lost() -> None:
    first, second = Heard(), Heard("done")
    with serving(hooked((first.flow >> second.flow).named("both").durable() >> respond, retries=0)) as site:
        site.house.client.crash_at("1")
        response = post(site)

    assert (response.status_code, response.text, site.house.client.crashes) == (200, "done", 1)
    assert (len(first.bodies), len(second.bodies)) == (1, 1)


def test_a_body_survives_its_worker_by_itself() -> None:
    heard = Heard("done")
    with serving(hooked(heard.flow >> respond)) as site:
        site.house.client.crash_at("0")
        response = post(site)

    assert (response.status_code, response.text, site.house.client.crashes) == (200, "done", 1)
    assert len(heard.bodies) == 1


def test_a_body_that_wants_no_retries_and_lost_its_worker_runs_again_when_it_is_sent_again() -> None:
    heard = Heard("done")
    with serving(hooked(heard.flow >> respond, retries=0)) as site:
        site.house.client.crash_at("0")
        first, again = post(site), post(site)

    assert (first.status_code, first.json["error"]["code"]) == (503, "run_interrupted")
    assert (again.status_code, again.text) == (200, "done")


def test_two_at_the_same_moment_are_one_run() -> None:
    heard = Heard("done")
    answers: list[TestResponse] = []
    barrier = threading.Barrier(8)

    def sends(site: Site) -> None:
        barrier.wait(10)
        answers.append(post(site))

    with serving(hooked(heard.flow >> respond)) as site:
        senders = [threading.Thread(target=sends, args=(site,)) for _ in range(8)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(20)

    assert [(answer.status_code, answer.text) for answer in answers] == [(200, "done")] * 8
    assert len(heard.bodies) == 1


@pytest.mark.parametrize("sender", SENDERS, ids=lambda sender: sender.name)
def test_a_further_try_that_is_signed_at_another_time_is_the_same_delivery(sender: Sender) -> None:
    heard = Heard("done")
    now = int(time.time())
    with serving(hooked(heard.flow >> respond, sender)) as site:
        tries = [
            site.client.post("/v1/hooks/hook", data=sender.body, headers=sender.headers(now + apart))
            for apart in (-9, 9)
        ]

    assert [(one.status_code, one.text) for one in tries] == [(200, "done")] * 2
    assert tries[0].headers["X-Run-Id"] == tries[1].headers["X-Run-Id"]
    assert len(heard.bodies) == 1
