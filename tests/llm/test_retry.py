from __future__ import annotations

from datetime import UTC, datetime

import pytest

from flowrt.errors import ModelUnavailable
from flowrt.llm.model import Reply
from flowrt.llm.retry import Transient, retry_after, with_retries

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Waits:
    """A clock on which waiting takes no time; `slept` are the waits."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Attempts:
    """Fails as often as there are waits asked for, then replies."""

    def __init__(self, *failures: float | None) -> None:
        self.failures = list(failures)
        self.made = 0

    async def __call__(self) -> Reply:
        self.made += 1
        if self.failures:
            raise Transient(ModelUnavailable("busy", status=529), self.failures.pop(0))
        return Reply([], "end_turn", "m")


async def run(
    attempts: Attempts, clock: Waits, *, retries: int = 9, patience: float = 600
) -> Reply:
    return await with_retries(
        attempts, retries=retries, patience=patience, clock=clock, name="claude"
    )


async def test_waits_double_from_half_a_second_to_eight() -> None:
    clock = Waits()

    await run(Attempts(*[None] * 7), clock)

    full = [0.5, 1, 2, 4, 8, 8, 8]
    assert 7 == len(clock.slept)
    for slept, longest in zip(clock.slept, full, strict=True):
        assert 0.75 * longest <= slept <= longest


async def test_after_the_last_retry_the_failure_says_how_often_was_tried() -> None:
    attempts = Attempts(*[None] * 9)

    with pytest.raises(ModelUnavailable, match=r"busy \(after 3 attempts\)") as caught:
        await run(attempts, Waits(), retries=2)

    assert 3 == attempts.made
    assert 529 == caught.value.status


async def test_without_retries_the_failure_is_told_as_it_is() -> None:
    with pytest.raises(ModelUnavailable, match=r"^busy$"):
        await run(Attempts(None), Waits(), retries=0)


async def test_a_provider_that_asks_to_come_back_tomorrow_parks_no_run() -> None:
    clock = Waits()

    with pytest.raises(ModelUnavailable, match=r"after 1 attempt, the next would be 86400 s away"):
        await run(Attempts(86_400), clock)

    assert [] == clock.slept


async def test_patience_covers_all_waits_together() -> None:
    clock = Waits()
    attempts = Attempts(40, 40, 40)

    with pytest.raises(ModelUnavailable):
        await run(attempts, clock, patience=100)

    assert [40, 40] == clock.slept


async def test_a_wait_of_nothing_still_backs_off() -> None:
    clock = Waits()

    await run(Attempts(0, -5), clock)

    assert [] == [wait for wait in clock.slept if wait <= 0]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "40", "retry-after": "9"}, 0.04),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT"}, 60),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_a_wait_is_read_from_seconds_milliseconds_and_dates(
    headers: dict[str, str], expected: float | None
) -> None:
    assert expected == retry_after(headers, NOW)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400"])
async def test_a_wait_that_is_no_number_parks_no_run(value: str) -> None:
    clock = Waits()

    with pytest.raises(ModelUnavailable):
        await run(Attempts(*[retry_after({"retry-after": value}, NOW)] * 9), clock, retries=2)

    assert [] == [wait for wait in clock.slept if not 0 < wait <= 8]
