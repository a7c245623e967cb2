"""Where a block stands: what its constructor may ask of the service being built."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from flowrt.engine.chain import Chain
from flowrt.engine.fields import Branch
from flowrt.engine.flow import FlowHandle

if TYPE_CHECKING:
    from flowrt.engine.build import Builder
    from flowrt.engine.run import Runtime
    from flowrt.expr import Scope, Template

T = TypeVar("T")


class Refusal(Exception):
    """A block cannot be built: `field` is the setting at fault, as a path of keys and indexes.

    An empty `found` says that the reason is reported elsewhere.
    """

    def __init__(self, field: tuple[str | int, ...], found: str, way_out: str = "") -> None:
        self.field = field
        self.found = found
        self.way_out = way_out
        super().__init__(found)


class Site:
    """A block's place in the service being built.

    `address` is `<flow>.<label>`, nested `<flow>.<composite>[<branch>].<label>` (dialect 7.3);
    `label` is the block's name, else its type; `named` is the name alone, maybe empty.
    """

    __slots__ = ("_builder", "_place", "address", "label", "named", "type")

    def __init__(
        self,
        builder: Builder,
        address: str,
        label: str,
        named: str,
        type_: str,
        place: int | None = None,
    ) -> None:
        self._builder = builder
        # Which step of its flow's root chain; None inside other blocks and in error chains.
        self._place = place
        self.address = address
        self.label = label
        self.named = named
        self.type = type_

    @property
    def scope(self) -> Scope:
        """What expressions of this service can see."""
        return self._builder.scope

    @property
    def pool(self) -> int:
        """How many branches of one message this flow works on at a time (`pool`)."""
        return self._builder.pool

    def chain(self, branch: Branch, slot: str, number: int | None = None) -> Chain:
        """Bind a chain setting; `slot` names it in addresses: `then`, or a case or tool.

        A branch of several that may have no name answers to its `number` as well.
        """
        name = f"{self.address}[{slot}]"
        return self._builder.chain(branch.blocks, name, number=number)

    def connector(
        self, name: str, kind: type[T], what: str, field: tuple[str | int, ...] = ("connector",)
    ) -> T:
        """The connector called `name`, which must be a `kind`; `what` says so in words."""
        found = self._builder.connectors.get(name)
        if found is None and name in self._builder.declared:
            raise Refusal(field, "")  # its own faults are reported where it stands
        if found is None:
            raise self.refuse(
                field,
                f'{self.type} block: connector "{name}" is not configured',
                self._builder.nearest_connector(name),
            )
        if not isinstance(found, kind):
            raise self.refuse(field, f'{self.type} block: connector "{name}" is not {what}')
        return found

    @property
    def connectors(self) -> frozenset[str]:
        """The names of the connectors that the service declares."""
        return frozenset(self._builder.declared)

    def flow(self, name: str, field: tuple[str | int, ...] = ("flow",)) -> FlowHandle:
        """A flow of this service, resolved once all flows are built."""
        return self._builder.flow_handle(name, field)

    def rest(self) -> FlowHandle:
        """What follows this block in its flow, as a flow: for messages that the block makes.

        Only a block of the flow's own `process` list has one.
        """
        if self._place is None:
            raise self.refuse(
                (),
                f"{self.type} is allowed in the process list of a flow only",
                "move what is around it, or its blocks, to a flow and call that by flow-ref",
            )
        return self._builder.rest_handle(self._place)

    def serve(self, work: Callable[[Runtime], Coroutine[Any, Any, None]]) -> None:
        """Have `work` done from the start of the service to its stop, when it is cancelled.

        Only a service whose sources run does it: an `invoke` has no time for it.
        """
        self._builder.background.append((self.address, work))

    def unique(self, what: str, name: str, field: tuple[str | int, ...]) -> None:
        """Refuse a `name` that another block of the service has as its `what`."""
        self._builder.unique(what, name, field)

    def template(self, resource: str, field: tuple[str | int, ...]) -> Template:
        """A declared template resource, by alias or id, compiled."""
        return self._builder.template(resource, field)

    def refuse(self, field: tuple[str | int, ...], found: str, way_out: str = "") -> Refusal:
        """The exception to raise where a setting cannot work, with the place of that setting."""
        return Refusal(field, found, way_out)
