"""Where environment values come from, and which of them are secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flowrt.config.env import looks_secret
from flowrt.errors import CallError, Position

if TYPE_CHECKING:
    from tests.config.conftest import Folder

FLOW = "flows:\n  - name: chat\n    process: []\n"


def test_the_environment_wins_over_env_files_and_later_files_over_earlier(folder: Folder) -> None:
    for name in (".env", "named.env", "given.env", "listed.env"):
        folder.write(name, "".join(f"{key}={name}\n" for key in "ABCDE"))
    folder.write("listed.env", "D=listed.env\n")
    folder.write("given.env", "D=given.env\nC=given.env\n")
    folder.write("named.env", "D=named.env\nC=named.env\nB=named.env\n")
    text = "resources: {env: [absent.env, listed.env]}\nenv:\n"
    text += "".join(f"  - {{name: {key}, default: default}}\n" for key in "ABCDEF")
    config = folder.load(
        text, {"FLOWRT_ENV_FILE": "named.env", "E": "environment"}, env_file="given.env"
    )
    assert config.env.values == {
        "A": ".env",
        "B": "named.env",
        "C": "given.env",
        "D": "listed.env",
        "E": "environment",
        "F": "default",
    }


def test_only_declared_variables_are_values(folder: Folder) -> None:
    folder.write(".env", "OTHER=1\n")
    assert folder.load("service: {name: x}\n", {"HOME": "/"}).env.values == {}


def test_octos_name_for_the_env_file_is_known(folder: Folder) -> None:
    folder.write("octo.env", "A=octo\n")
    config = folder.load("env: [{name: A}]\n", {"OCTO_ENV_FILE": "octo.env"})
    assert config.env.values == {"A": "octo"}


def test_an_env_file_that_was_asked_for_must_exist(folder: Folder) -> None:
    with pytest.raises(CallError, match=r"the env file 'nope\.env' does not exist"):
        folder.load("service: {name: x}\n", env_file="nope.env")


def test_an_unparsable_env_file_is_a_fault_in_that_file(folder: Folder) -> None:
    folder.write(".env", "A=1\nnonsense\n")
    (fault,) = folder.faults("service: {name: x}\n")
    assert Position(".env", 2, 1) == fault.position


def test_an_env_resource_that_climbs_out_is_a_fault(folder: Folder) -> None:
    (fault,) = folder.faults("resources:\n  env:\n    - ../x.env\n")
    assert (fault.position.line if fault.position else 0) == 3
    assert "climbs out" in fault.found
    assert fault.path == "resources.env[0]"


def test_an_env_resource_that_cannot_be_read_is_a_fault_where_it_is_listed(folder: Folder) -> None:
    (folder.path / "sub").mkdir()
    (fault,) = folder.faults("resources:\n  env:\n    - none.env\n    - sub\n")
    assert fault.path == "resources.env[1]"
    assert fault.found == "the env file 'sub' cannot be read: Is a directory"


def test_a_folder_called_like_the_env_file_is_passed_over(folder: Folder) -> None:
    (folder.path / ".env").mkdir()
    assert folder.load("service: {name: x}\n").name == "x"


def test_an_env_file_that_was_named_and_cannot_be_read_is_refused(folder: Folder) -> None:
    (folder.path / "sub").mkdir()
    with pytest.raises(CallError, match="the env file 'sub' cannot be read: Is a directory"):
        folder.load("service: {name: x}\n", {"FLOWRT_ENV_FILE": "sub"})


def test_secrets_are_known_by_declaration_and_by_name(folder: Folder) -> None:
    names = ["API_KEY", "SLACK_BOT_TOKEN", "DB_PASSWORD", "CLIENT_SECRET", "MONKEY", "PORT"]
    text = "".join(f"  - {{name: {name}, default: x}}\n" for name in names)
    text += "  - {name: PLAIN, default: x, secret: true}\n"
    text += "  - {name: PUBLIC_KEY, default: x, secret: false}\n"
    assert {*names[:4], "PLAIN"} == set(folder.load(f"env:\n{text}").env.secrets)


@pytest.mark.parametrize(
    "name",
    ["KEY", "API_KEY", "OPENAI_APIKEY", "AWS_SECRET_ACCESS_KEY", "SLACK_BOT_TOKEN", "TOKEN",
     "API_TOKEN_2", "SLACK_SIGNING_SECRET", "CLIENT_SECRET", "DB_PASSWORD", "PGPASSWORD", "DB_PASS",
     "db_pwd", "GOOGLE_CREDENTIALS", "SENTRY_DSN", "KEYS"],
)  # fmt: skip
def test_a_name_that_ends_in_a_word_for_a_secret_is_one(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    ["MONKEY", "MAX_TOKENS", "TOKEN_LIMIT", "KEY_PREFIX", "PUBLIC_KEY", "PORT", "COMPASS",
     "SECRET_NAME"],
)  # fmt: skip
def test_other_names_are_not(name: str) -> None:
    assert not looks_secret(name)
