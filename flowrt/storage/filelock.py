"""Leases as locks of the operating system on one byte of a file beside the database.

Nothing is written, and a process that is killed lets go at once. A POSIX lock belongs to the
process and is dropped when *any* descriptor of the file is closed, so a process opens each lock
file once, however many stores use it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from flowrt.errors import LeaseLost

# fcntl takes offsets up to 2^63 - 1; two keys on one byte would only wait for each other.
_OFFSETS = 2**62


class LockFile:
    """A lock file, shared by all stores of this process that name the same path."""

    _open: dict[str, LockFile] = {}  # noqa: RUF012 - one descriptor a process, see above

    def __init__(self, path: Path) -> None:
        self.path = path
        self._users = 0
        self._held: set[int] = set()
        self._file = -1
        self._inode = -1

    @classmethod
    def acquire(cls, path: Path) -> LockFile:
        """The lock file at `path`, opened where it is not yet. Give it back with `close`."""
        key = str(path.resolve())
        lock = cls._open.setdefault(key, cls(Path(key)))
        lock._users += 1
        return lock

    def close(self) -> None:
        """Let go; the last user closes the file."""
        self._users -= 1
        if self._users == 0:
            self._open.pop(str(self.path), None)
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def try_lock(self, offset: int) -> bool:
        """Lock one byte, unless somebody holds it."""
        if offset in self._held:
            return False
        if not self._ready() or not _lock(self._file, offset):
            return False
        self._held.add(offset)
        return True

    def unlock(self, offset: int) -> None:
        """Unlock a byte that `try_lock` locked."""
        if offset in self._held:
            self._held.discard(offset)
            _unlock(self._file, offset)

    def intact(self) -> bool:
        """Whether the file is still the one at the path: locks on a removed file exclude nobody."""
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def _ready(self) -> bool:
        if self._file >= 0 and not self.intact():
            if self._held:
                return False  # those who hold locks on the old file learn it at their renewal
            os.close(self._file)
            self._file = -1
        if self._file < 0:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            self._inode = os.fstat(self._file).st_ino
        return True


class FileLease:
    """A lease on a key. It does not expire: the lock lasts as long as the process."""

    def __init__(self, lock: LockFile, key: str, offset: int) -> None:
        self.key = key
        self._lock = lock
        self._offset = offset
        self._released = False
        self._on_lost: Callable[[], None] | None = None

    async def renew(self) -> None:
        if self._released or not self._lock.intact():
            if self._on_lost is not None:
                self._on_lost()
                self._on_lost = None
            raise LeaseLost(f"the lock file of {self.key!r} was removed: {self._lock.path}")

    async def release(self) -> None:
        if not self._released:
            self._released = True
            self._lock.unlock(self._offset)


def try_file_lease(
    lock: LockFile, space: str, key: str, on_lost: Callable[[], None] | None = None
) -> FileLease | None:
    """Claim `key` of `space`, or None where somebody holds it."""
    digest = hashlib.blake2b(f"{space}\0{key}".encode("utf-8", "surrogatepass"), digest_size=8)
    offset = int.from_bytes(digest.digest(), "big") % _OFFSETS
    if not lock.try_lock(offset):
        return None
    lease = FileLease(lock, key, offset)
    lease._on_lost = on_lost
    return lease


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
