"""The source `cron`: a message whenever a schedule says."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import Field

from flowrt.clock import Clock
from flowrt.engine.block import Settings
from flowrt.engine.fields import expr_over
from flowrt.engine.source import Deliver, Source, SourceSite
from flowrt.errors import FlowError
from flowrt.message import Message
from flowrt.observe.log import get_logger
from flowrt.sources.holder import Holder
from flowrt.sources.schedule import ScheduleField, Zone

if TYPE_CHECKING:
    from flowrt.engine.run import Runtime

LATE = 10.0
"""Seconds after which a time counts as missed: the process was stopped, or the machine asleep."""

_LONGEST_SLEEP = 60.0


class CronSettings(Settings):
    """Settings of the source `cron`."""

    schedule: ScheduleField = Field(
        description="Six fields (second minute hour day month weekday), `@every 5m`, `@hourly`, …"
    )
    # As text, which a schema can show; `Zone` makes the zone of it.
    timezone: Zone = Field(
        default="UTC", validate_default=True, description="Whose clocks the fields are read on."
    )
    payload: expr_over("settings") | None = Field(  # type: ignore[valid-type]
        default=None,
        description="The body, an expression over `now` and `settings`; else the body is null.",
    )
    correlation_id: str = Field(
        default="", alias="correlationID", description="The correlation id of each message."
    )


class Cron(Source[CronSettings]):
    """Sends a flow a message at every time of a schedule.

    Of several replicas on one store one does: it holds the lease `cron_<flow>` until it stops.
    While a run takes longer than the next time, that time is skipped with a log line; a time at
    which no process was there is not made up for. A run that fails leaves a log line.

    ```yaml
    source:
      type: cron
      settings:
        schedule: "0 */5 * * * *"
        payload: '{"at": string(now)}'
    ```
    """

    Settings = CronSettings

    def __init__(self, settings: CronSettings, site: SourceSite) -> None:
        super().__init__(settings, site)
        self._log = get_logger(f"flowrt.sources.{site.flow}")
        self._firing: asyncio.Task[None] | None = None

    async def start(self, deliver: Deliver, runtime: Runtime) -> None:
        self._runtime = runtime
        self._holder = Holder(runtime.storage.space("system"), f"cron_{self.site.flow}")
        self._firing = None
        self._ticking = runtime.spawn(self._tick(deliver), f"the schedule of {self.site.flow!r}")

    async def stop(self) -> None:
        self._ticking.cancel()
        await asyncio.wait([self._ticking])
        if self._firing is None or self._firing.done():
            await self._holder.release()
        else:
            # Until then another replica would run beside it.
            self._runtime.spawn(
                self._release_after(self._firing), f"the last run of {self.site.flow!r}"
            )

    async def _tick(self, deliver: Deliver) -> None:
        clock = self._runtime.clock
        due = self._after(clock.now())
        while True:
            await _until(due, clock)
            await self._due(due, clock.now(), deliver)
            due = self._after(max(due, clock.now()))

    async def _due(self, due: datetime, now: datetime, deliver: Deliver) -> None:
        at = due.isoformat()
        if (now - due).total_seconds() > LATE:
            self._log.warning("a scheduled time was missed", at=at, now=now.isoformat())
        elif self._firing is not None and not self._firing.done():
            self._log.warning(
                "a scheduled time was skipped; the run before it is still under way", at=at
            )
        elif await self._holder.holds():
            self._firing = self._runtime.spawn(self._fire(deliver), f"{self.site.flow!r} at {at}")

    async def _fire(self, deliver: Deliver) -> None:
        settings = self.settings
        message = Message(correlation_id=settings.correlation_id)
        try:
            if settings.payload is not None:
                shown = {"schedule": settings.schedule.text, "timezone": str(settings.timezone)}
                message.body = settings.payload.value(message, {"settings": shown})
            await deliver(message)
        except FlowError as error:
            self._log.error("a scheduled run failed", event_id=message.event_id, error=str(error))

    async def _release_after(self, firing: asyncio.Task[None]) -> None:
        try:
            await asyncio.wait([firing])
        finally:
            await self._holder.release()

    def _after(self, moment: datetime) -> datetime:
        return self.settings.schedule.after(moment, self.settings.timezone)


async def _until(due: datetime, clock: Clock) -> None:
    # In steps: what sleeps does not see the wall clock change.
    while (left := (due - clock.now()).total_seconds()) > 0:
        await clock.sleep(min(left, _LONGEST_SLEEP))
