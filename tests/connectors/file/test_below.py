"""A folder that nothing leads out of."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from flowrt.connectors.file.below import read_below, write_below


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file and a folder, and a secret beside it."""
    made = tmp_path / "root"
    (made / "in").mkdir(parents=True)
    (made / "a.txt").write_text("a")
    (made / "in" / "b.txt").write_text("b")
    (tmp_path / "secret.txt").write_text("secret")
    return made


def test_files_below_it_are_read(root: Path) -> None:
    assert b"a" == read_below(root, "a.txt") == read_below(root, "./a.txt")
    assert b"b" == read_below(root, "in/b.txt") == read_below(root, "in//b.txt")


@pytest.mark.parametrize(
    "path",
    ["", " ", "/", ".", "..", "../secret.txt", "in/../../secret.txt", "in/..", "in/", "a\0.txt",
     "C:\\x", "C:x", "in\\b.txt", "//server/x"],
)  # fmt: skip
def test_other_paths_are_refused(root: Path, path: str) -> None:
    for path_ in (path, f"{root.parent}/secret.txt"):
        with pytest.raises(ValueError, match=r"is |must|has "):
            read_below(root, path_)
        with pytest.raises(ValueError, match=r"is |must|has "):
            write_below(root, path_, b"x", create_folders=True)
    assert "secret" == (root.parent / "secret.txt").read_text()


def test_links_that_lead_out_are_refused(root: Path) -> None:
    (root / "file").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent)
    (root / "up").symlink_to("../")
    (root / "chain").symlink_to("folder/secret.txt")
    (root / "new").symlink_to(root.parent / "made.txt")
    for path in ("file", "folder/secret.txt", "up/secret.txt", "chain", "new"):
        with pytest.raises(ValueError, match="is a link out of the root"):
            read_below(root, path)
        with pytest.raises(ValueError, match="is a link out of the root"):
            write_below(root, path, b"x")
    assert ["root", "secret.txt"] == sorted(os.listdir(root.parent))
    assert "secret" == (root.parent / "secret.txt").read_text()


def test_a_link_to_itself_is_an_error(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    for work in (lambda: read_below(root, "loop"), lambda: read_below(root, "loop/x")):
        with pytest.raises((OSError, ValueError)):
            work()


def test_links_that_stay_inside_are_followed(root: Path) -> None:
    # As Kubernetes mounts a ConfigMap.
    (root / "..data").symlink_to("in")
    (root / "b.txt").symlink_to("..data/b.txt")
    assert b"b" == read_below(root, "b.txt")
    write_below(root, "b.txt", b"new")
    assert ("new", True) == ((root / "in/b.txt").read_text(), (root / "b.txt").is_symlink())


def test_the_root_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert b"a" == read_below(tmp_path / "link", "a.txt")


def test_a_folder_swapped_for_a_link_leads_nowhere(root: Path) -> None:
    """Whoever swaps it all the time never gets what is outside."""
    (root.parent / "out").mkdir()
    (root.parent / "out" / "b.txt").write_text("secret")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "in", root / "kept")
            os.symlink(root.parent / "out", root / "in")
            os.unlink(root / "in")
            os.rename(root / "kept", root / "in")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    for _ in range(500):
        try:
            seen.add(read_below(root, "in/b.txt"))
        except (OSError, ValueError):
            continue
    stop.set()
    thread.join()
    assert {b"b"} >= seen


def test_what_is_written_is_for_its_owner_only(root: Path) -> None:
    os.chmod(root / "a.txt", 0o644)
    for path in ("a.txt", "new.txt"):
        write_below(root, path, b"x")
        assert 0o600 == stat.S_IMODE((root / path).stat().st_mode)
    write_below(root, "x/y/z.txt", b"x", create_folders=True)
    assert 0o700 == stat.S_IMODE((root / "x/y").stat().st_mode)


def test_readers_see_the_old_or_the_new_content(root: Path) -> None:
    sizes = set()
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            write_below(root, "a.txt", bytes([65 + number % 2]) * 300_000)

    write_below(root, "a.txt", b"A" * 300_000)
    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(100):
        content = read_below(root, "a.txt")
        sizes.add((len(content), len(set(content))))
    stop.set()
    thread.join()
    assert {(300_000, 1)} == sizes


def test_what_is_no_file_is_neither_read_nor_replaced(root: Path) -> None:
    os.mkfifo(root / "pipe")
    for path in ("pipe", "in"):
        with pytest.raises((ValueError, OSError)):
            read_below(root, path)
        with pytest.raises(ValueError, match="is not a file"):
            write_below(root, path, b"x")


def test_a_write_that_fails_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_below(root, "a.txt", b"new")
    assert ["a.txt", "in"] == sorted(os.listdir(root))
    assert "a" == (root / "a.txt").read_text()
