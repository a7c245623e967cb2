"""When something is due: six fields with seconds, or an interval."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from flowrt.engine.fields import parse_duration

_NAMED = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
_EVERY = "@every"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Schedule:
    """Either of the two; `text` is how it was written."""

    def __init__(self, text: str) -> None:
        """Raises `ValueError` for a text that is no schedule, or one that is never due."""
        self.text = text
        self._interval = 0.0
        self._fields = ""
        if text.split(maxsplit=1)[:1] == [_EVERY]:
            self._interval = _interval(text.removeprefix(_EVERY).strip())
        else:
            self._fields = _fields(text)

    def after(self, moment: datetime, zone: tzinfo = UTC) -> datetime:
        """The first time after `moment`, in UTC; fields are read on the clocks of `zone`.

        Intervals count from 1970, so that every process, whenever it began, means the same times.
        """
        if self._interval:
            interval = timedelta(seconds=self._interval)
            return _EPOCH + interval * ((moment - _EPOCH) // interval + 1)
        return next(CronSim(self._fields, moment.astimezone(zone))).astimezone(UTC)


def _interval(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except PydanticCustomError as error:
        raise ValueError(f"@every: {error.message()}") from None
    if seconds < 1:
        raise ValueError("@every has a second at least")
    return seconds


def _fields(text: str) -> str:
    fields = _NAMED.get(text.lower().strip(), "" if text.startswith("@") else text).split()
    if len(fields) != 6:
        found = f", found {len(fields)}" if fields else ""
        hint = f"; `0 {' '.join(fields)}` is once a minute" if len(fields) == 5 else ""
        raise ValueError(
            "expected six fields (second minute hour day month weekday), @every 5m, @hourly, "
            f"@daily, @weekly, @monthly or @yearly{found}{hint}"
        )
    # Cron with seconds comes from a family where `?` says that the other day field decides.
    made = " ".join("*" if field == "?" else field for field in fields)
    try:
        # Years may pass between two times (29 February), but not all of them.
        if next(CronSim(made, _EPOCH), None) is None:
            raise ValueError("it is never due")
    except CronSimError as error:
        raise ValueError(str(error).lower()) from None
    return made


def _schedule(value: Any) -> Schedule:
    if not isinstance(value, str):
        raise PydanticCustomError("schedule", "expected a schedule, found {v}", {"v": repr(value)})
    try:
        return Schedule(str(value))
    except ValueError as error:
        text = f"{str(value)!r} is no schedule: {error}"
        raise PydanticCustomError("schedule", "{text}", {"text": text}) from None


def _zone(value: Any) -> tzinfo:
    # Known without the system's zones, which small containers lack.
    if value == "UTC":
        return UTC
    try:
        return ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError):
        raise PydanticCustomError(
            "timezone", "expected a time zone such as Europe/Berlin, found {v}", {"v": repr(value)}
        ) from None


ScheduleField = Annotated[
    Schedule,
    PlainValidator(_schedule),
    WithJsonSchema({"type": "string", "examples": ["0 */5 * * * *", "@every 5m", "@hourly"]}),
]
"""A setting that is a schedule."""

Zone = Annotated[
    tzinfo,
    PlainValidator(_zone),
    WithJsonSchema({"type": "string", "examples": ["UTC", "Europe/Berlin"]}),
]
"""A setting that is a time zone by its name."""
