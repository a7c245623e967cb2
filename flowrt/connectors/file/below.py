"""Reading and writing below a folder, whatever the path and the links in it say.

A path is resolved first, which is where a link out of the folder is refused; what that gives has no
links any more, and is then opened part by part without following any. A link that somebody puts in
between is an error and not a way out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath, PureWindowsPath

from flowrt.ids import new_id

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC


def parts_of(path: str) -> tuple[str, ...]:
    """The parts of a path below a folder.

    Raises `ValueError` for one that is empty, absolute or goes up.
    """
    if not path.strip() or "\0" in path:
        raise ValueError("is empty" if not path.strip() else "has a NUL character")
    if path.startswith("/") or "\\" in path or PureWindowsPath(path).drive:
        raise ValueError("must be a path below the root, with `/`")
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise ValueError("has a `..`")
    if not parts or path.endswith("/"):
        raise ValueError("is a folder")
    return parts


def read_below(root: Path, path: str) -> bytes:
    """The content of a file. Raises `ValueError` for a bad path, `OSError` if unreadable."""
    parts = _resolved(root, parts_of(path))
    with _folder_of(root, parts) as folder:
        # Not to wait for the other end where the file turns out to be a pipe.
        file = os.open(parts[-1], os.O_RDONLY | os.O_NONBLOCK | _FILE, dir_fd=folder)
        with os.fdopen(file, "rb") as opened:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise ValueError("is not a file")
            return opened.read()


def write_below(root: Path, path: str, content: bytes, *, create_folders: bool = False) -> None:
    """Replace the content of a file, or make it, all at once and for its owner only.

    Raises `ValueError` for a bad path, `OSError` if that cannot be done; then nothing is changed.
    """
    parts = _resolved(root, parts_of(path))
    with _folder_of(root, parts, create=create_folders) as folder:
        _refuse_what_is_no_file(parts[-1], folder)
        made = f".{new_id()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
        file = os.open(made, flags, 0o600, dir_fd=folder)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(file)
            os.rename(made, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(made, dir_fd=folder)
            raise
        os.fsync(folder)


def _resolved(root: Path, parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts once all links are followed. Raises `ValueError` where they lead out of `root`."""
    top = os.path.realpath(root)
    # Path.resolve raises for a link to itself in some versions of Python only.
    target = Path(os.path.realpath(Path(top, *parts)))
    if not target.is_relative_to(top) or target == Path(top):
        raise ValueError("is a link out of the root")
    return target.relative_to(top).parts


@contextmanager
def _folder_of(root: Path, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
    """The folder that the last part is in, open."""
    folder = os.open(os.path.realpath(root), _FOLDER)
    try:
        for part in parts[:-1]:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=folder)
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _refuse_what_is_no_file(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise ValueError("is not a file")
