"""`crypto`: a key that `encrypt` and `decrypt` use."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector
from flowrt.errors import ConnectorError, FlowError
from flowrt.expr import sealing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

_LENGTHS = {"aes-gcm": (16, 24, 32), "chacha20-poly1305": (32,)}
_SEAL = {"aes-gcm": sealing.to_aes, "chacha20-poly1305": sealing.to_chacha}
_OPEN = {"aes-gcm": sealing.from_aes, "chacha20-poly1305": sealing.from_chacha}


class CryptoSettings(Settings):
    """Settings of `crypto`."""

    algorithm: Literal["aes-gcm", "chacha20-poly1305", "rsa-oaep"] = Field(
        default="aes-gcm", description="How values are sealed."
    )
    key: str | None = Field(
        default=None, description="The shared key: 16, 24 or 32 bytes; 32 for chacha20-poly1305."
    )
    key_encoding: Literal["base64", "hex", "utf8"] = Field(
        default="base64", description="How `key` is written."
    )
    public_key: str | None = Field(
        default=None, description="With rsa-oaep, the key that encrypts, as PEM."
    )
    private_key: str | None = Field(
        default=None, description="With rsa-oaep, the key that decrypts, as PEM."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        pair = self.public_key is not None or self.private_key is not None
        if self.algorithm == "rsa-oaep":
            if self.key is not None or not pair:
                raise PydanticCustomError(
                    "key", "rsa-oaep takes publicKey, privateKey or both, and no key"
                )
        elif self.key is None or pair:
            raise PydanticCustomError(
                "key",
                "{algorithm} takes a key, and neither publicKey nor privateKey",
                {"algorithm": self.algorithm},
            )
        else:
            self.secret()
        return self

    def secret(self) -> bytes:
        """The shared key, decoded and of a length that fits; never a part of an error."""
        assert self.key is not None
        try:
            octets = _decoded(self.key, self.key_encoding)
        except (binascii.Error, ValueError):
            raise PydanticCustomError(
                "key", "the key is not {encoding}; see keyEncoding", {"encoding": self.key_encoding}
            ) from None
        lengths = _LENGTHS[self.algorithm]
        if len(octets) not in lengths:
            raise PydanticCustomError(
                "key",
                "the key has {found} bytes as {encoding}; {algorithm} needs {lengths}",
                {
                    "found": len(octets),
                    "encoding": self.key_encoding,
                    "algorithm": self.algorithm,
                    "lengths": " or ".join(map(str, lengths)),
                },
            )
        return octets


class CryptoConnector(Connector[CryptoSettings]):
    """A key, checked when the file is loaded; `pip install 'flowrt[crypto]'` brings the ciphers.

    With aes-gcm and chacha20-poly1305 a sealed value begins with its nonce, as those of the
    functions `toAes` and `toChacha` do, and each opens what the other has sealed.

    ```yaml
    connectors:
      - name: vault
        type: crypto
        settings:
          algorithm: aes-gcm
          key: c2l4dGVlbiBieXRlcyBrZXk5OTk5OTk5OTk5OTk5OTk=
    ```
    """

    Settings = CryptoSettings

    def __init__(self, name: str, settings: CryptoSettings) -> None:
        super().__init__(name, settings)
        self._public: RSAPublicKey | None = None
        self._private: RSAPrivateKey | None = None

    async def start(self) -> None:
        private, public = self.settings.private_key, self.settings.public_key
        try:
            if private is not None:
                self._private = _private_key(private)
            if public is not None:
                self._public = _public_key(public)
            _oaep()  # with a shared key too, what is missing is told now and not by a message
        except ImportError:
            raise ConnectorError(
                f"connector {self.name!r}: crypto needs the package cryptography: "
                "pip install 'flowrt[crypto]'"
            ) from None
        except (TypeError, ValueError):  # their texts may quote the key
            raise ConnectorError(
                f"connector {self.name!r}: rsa-oaep needs RSA keys as PEM, without a password"
            ) from None

    def seal(self, value: bytes) -> bytes:
        """The bytes sealed. Raises `FlowError`."""
        if self.settings.algorithm != "rsa-oaep":
            return bytes(_SEAL[self.settings.algorithm](value, self.settings.secret()))
        if self._public is None:
            raise FlowError(f"connector {self.name!r}: nothing is encrypted without a publicKey")
        try:
            return self._public.encrypt(value, _oaep())
        except ValueError as error:
            most = self._public.key_size // 8 - 66
            raise FlowError(
                f"connector {self.name!r}: rsa-oaep seals {most} bytes at most with this key, "
                f"found {len(value)}; seal a key of aes-gcm with it"
            ) from error

    def unseal(self, sealed: bytes) -> bytes:
        """What `seal` was given. Raises `FlowError` for another key and for changed bytes."""
        try:
            if self.settings.algorithm != "rsa-oaep":
                return bytes(_OPEN[self.settings.algorithm](sealed, self.settings.secret()))
            if self._private is None:
                raise FlowError(
                    f"connector {self.name!r}: nothing is decrypted without a privateKey"
                )
            return self._private.decrypt(sealed, _oaep())
        except ValueError as error:
            raise FlowError(
                f"connector {self.name!r}: this is not what was sealed with this key, or it was "
                "changed since"
            ) from error


def _decoded(key: str, encoding: str) -> bytes:
    if encoding == "utf8":
        return key.encode()
    if encoding == "hex":
        return bytes.fromhex(key)
    return base64.b64decode(key, validate=True)


def _private_key(pem: str) -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem.encode(), None)
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("not an RSA key")
    return key


def _public_key(pem: str) -> RSAPublicKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = load_pem_public_key(pem.encode())
    if not isinstance(key, RSAPublicKey):
        raise ValueError("not an RSA key")
    return key


def _oaep() -> Any:
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
    from cryptography.hazmat.primitives.hashes import SHA256

    return OAEP(MGF1(SHA256()), SHA256(), None)
