"""Webhooks that a run opens: from then on they may be called, and what they start goes on from where the run was."""

from __future__ import annotations

import json

import pytest
from werkzeug.test import TestResponse

from bigbrain import Brain, Chat, FixedModel, Flow, One, Turn, Webhook, agent, respond
from bigbrain.flows import All, Group
from tests.web.site import CHAT, Site, asking, serving


def said(turn: Turn) -> str:
    return " | ".join(f"{message.role}: {message.text}" for message in turn.messages)


@agent
def tells(turn: Turn, chat: Chat) -> None:
    """Says what was said so far and what the call brought."""
    tool = ", ".join(tool.name for tool in turn.request.tools)
    turn.reply(f"{said(turn)} + {json.dumps(turn.payload(object))} + {tool}")


def opening(id: str = "later") -> Flow:
    return Webhook(id, unsigned=True) >> Flow(tells) >> respond


def call(site: Site, id: str = "later", body: object = None) -> TestResponse:
    return site.client.post(f"/v1/hooks/{id}", json=body)


def test_a_webhook_that_a_run_opens_can_be_called_from_then_on_and_knows_what_was_said() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    brain = Brain("b", Flow(model=FixedModel("I will wait")) >> respond >> opening())
    with serving(brain) as site:
        before = call(site)
        answer = site.client.post(CHAT, json=asking("approve it?", tools=[tool]), headers={"X-Run-Id": "r"})
        site.record("r")
        after = [call(site, body={"ok": True}), call(site, body={"ok": False})]

    assert before.status_code == 404
    assert answer.json["choices"][0]["message"]["content"] == "I will wait"
    assert [answer.text for answer in after] == [
        'user: approve it? | assistant: I will wait + {"ok": true} + look',
        'user: approve it? | assistant: I will wait + {"ok": false} + look',
    ]


def test_it_goes_on_from_the_run_that_opened_it_last() -> None:
    brain = Brain("b", Flow(model=FixedModel("yes")) >> respond >> opening())
    with serving(brain) as site:
        for number in ("1", "2"):
            site.client.post(CHAT, json=asking(f"question {number}"), headers={"X-Run-Id": number})
            site.record(number)
        answer = call(site)
        left = site.house.store.client.ttl("bb:hook:later")

    assert answer.text == "user: question 2 | assistant: yes + null + "
    assert 0 < left <= 30 * 86400


def test_a_webhook_inside_one_is_opened_by_the_winner_only() -> None:
    @agent
    def waits(turn: Turn, chat: Chat) -> None:
        while True:
            turn.check()

    loser = Flow(waits) >> opening("loser")
    brain = Brain("b", One(Flow(model=FixedModel("won")) >> opening("winner"), loser) >> respond)
    with serving(brain) as site:
        site.client.post(CHAT, json=asking(), headers={"X-Run-Id": "r"})
        site.record("r")
        answers = {id: call(site, id).status_code for id in ("winner", "loser")}

    assert answers == {"winner": 200, "loser": 404}


@pytest.mark.parametrize("group", [All, Group], ids=lambda group: group.__name__)
def test_a_webhook_inside_another_group_is_opened_by_every_member(group: type[Flow]) -> None:
    member = Flow(model=FixedModel("x"))
    brain = Brain("b", group(member >> opening("first"), member >> opening("second")) >> respond)
    with serving(brain) as site:
        site.client.post(CHAT, json=asking(), headers={"X-Run-Id": "r"})
        site.record("r")
        answers = [call(site, id).status_code for id in ("first", "second")]

    assert answers == [200, 200]


def test_the_ninth_webhook_of_a_chain_that_opens_the_next_is_not_opened() -> None:
    chain = Flow(model=FixedModel("end"))
    for number in range(9, -1, -1):
        chain = Webhook(f"h{number}", unsigned=True) >> Flow(model=FixedModel(str(number))) >> chain
    brain = Brain("b", Flow(model=FixedModel("x")))
    brain.add_trigger(chain)
    with serving(brain) as site:
        ends = [site.record(call(site, f"h{number}").headers["X-Run-Id"]) for number in range(8)]
        last = call(site, "h8")

    assert [record.status for record in ends] == ["done"] * 7 + ["failed"]
    assert ends[-1].error["code"] == "trigger_failed"
    assert "8 are allowed" in ends[-1].error["detail"]
    assert last.status_code == 404


def test_a_webhook_that_the_brain_has_no_more_cannot_be_called() -> None:
    old = Brain("b", Flow(model=FixedModel("x")) >> respond >> opening())
    with serving(old) as site:
        site.client.post(CHAT, json=asking(), headers={"X-Run-Id": "r"})
        site.record("r")
        kept = site.house.store.client.hgetall("bb:hook:later")
    with serving(Brain("b", Flow(model=FixedModel("x")))) as site:
        site.house.store.client.hset("bb:hook:later", mapping=kept)
        answer = call(site)

    assert answer.status_code == 404
