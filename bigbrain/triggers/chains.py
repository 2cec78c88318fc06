"""Triggers as flows: what comes after one in a chain is its body, which runs later and on its own.

`brain.add_trigger(Every("0 21 * * *") >> nightly)` has the brain act by itself;
`router >> answer >> respond >> Once(minutes=10) >> follow_up` goes on long after a reply.
"""

from __future__ import annotations

from datetime import timedelta, tzinfo

from bigbrain.flows import Flow, Triggering, flow_of
from bigbrain.triggers.specs import RETRIES, CatchUp, Endpoint, Overlap, Recurring, Single, When


def Every(
    expression: str,
    *,
    tz: str | tzinfo = "UTC",
    id: str = "",
    catch_up: CatchUp = "latest",
    overlap: Overlap | None = None,
    retries: int = RETRIES,
) -> Flow:
    """Fires at the instants of a cron expression: five fields, six with seconds first, or `@daily` and the like.

    tz: whose clock the expression means. id: what the schedule is called, by default the id of its body.
    catch_up: which of the instants that passed while nothing ran are made up for: the latest, all or none.
    overlap: while an earlier firing is under way, a later one is left out ("skip"), waits ("queue", the default with
    `catch_up="all"`) or runs beside it ("allow"). retries: how often a step that fails runs again, after 1, 2, 4 … s.
    """
    return flow_of(
        Triggering(Recurring(expression=expression, tz=tz, id=id, catch_up=catch_up, overlap=overlap, retries=retries))
    )


def Once(
    when: When | None = None,
    *,
    seconds: float = 0,
    minutes: float = 0,
    hours: float = 0,
    days: float = 0,
    tz: str | tzinfo = "UTC",
    id: str = "",
    retries: int = RETRIES,
) -> Flow:
    """Fires a single time: at a time, after a span, or when a function of the turn that reaches it says.

    when: a datetime, text such as `2026-07-01T09:00`, a timedelta, or a function of the turn that gives one of these,
    or None for not at all; without it the span of `seconds`, `minutes`, `hours` and `days` counts. A time that has passed is
    now. tz: the zone of times that name none; of a time that comes twice the first is meant, one that is left out
    is the first moment after the gap. id, retries: see `Every`.
    """
    span = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
    return flow_of(Triggering(Single(when=span if when is None else when, tz=tz, id=id, retries=retries)))


def Webhook(id: str, *, verify: object = None, unsigned: bool = False, retries: int = RETRIES) -> Flow:
    """Fires for each call of `POST /v1/hooks/{id}`: 200 with the answer if the call comes to a `respond`, else 202.

    verify: who checks the raw bytes of a call: one of `bigbrain.webhooks`, such as `stripe_signature(secret)`, or a
    function of the `Delivery` that gives whether it is genuine, or its id. unsigned: calls prove nothing; where the
    deployment has keys, they need one. A call that is repeated is the same run. retries: see `Every`.
    """
    return flow_of(Triggering(Endpoint(id=id, verify=verify, unsigned=unsigned, retries=retries)))
