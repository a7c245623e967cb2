"""`sql`: ask or change a database."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from flowrt.connectors.database import DatabaseConnector
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import Expr
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import FlowError
from flowrt.message import Message


class SqlSettings(Settings):
    """Settings of `sql`."""

    connector: str = Field(min_length=1, description="The `database` connector.")
    query: str = Field(
        min_length=1, description="One statement, with `?` where a value goes. Never an expression."
    )
    args: list[Expr] = Field(
        default_factory=list, description="The values, in order: null, true, numbers and texts."
    )
    exec: bool = Field(default=False, description="Change something: gives {rowsAffected}.")
    single: bool = Field(default=False, description="Give the first row, or null, and no list.")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if self.exec and self.single:
            raise PydanticCustomError(
                "sql", "exec gives no rows, so there is no single one; leave one of them out"
            )
        return self


class Sql(Block[SqlSettings]):
    """Runs one statement; the body becomes its rows, a list of objects by column name.

    Values go beside the statement and are never a part of it, so that no text of a message can
    change what it does. Each statement is a transaction of its own.

    ```yaml
    - type: sql
      connector: orders
      query: SELECT id, total FROM orders WHERE customer = ? AND total > ?
      args: [body.customer, "100"]
    ```
    """

    Settings = SqlSettings

    def __init__(self, settings: SqlSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._database = site.connector(
            settings.connector, DatabaseConnector, "a database connector"
        )

    async def run(self, message: Message, run: Run) -> Message:
        settings = self.settings
        values = [_value(expr.value(message), index) for index, expr in enumerate(settings.args)]
        if settings.exec:
            message.body = {"rowsAffected": await self._database.execute(settings.query, values)}
        else:
            rows = await self._database.query(settings.query, values)
            message.body = (rows[0] if rows else None) if settings.single else rows
        message.raw = False
        message.body_schema = None
        return message


def _value(value: Any, index: int) -> Any:
    if isinstance(value, list | dict):
        kind = "list" if isinstance(value, list) else "map"
        raise FlowError(f"sql args[{index}]: a {kind} is no value of a database; write toJson(…)")
    return value
