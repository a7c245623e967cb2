"""`encrypt` and `decrypt` with the keys of a `crypto` connector."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from flowrt.errors import ConfigError, ConnectorError
from flowrt.service import Result
from tests.blocks.chains import payload, variable
from tests.services import flows, load

AES = {"key": base64.b64encode(b"k" * 32).decode()}
CHACHA = {"algorithm": "chacha20-poly1305", "key": "6b" * 32, "keyEncoding": "hex"}
ENCRYPT: dict[str, Any] = {"type": "encrypt", "crypto": "vault"}
DECRYPT: dict[str, Any] = {"type": "decrypt", "crypto": "vault"}


def document(settings: dict[str, Any], *chain: dict[str, Any]) -> dict[str, Any]:
    connector = {"name": "vault", "type": "crypto", "settings": settings}
    return flows(main=list(chain)) | {"connectors": [connector]}


async def send(
    folder: Path, settings: dict[str, Any], *chain: dict[str, Any], data: Any = None
) -> Result:
    async with load(folder, document(settings, *chain)) as service:
        return await service.invoke("main", data)


def body(result: Result) -> Any:
    assert result.message is not None, result.error
    return result.message.body


@pytest.fixture(scope="module")
def pair() -> dict[str, Any]:
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return {"algorithm": "rsa-oaep", "privateKey": private, "publicKey": public.decode()}


@pytest.mark.parametrize("settings", [AES, CHACHA])
@pytest.mark.parametrize("encoding", ["base64", "hex"])
async def test_what_is_sealed_comes_back(
    tmp_path: Path, settings: dict[str, Any], encoding: str
) -> None:
    chain = [{**ENCRYPT, "encoding": encoding}, {**DECRYPT, "encoding": encoding}]
    for value, text in (("PT50 ü", "PT50 ü"), ("42", "42"), ({"a": [1, None]}, '{"a":[1,null]}')):
        assert text == body(await send(tmp_path, settings, *chain, data=value))


async def test_a_pair_of_keys_seals_with_one_and_opens_with_the_other(
    tmp_path: Path, pair: dict[str, Any]
) -> None:
    assert "x" == body(await send(tmp_path, pair, ENCRYPT, DECRYPT, data="x"))
    public = {key: value for key, value in pair.items() if key != "privateKey"}
    private = {key: value for key, value in pair.items() if key != "publicKey"}
    sealed = body(await send(tmp_path, public, ENCRYPT, data="x"))
    assert "x" == body(await send(tmp_path, private, DECRYPT, data=sealed))
    found = await send(tmp_path, public, DECRYPT, data=sealed)
    assert "nothing is decrypted without a privateKey" in str(found.error)
    found = await send(tmp_path, private, ENCRYPT, data="x")
    assert "nothing is encrypted without a publicKey" in str(found.error)
    found = await send(tmp_path, public, ENCRYPT, data="x" * 191)
    assert "seals 190 bytes at most with this key, found 191" in str(found.error)


async def test_the_result_may_go_to_a_variable(tmp_path: Path) -> None:
    chain = [{**ENCRYPT, "value": "body.iban", "target": "sealed"}, payload("body.iban")]
    result = await send(tmp_path, AES, *chain, data={"iban": "PT50"})
    assert "PT50" == body(result)
    assert result.message is not None
    assert "PT50" not in result.message.vars["sealed"]


async def test_functions_and_blocks_open_what_the_other_has_sealed(tmp_path: Path) -> None:
    settings = {"key": "k" * 16, "keyEncoding": "utf8"}
    opened = payload(f'string(fromAes(base64.decode(body), "{"k" * 16}"))')
    assert "x" == body(await send(tmp_path, settings, ENCRYPT, opened, data="x"))
    sealed = payload(f'toAes(body, "{"k" * 16}")')
    assert "x" == body(await send(tmp_path, settings, sealed, DECRYPT, data="x"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("!", "the value is no text in base64"),
        (7, "the value is no text in base64"),
        ("AAAA", "this is not what was sealed with this key"),
        (base64.b64encode(b"n" * 40).decode(), "this is not what was sealed with this key"),
    ],
)
async def test_what_was_not_sealed_with_the_key_fails_the_block(
    tmp_path: Path, value: Any, text: str
) -> None:
    assert text in str((await send(tmp_path, AES, DECRYPT, data=value)).error)


async def test_bytes_that_are_no_text_fail_the_block(tmp_path: Path) -> None:
    key = "k" * 16
    chain = [variable("x", f'toAes(b"\\xff", "{key}")'), {**DECRYPT, "value": "vars.x"}]
    found = await send(tmp_path, {"key": key, "keyEncoding": "utf8"}, *chain)
    assert "what was sealed is no text in UTF-8" in str(found.error)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "aes-gcm takes a key"),
        ({"key": "hunter2hunter2", "keyEncoding": "utf8"}, "has 14 bytes as utf8"),
        ({"key": "hunter2hunter2!"}, "the key is not base64"),
        ({**CHACHA, "key": "6b" * 16}, "chacha20-poly1305 needs 32"),
        ({"algorithm": "rsa-oaep"}, "rsa-oaep takes publicKey, privateKey or both"),
        ({**AES, "privateKey": "hunter2"}, "and neither publicKey nor privateKey"),
        ({**AES, "algorithm": "rot13"}, "algorithm"),
    ],
)
def test_a_key_that_does_not_fit_does_not_load_and_is_not_shown(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        load(tmp_path, document(settings))
    assert "hunter2" not in str(caught.value)


async def test_a_pem_that_is_none_fails_the_start_and_is_not_shown(tmp_path: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    for private in ("hunter2", pem):
        config = document({"algorithm": "rsa-oaep", "privateKey": private})
        with pytest.raises(ConnectorError, match="needs RSA keys as PEM") as caught:
            async with load(tmp_path, config):
                pass
        assert private not in str(caught.value)
