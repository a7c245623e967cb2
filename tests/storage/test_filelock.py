"""Locks on bytes of a file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flowrt.errors import LeaseLost
from flowrt.storage.filelock import LockFile, make_private_folder, try_file_lease

ELSEWHERE = """
import sys
from pathlib import Path
from flowrt.storage.filelock import LockFile, try_file_lease
lock = LockFile.acquire(Path(sys.argv[1]))
print([try_file_lease(lock, "s", key) is not None for key in sys.argv[2:]])
"""


def elsewhere(path: Path, *keys: str) -> str:
    """Whether another process could claim these keys."""
    found = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(path), *keys],
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


async def test_a_lock_holds_against_other_processes_key_by_key(tmp_path: Path) -> None:
    lock = LockFile.acquire(tmp_path / "lock")
    lease = try_file_lease(lock, "s", "a")
    assert lease is not None
    assert "[False, True]" == elsewhere(tmp_path / "lock", "a", "b")
    await lease.release()
    assert "[True, True]" == elsewhere(tmp_path / "lock", "a", "b")
    lock.close()


async def test_one_user_that_closes_takes_no_lock_from_the_others(tmp_path: Path) -> None:
    ours = LockFile.acquire(tmp_path / "lock")
    (tmp_path / "link").symlink_to(tmp_path)
    theirs = LockFile.acquire(tmp_path / "link" / "lock")
    lease = try_file_lease(ours, "s", "a")
    assert lease is not None
    assert try_file_lease(theirs, "s", "a") is None
    theirs.close()
    assert "[False]" == elsewhere(tmp_path / "lock", "a")
    await lease.renew()
    ours.close()
    assert "[True]" == elsewhere(tmp_path / "lock", "a")


async def test_a_lock_in_a_file_that_was_replaced_is_lost(tmp_path: Path) -> None:
    lock = LockFile.acquire(tmp_path / "lock")
    lost: list[str] = []
    lease = try_file_lease(lock, "s", "a", lambda: lost.append("lost"))
    assert lease is not None
    (tmp_path / "lock").rename(tmp_path / "old")
    (tmp_path / "lock").touch()
    with pytest.raises(LeaseLost, match=f"'a'.*{tmp_path}/lock"):
        await lease.renew()
    assert ["lost"] == lost
    # Not before all who hold the old file know: closing it would drop their locks.
    assert try_file_lease(lock, "s", "b") is None
    await lease.release()
    again = try_file_lease(lock, "s", "b")
    assert again is not None
    assert "[False]" == elsewhere(tmp_path / "lock", "b")
    lock.close()


async def test_a_lease_that_outlives_its_store_is_lost(tmp_path: Path) -> None:
    lock = LockFile.acquire(tmp_path / "lock")
    lease = try_file_lease(lock, "s", "a")
    assert lease is not None
    lock.close()
    with pytest.raises(LeaseLost):
        await lease.renew()
    await lease.release()


def test_the_file_and_its_folders_are_for_their_owner_only_and_stay_empty(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        lock = LockFile.acquire(tmp_path / "a" / "b" / "lock")
        assert try_file_lease(lock, "s", "k") is not None
    finally:
        os.umask(before)
    path = tmp_path / "a" / "b" / "lock"
    assert 0o600 == path.stat().st_mode & 0o777
    assert [0o700] * 2 == [folder.stat().st_mode & 0o777 for folder in list(path.parents)[:2]]
    assert 0 == path.stat().st_size
    lock.close()


def test_a_folder_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    make_private_folder(tmp_path)
    assert 0o750 == tmp_path.stat().st_mode & 0o777


def test_a_file_is_not_opened_before_the_first_lock(tmp_path: Path) -> None:
    lock = LockFile.acquire(tmp_path / "lock")
    lock.close()
    assert not (tmp_path / "lock").exists()
