"""Which instants a cron expression names: days, weekdays, and the hours that come twice or never."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from bigbrain.engine.cron import Cron, CronFault
from bigbrain.engine.zones import first_real
from bigbrain.triggers.specs import read_moment


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def instants(expression: str, zone: str, first: str, last: str) -> list[str]:
    """The instants after `first` up to `last`, both in UTC, as UTC text."""
    found = Cron(expression, ZoneInfo(zone)).between(at(first), at(last))
    return [datetime.fromtimestamp(one, UTC).strftime("%m-%dT%H:%M:%S").removesuffix(":00") for one in found]


NEW_YORK, BERLIN = "America/New_York", "Europe/Berlin"
AUTUMN = [
    # B19: 01:00-02:00 comes twice on 1 November, first as EDT (05Z), then as EST (06Z)
    (
        "0 * * * *",
        NEW_YORK,
        ("2026-11-01T04:30", "2026-11-01T08:30"),
        ["11-01T05:00", "11-01T06:00", "11-01T07:00", "11-01T08:00"],
    ),
    ("30 1 * * *", NEW_YORK, ("2026-11-01T04:30", "2026-11-01T08:30"), ["11-01T05:30"]),
    ("30 1 * * *", NEW_YORK, ("2026-11-01T05:40", "2026-11-02T08:30"), ["11-02T06:30"]),
    ("0,30 1 * * *", NEW_YORK, ("2026-11-01T04:30", "2026-11-01T08:30"), ["11-01T05:00", "11-01T05:30"]),
    ("0 30 1 * * *", NEW_YORK, ("2026-11-01T04:30", "2026-11-01T08:30"), ["11-01T05:30"]),
    ("@hourly", NEW_YORK, ("2026-11-01T04:30", "2026-11-01T06:30"), ["11-01T05:00", "11-01T06:00"]),
    ("@daily", NEW_YORK, ("2026-11-01T03:30", "2026-11-02T06:30"), ["11-01T04:00", "11-02T05:00"]),
    ("30 2 * * *", BERLIN, ("2026-10-24T23:00", "2026-10-26T02:00"), ["10-25T00:30", "10-26T01:30"]),
    ("*/20 2 * * *", BERLIN, ("2026-10-25T00:00", "2026-10-25T02:00"), ["10-25T00:20", "10-25T00:40", "10-25T01:00", "10-25T01:20", "10-25T01:40"]),
]  # fmt: skip
SPRING = [
    # 02:00-03:00 does not come on 29 March in Berlin
    ("30 2 * * *", BERLIN, ("2026-03-28T23:30", "2026-03-30T02:00"), ["03-29T01:00", "03-30T00:30"]),
    ("0,30 2 * * *", BERLIN, ("2026-03-28T23:30", "2026-03-29T05:00"), ["03-29T01:00"]),
    ("15 30 2 * * *", BERLIN, ("2026-03-28T23:30", "2026-03-30T02:00"), ["03-29T01:00", "03-30T00:30:15"]),
    ("0 * * * *", BERLIN, ("2026-03-28T23:30", "2026-03-29T02:30"), ["03-29T00:00", "03-29T01:00", "03-29T02:00"]),
    ("*/30 * * * *", BERLIN, ("2026-03-29T00:20", "2026-03-29T01:40"), ["03-29T00:30", "03-29T01:00", "03-29T01:30"]),
    ("*/30 2 * * *", BERLIN, ("2026-03-28T23:30", "2026-03-29T05:00"), []),
    ("30 0 * * *", "Africa/Cairo", ("2026-04-23T20:00", "2026-04-24T23:00"), ["04-23T22:00", "04-24T21:30"]),
]  # fmt: skip
DAYS = [
    # B20: both restricted: either; one that begins with a star: both
    ("0 9 1,15 * fri", "UTC", ("2026-06-01T00:00", "2026-06-30T00:00"),
     ["06-01T09:00", "06-05T09:00", "06-12T09:00", "06-15T09:00", "06-19T09:00", "06-26T09:00"]),
    ("0 9 */2 * mon", "UTC", ("2026-06-01T00:00", "2026-06-30T00:00"), ["06-01T09:00", "06-15T09:00", "06-29T09:00"]),
    ("0 9 13 * *", "UTC", ("2026-06-01T00:00", "2026-06-30T00:00"), ["06-13T09:00"]),
    ("0 9 1-31 * mon", "UTC", ("2026-06-01T00:00", "2026-06-04T00:00"), ["06-01T09:00", "06-02T09:00", "06-03T09:00"]),
    ("0 0 * * 7", "UTC", ("2026-06-01T00:00", "2026-06-15T00:00"), ["06-07T00:00", "06-14T00:00"]),
    ("0 0 * * SUN", "UTC", ("2026-06-01T00:00", "2026-06-15T00:00"), ["06-07T00:00", "06-14T00:00"]),
    ("0 0 1 jan-mar *", "UTC", ("2026-01-01T01:00", "2027-01-01T00:00"), ["02-01T00:00", "03-01T00:00", "01-01T00:00"]),
    ("0 0 L * *", "UTC", ("2026-01-01T00:00", "2026-03-01T00:00"), ["01-31T00:00", "02-28T00:00"]),
    ("0 0 * * mon#2", "UTC", ("2026-06-01T00:00", "2026-07-01T00:00"), ["06-08T00:00"]),
    ("*/20 * * * * *", "UTC", ("2026-06-01T00:00", "2026-06-01T00:01"), ["06-01T00:00:20", "06-01T00:00:40", "06-01T00:01"]),
    ("@weekly", "UTC", ("2026-06-01T00:00", "2026-06-08T00:00"), ["06-07T00:00"]),
    ("@YEARLY", "UTC", ("2026-06-01T00:00", "2027-06-01T00:00"), ["01-01T00:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "zone", "span", "expected"), [*AUTUMN, *SPRING, *DAYS])
def test_an_expression_names_these_instants(
    expression: str, zone: str, span: tuple[str, str], expected: list[str]
) -> None:
    assert instants(expression, zone, *span) == expected


def test_every_ten_minutes_are_ten_real_minutes_through_a_repeated_hour() -> None:
    found = list(Cron("*/10 * * * *", ZoneInfo(NEW_YORK)).between(at("2026-11-01T04:30"), at("2026-11-01T08:30")))

    assert [after - before for before, after in pairwise(found)] == [600.0] * 23


def test_a_clock_that_is_stepped_through_a_repeated_hour_finds_each_instant_once() -> None:
    for expression, expected in [("0 * * * *", 4), ("*/10 * * * *", 24), ("30 1 * * *", 1), ("0 30 1 * * *", 1)]:
        cron = Cron(expression, ZoneInfo(NEW_YORK))
        moments = range(int(at("2026-11-01T04:30")), int(at("2026-11-01T08:30")), 30)

        found = [one for moment in moments for one in cron.between(moment, moment + 30)]

        assert len(found) == len(set(found)) == expected
        assert all(next(cron.after(moment)) > moment for moment in moments)


def test_the_29th_of_february_is_that_day_and_no_other() -> None:
    found = islice(Cron("0 0 29 2 *", ZoneInfo("UTC")).after(at("2026-01-01T00:00")), 2)

    assert [datetime.fromtimestamp(one, UTC).isoformat()[:10] for one in found] == ["2028-02-29", "2032-02-29"]


@pytest.mark.parametrize(
    "expression",
    ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "60 * * * *", "* * * *", "* * * * * * *", "@reboot", "x * * * *", "", "*/0 * * * *",
     "0 0 ? * *", "0 24 * * *", "0 0 * * 8", "5-1 * * * *"],
)  # fmt: skip
def test_what_can_never_come_to_pass_is_refused(expression: str) -> None:
    with pytest.raises(CronFault):
        Cron(expression, UTC)


def test_a_local_time_that_comes_twice_is_the_first_and_one_that_is_left_out_is_the_end_of_the_gap() -> None:
    berlin = ZoneInfo(BERLIN)

    twice = first_real(datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=1))
    never = first_real(datetime(2026, 3, 29, 2, 30, tzinfo=berlin))
    lord_howe = first_real(datetime(2026, 10, 4, 2, 10, tzinfo=ZoneInfo("Australia/Lord_Howe")))

    assert twice.astimezone(UTC).isoformat() == "2026-10-25T00:30:00+00:00"
    assert never.astimezone(UTC).isoformat() == "2026-03-29T01:00:00+00:00"
    assert lord_howe.astimezone(UTC).isoformat() == "2026-10-03T15:30:00+00:00"


@pytest.fixture
def process_zone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.parametrize("process_zone", ["UTC", "America/New_York"], indirect=True)
def test_times_mean_the_same_whatever_the_zone_of_the_process(process_zone: str) -> None:
    berlin = ZoneInfo(BERLIN)
    # B21
    given: list[str | datetime] = [
        "2026-07-01T09:00:00",
        "2026-07-01T09:00:00Z",
        "2026-07-01T09:00+05:30",
        "2026-10-25T02:30:00",
        "2026-03-29T02:30:00",
        datetime(2026, 7, 1, 9),
    ]
    moments = [read_moment(one, BERLIN) for one in given]
    moments.append(datetime.fromtimestamp(next(Cron("0 21 * * *", berlin).after(at("2026-07-01T12:00"))), UTC))

    assert time.tzname[0] == {"UTC": "UTC", "America/New_York": "EST"}[process_zone]
    assert [one.astimezone(UTC).strftime("%m-%dT%H:%M") for one in moments if isinstance(one, datetime)] == [
        "07-01T07:00",
        "07-01T09:00",
        "07-01T03:30",
        "10-25T00:30",
        "03-29T01:00",
        "07-01T07:00",
        "07-01T19:00",
    ]
