"""`database`: an SQL database that the `sql` block asks."""

from __future__ import annotations

import asyncio
import base64
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.engine.fields import Duration
from flowrt.errors import ConnectorError, FlowError
from flowrt.message import clean

T = TypeVar("T")

_BUSY = 10.0
"""Seconds that a statement waits for another process that writes."""

_LOOK_EVERY = 10_000
"""Steps of SQLite's machine between two looks at whether anybody still waits: well under 1 ms."""


def _driver(value: Any) -> Any:
    if value == "postgres":
        raise PydanticCustomError(
            "driver",
            "flowrt brings no driver for postgres: use sqlite, or bring a connector of your own "
            "(docs/architecture.md)",
        )
    return value


def _beside_the_file(dsn: str, info: ValidationInfo) -> str:
    """A relative path is one beside the YAML file, from wherever the service is started."""
    path, mark, options = dsn.removeprefix("file:").partition("?")
    if path == ":memory:" or info.context is None:
        return dsn
    located = str(info.context.config.root / path)
    return f"file:{located}{mark}{options}" if dsn.startswith("file:") else located


class DatabaseSettings(Settings):
    """Settings of `database`."""

    driver: Annotated[Literal["sqlite"], BeforeValidator(_driver)] = Field(description="`sqlite`.")
    dsn: Annotated[str, Field(min_length=1), AfterValidator(_beside_the_file)] = Field(
        description="The file, or `:memory:`. A relative path is beside the YAML file."
    )
    max_open_conns: int | None = Field(default=None, description="Taken; sqlite has one.")
    max_idle_conns: int | None = Field(default=None, description="Taken; sqlite has one.")
    conn_max_lifetime: Duration | None = Field(default=None, description="Taken; without effect.")


class DatabaseConnector(Connector[DatabaseSettings]):
    """An SQLite database, opened when the service starts and made where there is none.

    Statements are worked one after the other on one connection, each a transaction of its own.

    ```yaml
    connectors:
      - name: orders
        type: database
        settings:
          driver: sqlite
          dsn: orders.db
    ```
    """

    Settings = DatabaseSettings

    def __init__(self, name: str, settings: DatabaseSettings) -> None:
        super().__init__(name, settings)
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None

    async def start(self) -> None:
        self._thread = ThreadPoolExecutor(1, f"flowrt-{self.name}")
        try:
            self._connection = await self._do(self._open)
        except sqlite3.Error as error:
            raise ConnectorError(
                f"connector {self.name!r}: the database {self.settings.dsn!r} cannot be opened: "
                f"{error}; its folder must exist, and the file must be an SQLite database"
            ) from error

    async def stop(self) -> None:
        if self._connection is not None:
            await self._do(self._connection.close)
        if self._thread is not None:
            self._thread.shutdown(wait=False)
        self._connection = self._thread = None

    async def query(self, statement: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        """The rows, each as an object by column name. Raises `FlowError`."""

        def work(connection: sqlite3.Connection) -> list[dict[str, Any]]:
            with closing(connection.execute(statement, values)) as cursor:
                names = [column[0] for column in cursor.description or ()]
                return [dict(zip(names, map(_json, row), strict=True)) for row in cursor.fetchall()]

        return await self._run(work)

    async def execute(self, statement: str, values: Sequence[Any]) -> int:
        """Change something; how many rows were. Raises `FlowError`."""

        def work(connection: sqlite3.Connection) -> int:
            with closing(connection.execute(statement, values)) as cursor:
                return max(0, cursor.rowcount)

        return await self._run(work)

    def _open(self) -> sqlite3.Connection:
        dsn = self.settings.dsn
        connection = sqlite3.connect(
            dsn, timeout=_BUSY, isolation_level=None, uri=dsn.startswith("file:"),
            check_same_thread=False,
        )  # fmt: skip
        # Connecting alone reads nothing: a file that is no database would be found by a message.
        connection.execute("SELECT count(*) FROM sqlite_schema").close()
        return connection

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection
        if connection is None:
            raise FlowError(f"connector {self.name!r}: the database is not open")

        given_up = threading.Event()

        def alone() -> T:
            # Else a statement that nobody waits for any more would hold up all that follow.
            connection.set_progress_handler(given_up.is_set, _LOOK_EVERY)
            found = work(connection)
            if connection.in_transaction:
                connection.rollback()  # the next statement is another message's
                raise FlowError(
                    f"connector {self.name!r}: a transaction cannot stay open after its "
                    "statement; write one statement that does all of it"
                )
            return found

        try:
            return await self._do(alone)
        except asyncio.CancelledError:
            given_up.set()
            raise
        except (sqlite3.Error, OverflowError) as error:
            raise FlowError(f"connector {self.name!r}: {error}") from error

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return clean(value)
