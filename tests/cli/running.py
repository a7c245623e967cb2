"""`flowrt run` as an operator has it: a process with ports and signals."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
import yaml

from tests.cli.conftest import command, environment

PATIENCE = 30.0


class Running:
    """A process of `flowrt run`, its log read line by line. Killed where it outlives its test."""

    def __init__(self, folder: Path, *options: str, **environ: str) -> None:
        self.lines: list[dict[str, Any]] = []
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue()
        arguments = ["run", "--config", "service.yaml", "--admin", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(
            command(*arguments),
            cwd=folder,
            env=environment(HTTP_HOST="127.0.0.1", HTTP_PORT="0", **environ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            told = json.loads(line) if line.startswith("{") else {"event": line}
            self._queue.put(told)
        self._queue.put(None)

    def until(self, event: str) -> dict[str, Any]:
        """Wait for a log line and give it."""
        while (told := self._queue.get(timeout=PATIENCE)) is not None:
            self.lines.append(told)
            if told["event"].startswith(event):
                return told
        raise AssertionError(f"it ended without {event!r}: {self.lines}")

    def serving(self) -> tuple[str, str]:
        """Wait until it serves; the URLs of the service, "" without one, and of the admin port."""
        self.until("serving")
        urls = {line["server"]: line["url"] for line in self.lines if line["event"] == "listening"}
        admin = urls.pop("the admin port")
        return next(iter(urls.values()), ""), admin

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for the end; the exit code."""
        code = self.process.wait(PATIENCE)
        while (told := self._queue.get(timeout=PATIENCE)) is not None:
            self.lines.append(told)
        self._queue.put(None)
        return code


def write(folder: Path, document: dict[str, Any]) -> None:
    """Write the service, as an editor does: at once."""
    fresh = folder / ".service.yaml.new"
    fresh.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    fresh.replace(folder / "service.yaml")


def get(url: str, **options: Any) -> httpx2.Response:
    """One request on a connection of its own."""
    return httpx2.get(url, timeout=PATIENCE, **options)
