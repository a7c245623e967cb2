"""From a loaded config to bound chains: every fault of the file is found here, all in one go."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from flowrt.config.faults import faults_from, nearest
from flowrt.config.fold import resolve_block
from flowrt.config.load import Config
from flowrt.config.load import Flow as FlowConfig
from flowrt.config.nodes import Items, Table, Text
from flowrt.engine import registry
from flowrt.engine.block import Settings
from flowrt.engine.chain import Chain, RestOfChain, Step
from flowrt.engine.connector import AnyConnector
from flowrt.engine.flow import Flow, FlowHandle
from flowrt.engine.missing import refusal
from flowrt.engine.run import Runtime
from flowrt.engine.site import Refusal, Site
from flowrt.engine.source import AnySource, SourceSite
from flowrt.engine.source_type import connector_name, source_type
from flowrt.errors import ConfigError, ExpressionError, Fault, Position
from flowrt.expr import Scope, Template, Templates

Background = Callable[[Runtime], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Built:
    """A service bound and ready to start."""

    flows: dict[str, Flow]
    connectors: dict[str, AnyConnector]
    chains: list[Chain]
    """Every chain, the inner ones first."""
    scope: Scope
    """What expressions see, as those of the blocks do."""
    sources: dict[str, AnySource]
    """By the flow they feed."""
    unknown_sources: list[Fault]
    """Sources of types that are not installed: their flows can be called, and not be served."""
    background: list[tuple[str, Background]]
    """What blocks do while the service runs, by their address."""


StandIn = Callable[[AnyConnector], AnyConnector]
"""Gives what blocks use in the place of a connector: the connector itself, or what plays it."""


def build(
    config: Config, faults: Sequence[Fault] = (), *, stand_in: StandIn | None = None
) -> Built:
    """Bind every connector and flow; `stand_in` is asked for each connector, once it is made.

    Raises `ConfigError` with all faults, those found before (`faults`) among them, in file order.
    """
    return Builder(config, faults, stand_in).build()


class Builder:
    """One build. Also what pydantic hands to the validators of settings, as their context."""

    def __init__(
        self, config: Config, faults: Sequence[Fault] = (), stand_in: StandIn | None = None
    ) -> None:
        self.config = config
        names = [name for item in config.templates for name in (item.name, item.resource)]
        self.scope = Scope(config.env.values, templates=Templates(names))
        self.connectors: dict[str, AnyConnector] = {}
        self.faults = list(faults)
        self.declared = {connector.name for connector in config.connectors}
        self._handles: list[tuple[FlowHandle, Position | None, str]] = []
        self.background: list[tuple[str, Background]] = []
        self._unique: dict[tuple[str, str], Position | None] = {}
        self._rests: list[tuple[FlowHandle, int]] = []
        self._chains: list[Chain] = []
        self._stand_in = stand_in
        self._unknown_sources: list[Fault] = []
        # Set while a block's constructor runs, so that what it asks for is blamed on its setting.
        self._settings: Table | None = None
        # The flow whose blocks are being built.
        self._flow: FlowConfig | None = None

    @property
    def pool(self) -> int:
        """How many branches of one message the flow being built works on at a time."""
        assert self._flow is not None
        return self._flow.pool

    def build(self) -> Built:
        self._compile_templates()
        for connector in self.config.connectors:
            self._add_connector(connector)
        flows: dict[str, Flow] = {}
        sources: dict[str, AnySource] = {}
        for flow in self.config.flows:
            self._flow = flow
            chain = self.chain(flow.process, flow.name, root=True)
            recovery = self.chain(flow.error, f"{flow.name}[error]") if flow.error else None
            flows[flow.name] = Flow(flow.name, chain, recovery)
            self._resolve_rests(flows[flow.name])
            if flow.source is not None and (source := self._source(flow, flow.source)) is not None:
                sources[flow.name] = source
        self._resolve_handles(flows)
        if self.faults:
            raise ConfigError(sorted(self.faults, key=_file_order))
        return Built(
            flows,
            self.connectors,
            self._chains,
            self.scope,
            sources,
            self._unknown_sources,
            self.background,
        )

    def chain(
        self, blocks: list[Any], at: str, *, root: bool = False, number: int | None = None
    ) -> Chain:
        """Bind a list of blocks whose addresses start with `at`; `root`: a flow's `process`."""
        steps = (
            self._step(blocks, index, at, index if root else None) for index in range(len(blocks))
        )
        chain = Chain([step for step in steps if step is not None], at, number)
        self._chains.append(chain)
        return chain

    def flow_handle(self, name: str, field: tuple[str | int, ...]) -> FlowHandle:
        """A flow by name, resolved when all are built."""
        handle = FlowHandle(name)
        position, path = self._place(field)
        self._handles.append((handle, position, path))
        return handle

    def rest_handle(self, place: int) -> FlowHandle:
        """What follows a step of the root chain being built, resolved when that is built."""
        assert self._flow is not None
        handle = FlowHandle(self._flow.name)
        self._rests.append((handle, place))
        return handle

    def unique(self, what: str, name: str, field: tuple[str | int, ...]) -> None:
        """Refuse what two blocks call the same."""
        position, _ = self._place(field)
        key = (what, name)
        if key in self._unique:
            first = self._unique[key]
            raise Refusal(
                field,
                f'two blocks have the {what} "{name}"',
                f"the first is at {first}; rename one",
            )
        self._unique[key] = position

    def template(self, resource: str, field: tuple[str | int, ...]) -> Template:
        """A declared template by alias or id, compiled."""
        if missing := self.scope.templates.missing(resource):
            found, _, way_out = missing.partition("; ")
            raise Refusal(field, found, way_out)
        template = self.scope.templates.get(resource)
        if template is None:
            raise Refusal(field, "")  # its own faults are reported where it stands
        return template

    def nearest_connector(self, name: str) -> str:
        """A way out for a connector that is not there."""
        close = nearest(name, list(self.connectors))
        if close:
            return f"did you mean {close!r}?"
        return "declare it under `connectors:`"

    def _compile_templates(self) -> None:
        """Read and compile every declared template, whether anything uses it or not."""
        declared = self.config.templates
        made = {item.resource: self._compiled(item.resource) for item in declared}
        # An alias goes before the id of another template.
        ids = [(item.resource, item.resource) for item in declared]
        for name, id_ in [*ids, *((item.name, item.resource) for item in declared)]:
            if (template := made[id_]) is not None:
                self.scope.templates.add(name, template)

    def _compiled(self, id_: str) -> Template | None:
        try:
            text = self.config.resources.read(id_)
        except (OSError, ValueError):
            return None  # reported with its declaration
        errors: list[ExpressionError] = []
        template = Template.compile(text, Position(id_, 1, 1), self.scope, errors)
        for error in errors:
            found = str(error).removeprefix(f"{error.position}: ")
            self.faults.append(Fault(error.position, "", found))
        return None if errors else template

    def _add_connector(self, declared: Any) -> None:
        table = declared.table
        kind = self._class(registry.connectors, declared.type, table, "connector")
        if kind is None:
            return
        settings = self._settings_of(kind.Settings, table.get("settings"), table)
        if settings is None:
            return
        try:
            self._put_in(kind(declared.name, settings))
        except ExpressionError as error:
            self.faults.append(Fault(table.position, table.path, str(error)))

    def _source(self, flow: FlowConfig, table: Table) -> AnySource | None:
        name = source_type(table, self.config.connectors)
        try:
            kind = registry.sources.get(name)
        except registry.UnknownType as unknown:
            self._unknown_sources.append(_unknown("source", unknown, table))
            return None
        settings = self._settings_of(kind.Settings, table.get("settings"), table)
        if settings is None:
            return None
        self._settings = table
        try:
            connector = self._connector_of(name, table, table.get("connector"))
            self._settings = own = table.get("settings") or table
            server = None
            if (key := kind.listens_on(settings)) is not None:
                server = self._connector_of(key, table, own.get(key), key)
            site = SourceSite(flow.name, flow.workers, flow.buffer, connector, server)
            source: AnySource = kind(settings, site)
        except Refusal as refusal:
            self._refused(refusal)
            return None
        finally:
            self._settings = None
        return source

    def _connector_of(
        self, name: str, table: Table, asked: object, key: str = "connector"
    ) -> AnyConnector | None:
        """What a source of the type `name` stands on; a default one where none is declared."""
        chosen = connector_name(name, asked, self.config.connectors, key)
        if chosen is None and name in registry.connectors.names():
            chosen = name
            if chosen not in self.connectors and chosen not in self.declared:
                self._add_default(name, table)
        if chosen is None:
            return None
        if chosen not in self.connectors:
            raise Refusal((), "")  # its own faults are reported where it stands
        return self.connectors[chosen]

    def _add_default(self, name: str, table: Table) -> None:
        """A connector that the file does not declare, under the name of its type."""
        kind = registry.connectors.get(name)
        fields = kind.Settings.model_fields.items()
        if needed := [field.alias or key for key, field in fields if field.is_required()]:
            raise Refusal(
                ("type",),
                f"the source needs a connector of the type {name!r}, and none is declared",
                f"declare one under `connectors:`, with {', '.join(needed)}",
            )
        settings = self._settings_of(kind.Settings, None, table)
        if settings is not None:
            self._put_in(kind(name, settings))

    def _put_in(self, connector: AnyConnector) -> None:
        """Give blocks and sources a connector by its name, or what stands in for it."""
        if self._stand_in is not None:
            connector = self._stand_in(connector)
        self.connectors[connector.name] = connector

    def _refused(self, refusal: Refusal) -> None:
        if refusal.found:
            position, path = self._place(refusal.field)
            self.faults.append(Fault(position, path, refusal.found, way_out=refusal.way_out))

    def _step(self, blocks: list[Any], index: int, at: str, root: int | None) -> Step | None:
        place: Any = {}
        if isinstance(blocks, Items):
            place = {"position": blocks.item_positions[index], "path": f"{blocks.path}[{index}]"}
        resolved = resolve_block(blocks[index], self.config.processors, **place)
        if resolved.faults:
            self.faults += resolved.faults
            return None
        kind = self._class(registry.blocks, resolved.type, resolved.table, "block")
        if kind is None:
            return None
        settings = self._settings_of(kind.Settings, resolved.settings, resolved.table)
        if settings is None:
            return None
        label = resolved.label
        address = f"{at}.{label}"
        site = Site(self, address, label, resolved.name, resolved.type, root)
        outer, self._settings = self._settings, resolved.settings
        try:
            block = kind(settings, site)
        except Refusal as refusal:
            self._refused(refusal)
            return None
        finally:
            self._settings = outer
        return Step(label, address, resolved.type, block, str(resolved.table.get("ref") or ""))

    def _class(self, types: registry.Registry, name: str, table: Table, what: str) -> Any:
        try:
            return types.get(name)
        except registry.UnknownType as unknown:
            self.faults.append(_unknown(what, unknown, table))
            return None

    def _settings_of(
        self, kind: type[Settings], table: Table | None, owner: Table
    ) -> Settings | None:
        if table is None:
            table = Table(owner.position, owner.path)
        try:
            return kind.model_validate(table, context=self)
        except ValidationError as error:
            self.faults += faults_from(error, table, kind)
            return None

    def _place(self, field: tuple[str | int, ...]) -> tuple[Position | None, str]:
        table = self._settings
        if table is None:
            return None, ""
        return place_in(table, field)

    def _resolve_rests(self, flow: Flow) -> None:
        for handle, place in self._rests:
            handle.flow = Flow(flow.name, RestOfChain(flow.chain, place + 1), flow.error)
        self._rests.clear()

    def _resolve_handles(self, flows: dict[str, Flow]) -> None:
        for handle, position, path in self._handles:
            if handle.name in flows:
                handle.flow = flows[handle.name]
                continue
            close = nearest(handle.name, list(flows))
            self.faults.append(
                Fault(
                    position,
                    path,
                    f'flow "{handle.name}" is not defined',
                    way_out=f"did you mean {close!r}?" if close else "",
                )
            )


def place_in(table: Table, field: tuple[str | int, ...]) -> tuple[Position, str]:
    """The position and the reader's path of a setting below `table`, as near as it exists."""
    node: Any = table
    position, path = table.position, table.path
    for part in field:
        if isinstance(node, Table) and part in node:
            key = str(part)
            position, path = node.value_positions[key], node.path_of(key)
            node = node[key]
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
            path = f"{path}[{part}]"
            position = node.position if isinstance(node, Table | Text) else position
        else:
            break
    return position, path


def _unknown(what: str, unknown: registry.UnknownType, table: Table) -> Fault:
    # A source may be named by `connector` alone, and a block by `ref`.
    key = next((key for key in ("type", "connector", "ref") if key in table), "type")
    found, way_out = refusal(what, unknown)
    return Fault(
        table.value_positions.get(key, table.position), table.path_of(key), found, way_out=way_out
    )


def _file_order(fault: Fault) -> tuple[str, int, int]:
    return (*fault.position,) if fault.position else ("", 0, 0)
