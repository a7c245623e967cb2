"""Settings of `http-client` that cannot work are load errors; addresses and paths one by one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from flowrt.connectors.http_client.addresses import is_public
from flowrt.connectors.http_client.paths import is_below, joined
from flowrt.errors import ConfigError, ConnectorError
from tests.blocks.http.calling import document
from tests.services import load

CREDENTIALS = {"tokenURL": "https://x/t", "clientID": "c", "clientSecret": "s"}


@pytest.mark.parametrize(
    "settings",
    [
        {"baseURL": "api.example.com"},
        {"baseURL": "/v1"},
        {"baseURL": "ftp://example.com"},
        {"baseURL": "https://user:hunter22@example.com"},
        {"baseURL": "https://example.com/?key=hunter22"},
        {"baseURL": "https://example.com:port"},
        {"baseURL": "https://example.com/a/../b"},
        {"timeout": "soon"},
        {"maxResponseBytes": 0},
        {"headers": {"X-Key": "a\nhunter22"}},
        {"headers": {"Host": "x"}},
        {"auth": {"type": "digest"}},
        {"auth": {"type": "bearer"}},
        {"auth": {"type": "bearer", "token": "hunter22", "password": "x"}},
        {"auth": {"type": "basic", "username": "a:b", "password": "hunter22"}},
        {"auth": {"type": "oauth2", **CREDENTIALS, "tokenURL": "/token"}},
        {"retry": {"maxAttempts": 0}},
        {"pool": {"maxIdleConns": -1}},
        {"cache": {"enabled": True, "ttl": "-1s"}},
        {"baseUrl": "https://example.com"},
    ],
)
def test_a_setting_that_cannot_work_has_its_place(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"service\.yaml:\d+:\d+ connectors\.api") as caught:
        load(tmp_path, document(**{"url": "https://example.com", **settings}))
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "bearer", "token": "t"},
        {"type": "basic", "username": "u", "password": ""},
        {"type": "oauth2", **CREDENTIALS, "scopes": ["a"]},
    ],
)
def test_every_kind_of_credentials_loads(tmp_path: Path, auth: dict[str, Any]) -> None:
    assert load(tmp_path, document("https://example.com/v1/", auth=auth)).flows


async def test_a_missing_package_is_told_when_the_service_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = load(tmp_path, document("https://example.com"))
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ConnectorError, match=r"connector 'api': .* 'flowrt\[http\]'"):
        await service.start()


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07::1", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("172.16.3.4", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("ff0e::1", False),
        ("::ffff:10.0.0.1", False),
        ("::10.0.0.1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::5db8:d70e", True),
        ("2002:a00:1::1", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert public is is_public(address)


def test_paths_are_below_the_base() -> None:
    assert "https://x/v1" == joined("https://x/v1", "")
    assert "https://x/v1?a=1" == joined("https://x/v1", "?a=1")
    assert "https://x/v1/a" == joined("https://x/v1", "/a") == joined("https://x/v1", "a")
    assert "https://x/v1/@evil" == joined("https://x/v1", "@evil")


@pytest.mark.parametrize(
    ("path", "prefix", "below"),
    [
        ("/a/b", "/a", True),
        ("/a", "/a/", True),
        ("/ab", "/a", False),
        ("/a%2Fb", "/a", False),
        ("/%61/b", "/a", True),
        ("/", "", True),
        ("/a?x=/b", "/a", True),
        ("/b?x=/a", "/a", False),
    ],
)
def test_a_prefix_is_of_whole_segments(path: str, prefix: str, below: bool) -> None:
    assert below is is_below(path, prefix)
