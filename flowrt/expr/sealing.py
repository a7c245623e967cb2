"""Encryption with a shared key: AES-GCM and ChaCha20-Poly1305 (dialect 3.3).

What is sealed is the nonce, 12 random bytes, followed by the ciphertext and its tag. Both ways give
bytes: `base64.encode`, `hexEncode` and `string` make texts of them.
"""

from __future__ import annotations

import secrets
from typing import Any

_NONCE = 12
_TAG = 16
_Octets = str | bytes | bytearray


def to_aes(value: _Octets, key: _Octets) -> bytearray:
    """`value` under AES-GCM; the key has 16, 24 or 32 bytes. Text counts as UTF-8."""
    return _sealed(_aes("toAes", key), value)


def from_aes(value: _Octets, key: _Octets) -> bytearray:
    """What `to_aes` sealed. Raises `ValueError` for another key and for changed bytes."""
    return _opened("fromAes", _aes("fromAes", key), value)


def to_chacha(value: _Octets, key: _Octets) -> bytearray:
    """`value` under ChaCha20-Poly1305; the key has 32 bytes. Text counts as UTF-8."""
    return _sealed(_chacha("toChacha", key), value)


def from_chacha(value: _Octets, key: _Octets) -> bytearray:
    """What `to_chacha` sealed. Raises `ValueError` for another key and for changed bytes."""
    return _opened("fromChacha", _chacha("fromChacha", key), value)


def _aes(function: str, key: _Octets) -> Any:
    return _ciphers(function).AESGCM(_key(function, key, (16, 24, 32)))


def _chacha(function: str, key: _Octets) -> Any:
    return _ciphers(function).ChaCha20Poly1305(_key(function, key, (32,)))


def _ciphers(function: str) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers import aead
    except ImportError:
        raise ValueError(
            f"{function}() needs the package cryptography: pip install 'flowrt[crypto]'"
        ) from None
    return aead


def _key(function: str, key: _Octets, lengths: tuple[int, ...]) -> bytes:
    octets = _octets(key)
    if len(octets) not in lengths:
        wanted = "16, 24 or 32" if len(lengths) > 1 else str(lengths[0])
        # Never the key itself: the text ends up in logs.
        raise ValueError(
            f"{function}: the key has {len(octets)} bytes, it must have {wanted}; "
            "decode one that is written in base64 with base64.decode"
        )
    return octets


def _sealed(cipher: Any, value: _Octets) -> bytearray:
    nonce = secrets.token_bytes(_NONCE)
    return bytearray(nonce + cipher.encrypt(nonce, _octets(value), None))


def _opened(function: str, cipher: Any, value: _Octets) -> bytearray:
    from cryptography.exceptions import InvalidTag

    octets = _octets(value)
    if len(octets) < _NONCE + _TAG:
        raise ValueError(
            f"{function}: {len(octets)} bytes are too few to be sealed; decode a text with "
            "base64.decode first"
        )
    try:
        return bytearray(cipher.decrypt(octets[:_NONCE], octets[_NONCE:], None))
    except InvalidTag:
        raise ValueError(
            f"{function}: this is not what was sealed with this key, or it was changed since"
        ) from None


def _octets(value: _Octets) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
