"""Leases as locks of the operating system on one byte of a file beside the database.

Nothing is written, and a process that is killed lets go at once. A POSIX lock belongs to the
process and is dropped when *any* descriptor of the file is closed, so a process opens each lock
file once, however many stores use it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from flowrt.errors import LeaseLost

# Two keys on one byte would only wait for each other. msvcrt counts in 31 bits, fcntl in 63.
_OFFSETS = 2**30 if sys.platform == "win32" else 2**62


class LockFile:
    """A lock file, shared by all stores of this process that name the same path."""

    _open: ClassVar[dict[str, LockFile]] = {}
    # Stores of one process may live in several event loops, each in a thread of its own.
    _guard: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, path: Path) -> None:
        self.path = path
        self._users = 0
        self._held: dict[int, object] = {}
        self._file = -1
        self._inode = (0, 0)

    @classmethod
    def acquire(cls, path: Path) -> LockFile:
        """The lock file at `path`, opened on its first lock. Give it back with `close`."""
        real = path.resolve()
        with cls._guard:
            lock = cls._open.setdefault(str(real), cls(real))
            lock._users += 1
            return lock

    def close(self) -> None:
        """Let go; the last user closes the file, and with it all locks."""
        with self._guard:
            self._users -= 1
            if self._users == 0:
                del self._open[str(self.path)]
                self._held.clear()
                self._shut()

    def try_lock(self, offset: int, holder: object) -> bool:
        """Lock one byte for `holder`, unless somebody holds it. Raises `OSError`."""
        with self._guard:
            if offset in self._held:
                return False
            # Twice: the file may be replaced between being opened and being locked.
            for _ in range(2):
                if not self._ready() or not _lock(self._file, offset):
                    return False
                if self.intact():
                    self._held[offset] = holder
                    return True
                _unlock(self._file, offset)
            return False

    def unlock(self, offset: int, holder: object) -> None:
        """Unlock a byte where `holder` holds it."""
        with self._guard:
            if self._held.get(offset) is holder:
                del self._held[offset]
                _unlock(self._file, offset)

    def holds(self, offset: int, holder: object) -> bool:
        """Whether `holder` has the byte, in a file that is still the one everybody locks."""
        with self._guard:
            return self._held.get(offset) is holder and self.intact()

    def intact(self) -> bool:
        """Whether the file is still the one at the path: locks on a removed file exclude nobody."""
        try:
            found = self.path.stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._inode

    def _ready(self) -> bool:
        if self._file >= 0 and not self.intact():
            if self._held:
                return False  # whoever holds the old file learns it at the next renewal
            self._shut()
        if self._file < 0:
            make_private_folder(self.path.parent)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            found = os.fstat(self._file)
            self._inode = (found.st_dev, found.st_ino)
        return True

    def _shut(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class FileLease:
    """A lease on a key. It does not expire: the lock lasts as long as the process."""

    def __init__(
        self, lock: LockFile, key: str, offset: int, on_lost: Callable[[], None] | None
    ) -> None:
        self.key = key
        self._lock = lock
        self._offset = offset
        self._on_lost = on_lost

    async def renew(self) -> None:
        if not self._lock.holds(self._offset, self):
            lost, self._on_lost = self._on_lost, None
            if lost is not None:
                lost()
            raise LeaseLost(
                f"the lease on {self.key!r} is gone: it was released, its store was closed, "
                f"or the lock file was removed ({self._lock.path})"
            )

    async def release(self) -> None:
        self._lock.unlock(self._offset, self)


def try_file_lease(
    lock: LockFile, space: str, key: str, on_lost: Callable[[], None] | None = None
) -> FileLease | None:
    """Claim `key` of `space`, or None where somebody holds it."""
    place = f"{space}\0{key}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(place, digest_size=8).digest()
    lease = FileLease(lock, key, int.from_bytes(digest, "big") % _OFFSETS, on_lost)
    return lease if lock.try_lock(lease._offset, lease) else None


def make_private_folder(folder: Path) -> None:
    """Create a folder and those above it where they are missing, for their owner only."""
    for part in (*reversed(folder.parents), folder):
        # `parents=True` would give those above the default permissions.
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, offset: int) -> bool:
        os.lseek(file, offset, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: int, offset: int) -> None:
        os.lseek(file, offset, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int, offset: int) -> bool:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(file: int, offset: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, offset)
