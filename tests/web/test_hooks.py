"""Calls of webhooks over HTTP: what is let in, and what is answered."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from bigbrain import Brain, Chat, FixedModel, Flow, One, Select, Turn, Webhook, agent, respond
from bigbrain.flows import All
from bigbrain.settings import Limits, Settings
from bigbrain.webhooks import Delivery, plain_hmac
from tests.web.hooking import Heard, ended, hooked, post
from tests.web.site import listening, serving
from tests.web.sockets import send, talk
from tests.webhooks.senders import PLAIN, SENDERS, SLACK, TIMED_SENDERS, Sender

each_sender = pytest.mark.parametrize("sender", SENDERS, ids=lambda sender: sender.name)


@each_sender
def test_a_genuine_delivery_begins_a_run_under_its_own_id(sender: Sender) -> None:
    heard = Heard()
    with serving(hooked(heard.flow, sender)) as site:
        response = post(site, sender)
        record = ended(site, response)

    assert response.status_code == 202
    assert response.json == {"id": response.headers["X-Run-Id"], "object": "run", "status": "accepted"}
    assert response.json["id"] in ("hook:d-1", "hook:evt_1", "hook:Ev1")
    assert record.status == "done"
    assert heard.bodies == [sender.body]


@each_sender
def test_a_forged_delivery_is_refused_and_nothing_runs(sender: Sender) -> None:
    heard = Heard()
    now = int(time.time())
    with serving(hooked(heard.flow, sender)) as site:
        answers = [
            site.client.post("/v1/hooks/hook", data=sender.body, headers=sender.headers(now, secret=sender.other)),
            site.client.post("/v1/hooks/hook", data=sender.body[:-1], headers=sender.headers(now)),
            site.client.post("/v1/hooks/hook", data=sender.body),
        ]
        runs = site.house.store.client.keys("bb:run:*")

    assert [answer.status_code for answer in answers] == [401, 401, 401]
    assert {answer.json["error"]["code"] for answer in answers} == {"invalid_signature"}
    assert (runs, heard.bodies) == ([], [])


@pytest.mark.parametrize("sender", TIMED_SENDERS, ids=lambda sender: sender.name)
@pytest.mark.parametrize("apart", [-400, 400])
def test_a_stale_delivery_is_refused(sender: Sender, apart: int) -> None:
    with serving(hooked(Heard().flow, sender)) as site:
        answer = site.client.post("/v1/hooks/hook", data=sender.body, headers=sender.headers(int(time.time()) + apart))

    assert answer.status_code == 401
    assert "300 s" in answer.json["error"]["message"]


def test_the_failure_of_a_call_that_waits_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with serving(hooked(Heard(failures=9).flow >> respond, retries=0)) as site:
        response = post(site)

    assert response.status_code == 500
    assert "not yet" not in response.text
    assert "open:hook:d-1: the webhook's run failed: handler_failed" in caplog.text


def test_a_body_without_respond_is_answered_at_once() -> None:
    heard = Heard()
    heard.may_end.clear()
    with serving(hooked(heard.flow)) as site:
        response = post(site)
        heard.may_end.set()
        record = ended(site, response)

    assert (response.status_code, record.status) == (202, "done")


def test_all_stages_are_in_the_answer_and_the_body_runs_to_its_end() -> None:
    heard = Heard()
    stages = Flow(model=FixedModel("one")) >> respond >> Flow(model=FixedModel("two")) >> respond >> heard.flow
    with serving(hooked(stages)) as site:
        response = post(site)
        record = ended(site, response)

    assert (response.status_code, response.text) == (200, "one\n\ntwo")
    assert response.content_type == "text/plain; charset=utf-8"
    assert (record.status, len(heard.bodies)) == ("done", 1)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/plain"),
        ("*/*", "text/plain"),
        ("text/html, */*;q=0.1", "text/plain"),
        ("application/json", "application/json"),
        ("application/json,*/*", "application/json"),
        ("text/plain;q=0.5, application/json", "application/json"),
    ],
)
def test_the_answer_is_text_or_json_as_the_sender_likes(accept: str, kind: str) -> None:
    with serving(hooked(Flow(model=FixedModel("grüß dich")) >> respond)) as site:
        response = post(site, Accept=accept)

    assert (response.status_code, response.mimetype) == (200, kind)
    text = response.json["text"] if kind == "application/json" else response.text
    assert text == "grüß dich"


def choosing(choice: str) -> Flow:
    @agent(selects=("answers", "works"))
    def chooses(turn: Turn, chat: Chat) -> None:
        turn.select(choice)

    answers = (Flow(model=FixedModel("yes")) >> respond).named("answers")
    return Flow(chooses) >> Select(answers, WORKING.flow.named("works"))


WORKING = Heard("quietly")


@pytest.mark.parametrize(("choice", "status", "text"), [("answers", 200, "yes"), ("works", 202, None)])
def test_the_branch_that_is_taken_decides(choice: str, status: int, text: str | None) -> None:
    with serving(hooked(choosing(choice))) as site:
        response = post(site)

    assert response.status_code == status
    assert text is None or response.text == text


def test_a_branch_that_answers_nothing_lets_its_sender_go_before_it_works() -> None:
    WORKING.may_end.clear()
    with serving(hooked(choosing("works"))) as site:
        response = post(site)
        status = site.house.store.record("open:hook:d-1").status
        WORKING.may_end.set()
        record = ended(site, response)

    assert (response.status_code, status, record.status) == (202, "running", "done")


@pytest.mark.parametrize("group", [One, All], ids=lambda group: group.__name__)
def test_a_respond_inside_a_group_is_an_answer_too(group: Callable[..., Flow]) -> None:
    flow = group(Flow(model=FixedModel("inside")) >> respond) >> Heard().flow
    with serving(hooked(flow)) as site:
        response = post(site)

    assert (response.status_code, response.text) == (200, "inside")


def test_a_respond_in_the_member_that_loses_is_no_answer() -> None:
    loser = Heard("late")
    loser.may_end.clear()
    flow = One(Flow(model=FixedModel("first")), loser.flow >> respond)
    with serving(hooked(flow)) as site:
        response = post(site)
        loser.may_end.set()

    assert response.status_code == 202


@pytest.mark.slow  # longer than the grace that a run gets whose client has left
def test_the_run_goes_on_when_its_sender_has_left() -> None:
    heard = Heard("done")
    heard.may_end.clear()
    raw = PLAIN.body
    head = "\r\n".join(f"{name}: {value}" for name, value in PLAIN.headers(0).items())
    with serving(hooked(heard.flow >> respond, retries=0)) as site, listening(site.app) as url:
        send(url, "/v1/hooks/hook", f"{head}\r\nContent-Length: {len(raw)}", raw).close()
        assert heard.began.wait(10)
        time.sleep(0.7)
        heard.may_end.set()
        record = site.record("hook:d-1")

    assert record.status == "done"


def test_headers_are_metadata_without_what_lets_somebody_in() -> None:
    heard = Heard()
    with serving(hooked(heard.flow)) as site:
        sent = {
            "x_sig_foo": "1",
            "Authorization": "Bearer k",
            "Cookie": "a=b",
            "x_api_key": "k",
            "X_Forwarded_For": "1.1.1.1",
        }
        ended(site, post(site, **sent))

    [headers] = heard.headers
    assert headers["X-Sig-Foo"] == "1"
    assert headers["X-Signature"] == PLAIN.headers(0)["X-Signature"]
    assert not {"Authorization", "Cookie", "X-Api-Key", "X-Forwarded-For"} & headers.keys()


def test_of_a_repeated_header_the_first_value_counts() -> None:
    heard = Heard()
    head = "\r\n".join(f"{name}: {value}" for name, value in PLAIN.headers(0).items())
    head += f"\r\nx-more: 1\r\nX-MORE: 2\r\nX-Signature: 00\r\nContent-Length: {len(PLAIN.body)}\r\nConnection: close"
    with serving(hooked(heard.flow)) as site, listening(site.app) as url:
        answer = talk(url, "/v1/hooks/hook", head, PLAIN.body)
        site.record("hook:d-1")

    assert answer.startswith(b"HTTP/1.1 202 ")
    assert heard.headers[0]["X-More"] == "1"


@pytest.mark.parametrize(
    ("body", "kind", "value"),
    [
        (b"", "application/json", None),
        (b"null", "application/json", None),
        (b"[]", "application/json", []),
        (b'"x"', "application/json; charset=utf-8", "x"),
        (b"NaN", "application/json", "NaN"),
        (b'{"a":1,}', "application/json", '{"a":1,}'),
        (b'\xef\xbb\xbf{"a":1}', "application/vnd.acme+json", {"a": 1}),
        (b"hi", "text/plain", "hi"),
        (b'{"a":1}', "", {"a": 1}),
        (b"payload=%7B%22a%22%3A1%7D", "application/x-www-form-urlencoded", {"payload": '{"a":1}'}),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_payload_of_any_kind_is_taken_and_its_bytes_are_kept(body: bytes, kind: str, value: object) -> None:
    seen: list[tuple[object, bytes | None]] = []

    @agent
    def sees(turn: Turn, chat: Chat) -> None:
        seen.append((turn.payload(object), turn.payload(bytes)))

    with serving(hooked(Flow(sees))) as site:
        response = post(site, body=body, **({"Content_Type": kind} if kind else {}))
        ended(site, response)

    assert response.status_code == 202
    assert seen == [(value, body)]


def test_bytes_that_are_no_text_are_taken_as_they_are() -> None:
    heard = Heard()
    with serving(hooked(heard.flow)) as site:
        response = post(site, body=b"\xff\xfe\x00{")
        ended(site, response)

    assert (response.status_code, heard.bodies) == (202, [b"\xff\xfe\x00{"])


def test_a_payload_that_does_not_fit_is_the_senders_fault_and_no_reason_to_try_again() -> None:
    @agent
    def wants_a_number(turn: Turn, chat: Chat) -> None:
        turn.payload(int)

    with serving(hooked(Flow(wants_a_number) >> respond)) as site:
        response = post(site, body=b'"x"')
        record = ended(site, response)

    assert (response.status_code, response.json["error"]["code"]) == (422, "payload_mismatch")
    assert len(record.steps) == 1


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(("size", "status"), [(1000, 202), (1001, 413), (5000, 413)])
def test_the_cap_holds_however_a_body_is_framed(framing: str, size: int, status: int) -> None:
    raw = b'{"a":1}' + b" " * (size - 7)
    head = "\r\n".join(f"{name}: {value}" for name, value in PLAIN.headers(0, body=raw).items())
    framed = raw
    if framing == "chunked":
        pieces = [raw[n : n + 100] for n in range(0, len(raw), 100)]
        framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        head += "\r\nTransfer-Encoding: chunked"
    else:
        head += f"\r\nContent-Length: {size}"
    heard = Heard()
    limits = Settings(limits=Limits(max_body=1000))
    with serving(hooked(heard.flow), limits) as site, listening(site.app) as url:
        answer = talk(url, "/v1/hooks/hook", f"{head}\r\nConnection: close", framed)
        if status == 202:
            site.record("hook:d-1")

    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert heard.bodies == ([raw] if status == 202 else [])


@pytest.mark.parametrize("path", ["/v1/hooks/other", "/v1/hooks/", "/v1/hooks", "/v1/hooks/hook/more"])
def test_an_unknown_webhook_is_a_404_in_json(path: str) -> None:
    with serving(hooked(Heard().flow)) as site:
        response = post(site, path=path)

    assert (response.status_code, response.mimetype) == (404, "application/json")
    assert "error" in response.json


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_method_is_a_405_in_json(method: str) -> None:
    with serving(hooked(Heard().flow)) as site:
        response = site.client.open("/v1/hooks/hook", method=method)

    assert (response.status_code, response.mimetype) == (405, "application/json")
    assert "POST" in response.headers["Allow"]


def test_an_encoded_body_is_a_415_in_json() -> None:
    with serving(hooked(Heard().flow)) as site:
        response = post(site, Content_Encoding="gzip")

    assert (response.status_code, response.mimetype) == (415, "application/json")
    assert "`gzip`" in response.json["error"]["message"]


def test_signed_webhooks_need_no_key_and_others_do() -> None:
    heard = Heard()
    brain = hooked(heard.flow)
    brain.add_trigger(Webhook("open", unsigned=True) >> heard.flow)
    with serving(brain, Settings(keys=("k", "another"))) as site:
        signed = post(site)
        refused = site.client.post("/v1/hooks/open", data=b"x")
        let_in = site.client.post("/v1/hooks/open", data=b"x", headers={"Authorization": "Bearer k"})
        unknown = site.client.post("/v1/hooks/other", data=b"x")
        listed = site.client.get("/v1/runs", headers={"Authorization": "Bearer k"}).json["data"]
        others = site.client.get("/v1/runs", headers={"Authorization": "Bearer another"}).json["data"]

    assert (signed.status_code, refused.status_code, let_in.status_code, unknown.status_code) == (202, 401, 202, 404)
    assert refused.json["error"]["code"] == "invalid_api_key"
    # the first key is the operator's
    assert ({run["flow"] for run in listed}, others) == ({"trigger:hook", "trigger:open"}, [])


def test_an_unsigned_call_may_name_its_run() -> None:
    heard = Heard()
    brain = Brain("b", Flow(model=FixedModel("x")))
    brain.add_trigger(Webhook("open", unsigned=True) >> heard.flow)
    with serving(brain) as site:
        runs = [
            site.client.post("/v1/hooks/open", data=b"x", headers={"Idempotency-Key": "n-1"}),
            site.client.post("/v1/hooks/open", data=b"x", headers={"Idempotency-Key": "n-1"}),
            site.client.post("/v1/hooks/open", data=b"y", headers={"Idempotency-Key": "n-1"}),
            site.client.post("/v1/hooks/open", data=b"x"),
            site.client.post("/v1/hooks/open", data=b"x"),
        ]
        for run in runs:
            if run.status_code == 202:
                ended(site, run)

    assert [run.status_code for run in runs] == [202, 202, 409, 202, 202]
    assert len({run.headers["X-Run-Id"] for run in runs}) == 3
    assert len(heard.bodies) == 3


def test_an_own_function_sees_the_bytes_and_where_they_came_from() -> None:
    seen: list[Delivery] = []

    def check(delivery: Delivery) -> bool:
        seen.append(delivery)
        return delivery.header("x-key") == "open sesame"

    brain = Brain("b", Flow(model=FixedModel("x")))
    brain.add_trigger(Webhook("own", verify=check) >> Heard().flow)
    with serving(brain) as site:
        answers = [
            site.client.post("/v1/hooks/own", data=b"\xff", headers={"X-Key": key}) for key in ("open sesame", "please")
        ]

    assert [answer.status_code for answer in answers] == [202, 401]
    assert (seen[0].body, seen[0].address) == (b"\xff", "127.0.0.1")


def test_a_check_that_breaks_lets_nobody_in() -> None:
    brain = Brain("b", Flow(model=FixedModel("x")))
    brain.add_trigger(Webhook("own", verify=lambda delivery: delivery.body[9] == 1) >> Heard().flow)
    with serving(brain) as site:
        response = site.client.post("/v1/hooks/own", data=b"")
        runs = site.house.store.client.keys("bb:run:*")

    assert (response.status_code, response.json["error"]["code"]) == (500, "internal_error")
    assert runs == []


def test_a_slack_command_is_answered_as_slack_reads_it() -> None:
    """Slack's commands ask for JSON and show its `text`; its handshake wants the challenge as text."""

    @agent
    def answers(turn: Turn, chat: Chat) -> None:
        value = turn.payload(dict[str, str]) or {}
        turn.reply(value.get("challenge") or f"you said {value['text']}")

    with serving(hooked(Flow(answers) >> respond, SLACK)) as site:
        command = post(
            site, SLACK, b"command=%2Fbrain&text=hi", Accept="application/json,*/*",
            Content_Type="application/x-www-form-urlencoded",
        )  # fmt: skip
        shake = post(site, SLACK, json.dumps({"type": "url_verification", "challenge": "3eZ"}).encode(), Accept="*/*")

    assert command.json["text"] == "you said hi"
    assert shake.text == "3eZ"


def test_what_was_seeded_is_there_in_every_call_beside_the_calls_own_payload() -> None:
    seen: list[tuple[str, object]] = []

    @agent
    def sees(turn: Turn, chat: Chat) -> None:
        seen.append((turn.last.text, turn.payload(object)))

    brain = Brain("b", Flow(model=FixedModel("x")))
    brain.add_trigger(
        Webhook("hook", verify=plain_hmac(PLAIN.secret)) >> Flow(sees), seed_chat="be brief", seed_payload={"a": 0}
    )
    with serving(brain) as site:
        for number in (1, 2):
            ended(site, post(site, body=b'{"a":%d}' % number, id=f"d-{number}"))

    assert seen == [("be brief", {"a": 1}), ("be brief", {"a": 2})]


def test_a_call_is_traced_and_counted_like_any_other_run() -> None:
    with serving(hooked(Flow(model=FixedModel("yes")) >> respond)) as site:
        post(site)
        post(site, id="d-2", body=b"forged", X_Signature="00")
        record = site.record("hook:d-1")
        kinds = [event.kind for event in site.house.client.trace("open:hook:d-1")]
        metrics = site.client.get("/metrics").text
        listed = site.client.get("/v1/runs").json["data"]

    assert (kinds[0], kinds[-1]) == ("run.start", "run.end")
    assert record.flow == "trigger:hook"
    assert [(run["id"], run["flow"]) for run in listed] == [("hook:d-1", "trigger:hook")]
    assert 'protocol="webhook",status="200"' in metrics
    assert 'protocol="webhook",status="401"' in metrics
