"""`aggregate`: many messages in, one out."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from blocks.control.aggregate_group import Group, placed
from blocks.control.aggregate_store import Change, Groups, Kept
from flowrt.clock import Clock
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Duration, Expr, SubFlow
from flowrt.engine.run import Run, Runtime
from flowrt.engine.site import Site
from flowrt.errors import FlowError, StoreError, ThreadBusy
from flowrt.expr import Expression
from flowrt.message import Message
from flowrt.observe.log import get_logger
from flowrt.storage.lease import hold
from flowrt.storage.tiers import Space

_DAY = 86400.0


class _NoRoom(Exception):
    """There are as many groups as may be, and the message is to be dropped."""


class AggregateSettings(Settings):
    """Settings of `aggregate`."""

    correlation: Expr | None = Field(
        default=None,
        description="What the messages of a group have in common; unset, `vars.groupId`. Null, "
        "empty or blank is an error.",
    )
    strategy: Literal["append", "expression"] = Field(
        default="append",
        description="`append` makes a list of the bodies, each at its `vars.groupIndex`, else at "
        "the end; `expression` folds them.",
    )
    expression: Expr | None = Field(
        default=None,
        description="The fold: makes the new `acc`; `vars.group` is the group before the message. "
        "Required for, and only for, `expression`.",
    )
    completion_size: Expr | None = Field(
        default=None,
        description="How many messages make a group, -1 where this one does not know; unset, "
        "`vars.groupSize` where it is there.",
    )
    completion_expression: Expr | None = Field(
        default=None,
        description="Completes the group where true; `vars.group` is the group with the message.",
    )
    completion_timeout: Duration | None = Field(
        default=None, gt=0, description="How long a group may take before it is released as it is."
    )
    timeout_from: Literal["first", "last"] = Field(
        default="first", description="Whether that counts from its first or its newest message."
    )
    store_key: str | None = Field(
        default=None, min_length=1, description="Where groups are kept; unset, the block's address."
    )
    max_groups: int = Field(default=1000, ge=1, description="Groups that may be open.")
    on_overflow: Literal["fail", "complete", "drop"] = Field(
        default="fail",
        description="Where there are so many: fail the message, release the oldest group as it "
        "is, or drop the message.",
    )
    build_response: SubFlow | None = Field(
        default=None, description="Makes the caller's answer; without it, the message as it is."
    )


class Aggregate(Block[AggregateSettings]):
    """Collects messages in groups; each group goes through the rest of the flow as one message.

    Its body is the list of bodies, or what the fold made; `vars.aggregateKey`, `aggregateCount`
    and `aggregateReason` (`size`, `expression`, `timeout`, `overflow`) are its only variables.
    The caller of a message that was collected does not wait for that: its message goes to
    `buildResponse` and ends there. In expressions `vars.group` is `{key, count, size, acc, firstAt,
    lastAt, ageMs, idleMs}`.

    Groups are stored, and survive a restart; a group is released at most once. Timeouts are looked
    after while the sources of the service run, not by an `invoke`. Allowed in the `process` list of
    a flow only, not inside other blocks.

    ```yaml
    - type: aggregate
      correlation: body.orderId
      completionSize: body.lineCount
      completionTimeout: 10m
    - type: log
      message: '"order " + vars.aggregateKey + " is " + vars.aggregateReason'
    ```
    """

    Settings = AggregateSettings

    def __init__(self, settings: AggregateSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._rest = site.rest()
        _check(settings, site)
        self._correlation = settings.correlation or Expression.compile(
            "vars.groupId", scope=site.scope
        )
        self._store_key = settings.store_key or site.address
        site.unique("aggregate storeKey", self._store_key, ("storeKey",))
        timeout = settings.completion_timeout
        # A group whose flow is gone is released by nobody. The day is for a service that is down.
        self._groups = Groups(
            self._store_key,
            timeout + _DAY if timeout else None,
            whole=settings.completion_expression is not None and settings.expression is None,
        )
        self._log = get_logger(site.address)
        if timeout is not None:
            site.serve(self._release_late)
        self._response = None
        if settings.build_response is not None:
            self._response = site.chain(settings.build_response, "buildResponse")

    async def run(self, message: Message, run: Run) -> Message | None:
        space = run.storage.space("system")
        key = self._correlation.key(message, "aggregate correlation")
        now = _milliseconds(run.clock)
        size = self._size(message)
        try:
            made, elements = await self._groups.change(
                space,
                key,
                lambda kept: self._change(
                    kept or Kept(Group.begin(key, message, now), 0, []), message, size, now
                ),
                lambda: self._make_room(space, run),
            )
        except _NoRoom:
            self._log.warning("a message was dropped: too many groups", key=key)
            return None
        if made.reason:
            self._release(made.group, elements, made.reason, run)
        answer: Message | None = message
        if self._response is not None:
            answer = await self._response.run(message, run)
        if answer is not None:
            answer.stop = True
        return answer

    def _size(self, message: Message) -> int:
        if self.settings.completion_size is None:
            size = message.vars.get("groupSize", -1)
        else:
            size = self.settings.completion_size.value(message)
        # A size that was in a JSON document may be a float.
        if isinstance(size, bool) or not isinstance(size, int | float) or size != int(size):
            raise FlowError(f"aggregate completionSize must be a whole number, got {size!r}")
        return int(size)

    def _change(self, kept: Kept, message: Message, size: int, now: int) -> Change:
        group, element = kept.group, []
        if self.settings.expression is not None:
            beside = _beside(message, group.variable(group.fold, now))
            group.fold = self.settings.expression.value(beside)
        else:
            element = [group.element(message)]
        group.join(size, now)
        return Change(group, element, self._complete(group, kept.elements + element, message, now))

    def _complete(self, group: Group, elements: list[bytes], message: Message, now: int) -> str:
        """Why the group is complete; empty where it is not."""
        if 0 < group.size <= group.count:
            return "size"
        test = self.settings.completion_expression
        if test is None:
            return ""
        beside = _beside(message, group.variable(self._acc(group, elements), now))
        return "expression" if test.test(beside) else ""

    def _acc(self, group: Group, elements: list[bytes]) -> Any:
        return placed(elements) if self.settings.expression is None else group.fold

    async def _make_room(self, space: Space, run: Run) -> None:
        """Let one more group be opened, or raise."""
        limit = self.settings.max_groups
        if await self._groups.count(space, limit) < limit:
            return
        if self.settings.on_overflow == "fail":
            raise FlowError(
                f"aggregate has {limit} open groups, as many as maxGroups allows; let them end by "
                "completionTimeout, or choose another onOverflow"
            )
        if self.settings.on_overflow == "drop":
            raise _NoRoom
        every = [kept async for kept in self._groups.all(space)]
        oldest = min(every, key=lambda kept: kept.group.first_at)
        await self._take(space, oldest, "overflow", run)

    async def _take(self, space: Space, kept: Kept, reason: str, run: Run) -> None:
        """Release a group, unless others have changed it since it was read."""
        elements = await self._groups.take(space, kept)
        if elements is not None:
            self._release(kept.group, elements, reason, run)

    def _release(self, group: Group, elements: list[bytes], reason: str, run: Run) -> None:
        released = group.released(self._acc(group, elements), reason)
        work = self._continue(released, run.detached())
        run.runtime.spawn(work, f"group {group.key!r} of {self._store_key}")

    async def _continue(self, message: Message, run: Run) -> None:
        await self._rest.flow.run(message, run)

    async def _release_late(self, runtime: Runtime) -> None:
        """Release groups that took too long, as long as the service runs."""
        timeout = self.settings.completion_timeout
        assert timeout is not None
        run = Run(runtime, self._rest.flow.name)
        space = run.storage.space("system")
        while True:
            await runtime.clock.sleep(min(max(timeout / 4, 0.25), 5.0))
            try:
                # One replica looks. Held for one look only: whoever is up takes the next.
                async with hold(space, f"aggregate_{self._store_key}", wait=0):
                    await self._look(space, timeout, run)
            except ThreadBusy:
                continue
            except StoreError as error:
                self._log.warning("late groups were not released", error=str(error))

    async def _look(self, space: Space, limit: float, run: Run) -> None:
        late = _milliseconds(run.clock) - limit * 1000
        async for kept in self._groups.all(space):
            if self._since(kept) <= late:
                await self._take(space, kept, "timeout", run)

    def _since(self, kept: Kept) -> int:
        first = self.settings.timeout_from == "first"
        return kept.group.first_at if first else kept.group.last_at


def _check(settings: AggregateSettings, site: Site) -> None:
    if (settings.strategy == "expression") != (settings.expression is not None):
        wrong = "needs an expression" if settings.expression is None else "has no expression"
        field = "strategy" if settings.expression is None else "expression"
        raise site.refuse((field,), f"aggregate strategy {settings.strategy} {wrong}")
    if "timeout_from" in settings.model_fields_set and settings.completion_timeout is None:
        raise site.refuse(("timeoutFrom",), "timeoutFrom needs a completionTimeout")


def _beside(message: Message, group: dict[str, Any]) -> Message:
    """The message with the group as a variable, for expressions."""
    scope = message.scoped()
    scope.set("group", group)
    return scope


def _milliseconds(clock: Clock) -> int:
    return round(clock.now().timestamp() * 1000)
