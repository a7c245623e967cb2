"""Schedules: when each is due next."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from flowrt.sources.schedule import Schedule

BERLIN = ZoneInfo("Europe/Berlin")


def after(text: str, moment: str, zone: ZoneInfo | None = None) -> str:
    begin = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    return Schedule(text).after(begin, zone or UTC).strftime("%Y-%m-%dT%H:%M:%S")


@pytest.mark.parametrize(
    ("text", "moment", "due"),
    [
        ("* * * * * *", "2026-01-01T00:00:00", "2026-01-01T00:00:01"),
        ("*/10 * * * * *", "2026-01-01T00:00:59.9", "2026-01-01T00:01:00"),
        ("5/20 * * * * *", "2026-01-01T00:00:25", "2026-01-01T00:00:45"),
        ("0 30 9 * * MON-FRI", "2026-01-02T09:30:00", "2026-01-05T09:30:00"),
        ("0 0 0 ? * 7", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("0 0 12 1 jan,Jul ?", "2026-01-01T12:00:00", "2026-07-01T12:00:00"),
        ("0 0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 0 L * *", "2026-02-01T00:00:00", "2026-02-28T00:00:00"),
        ("0 0 0 13 * FRI", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
        ("@hourly", "2026-01-01T00:00:00", "2026-01-01T01:00:00"),
        ("@Daily", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
        ("@weekly", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("@monthly", "2026-01-31T00:00:00", "2026-02-01T00:00:00"),
        ("@yearly", "2026-01-01T00:00:00", "2027-01-01T00:00:00"),
        ("@every 5m", "2026-01-01T00:00:00", "2026-01-01T00:05:00"),
        ("@every 5m", "2026-01-01T00:04:59.999999", "2026-01-01T00:05:00"),
        ("@every  1h30m", "2026-01-01T00:00:00", "2026-01-01T01:30:00"),
    ],
)
def test_the_next_time(text: str, moment: str, due: str) -> None:
    assert due == after(text, moment)


def test_an_interval_means_the_same_times_whenever_a_process_began() -> None:
    moments = ("2026-01-01T10:02:00", "2026-01-01T10:05:21", "2026-01-01T10:08:59")
    assert {"2026-01-01T10:09:00"} == {after("@every 7m", each) for each in moments}


@pytest.mark.parametrize(
    ("text", "moment", "due"),
    [
        ("0 0 9 * * *", "2026-01-01T00:00:00", "2026-01-01T08:00:00"),
        ("0 0 9 * * *", "2026-07-01T00:00:00", "2026-07-01T07:00:00"),
        # 2:30 is not there on 29 March 2026.
        ("0 30 2 * * *", "2026-03-28T12:00:00", "2026-03-30T00:30:00"),
        # 2:30 is there twice on 25 October 2026.
        ("0 30 2 * * *", "2026-10-25T00:29:59", "2026-10-25T00:30:00"),
        ("0 0 * * * *", "2026-10-25T00:30:00", "2026-10-25T01:00:00"),
    ],
)
def test_fields_are_read_on_the_clocks_of_the_zone(text: str, moment: str, due: str) -> None:
    assert due == after(text, moment, BERLIN)


def test_times_follow_one_another_for_a_year() -> None:
    schedule, moment = Schedule("0 15 3 * * *"), datetime(2026, 1, 1, tzinfo=UTC)
    seen = set()
    while moment.year == 2026:
        moment = schedule.after(moment, BERLIN)
        seen.add(moment.astimezone(BERLIN).date())
    assert 366 == len(seen)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected six fields"),
        ("*/5 * * * *", "found 5; `0 */5 * * * *` is once a minute"),
        ("* * * * * * *", "found 7"),
        ("60 * * * * *", "bad second"),
        ("0 * 24 * * *", "bad hour"),
        ("0 0 0 30 2 *", "bad day-of-month"),
        ("0 0 0 0 * *", "bad day-of-month"),
        ("0 0 0 * * FOO", "bad day-of-week"),
        ("*/0 * * * * *", "bad second"),
        ("@sometimes", "expected six fields"),
        ("@every", "expected a duration"),
        ("@every soon", "expected a duration such as 30s"),
        ("@every -5m", "cannot be negative"),
        ("@every 10ms", "a second at least"),
        ("@every 0", "a second at least"),
    ],
)
def test_what_is_no_schedule(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        Schedule(text)
