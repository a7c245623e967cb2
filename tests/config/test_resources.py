"""Resource ids stay below the folder of the config."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowrt.config.resources import Resources


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.txt").write_bytes("\ufeffhallo ü\r\nx".encode())
    (tmp_path / "secret.txt").write_text("secret")
    return Resources(root)


def test_a_resource_is_utf_8_text_with_plain_line_ends(resources: Resources) -> None:
    assert resources.read("sub/a.txt") == "hallo ü\nx"
    assert resources.read("./sub/a.txt") == "hallo ü\nx"


@pytest.mark.parametrize(
    "id_", ["../secret.txt", "sub/../../secret.txt", "/etc/passwd", "C:/x", "a\\b", "", "a\0b"]
)
def test_an_id_that_leads_out_or_is_none_is_refused(resources: Resources, id_: str) -> None:
    with pytest.raises(ValueError, match=r"resource"):
        resources.read(id_)


def test_a_link_out_of_the_folder_is_refused(resources: Resources, tmp_path: Path) -> None:
    (resources.root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (resources.root / "up").symlink_to(tmp_path)
    for id_ in ("link.txt", "up/secret.txt"):
        with pytest.raises(ValueError, match=r"link out of"):
            resources.read(id_)


def test_a_link_inside_the_folder_is_followed(resources: Resources) -> None:
    (resources.root / "link.txt").symlink_to(resources.root / "sub" / "a.txt")
    assert resources.read("link.txt") == "hallo ü\nx"


def test_a_folder_is_not_a_resource(resources: Resources) -> None:
    with pytest.raises(ValueError, match=r"'sub' is not a file"):
        resources.read("sub")


def test_a_missing_resource_is_an_os_error(resources: Resources) -> None:
    with pytest.raises(FileNotFoundError):
        resources.read("nope.txt")


def test_a_resource_that_is_not_utf_8_is_refused_with_its_place(resources: Resources) -> None:
    (resources.root / "b.txt").write_bytes(b"ab\n\xff")
    with pytest.raises(ValueError, match=r"b\.txt:2:1: the byte 0xff is not UTF-8"):
        resources.read("b.txt")
