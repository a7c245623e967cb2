"""Sealing with a key: what comes back, and what is refused."""

from __future__ import annotations

import base64
import subprocess
import sys
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.message import Message

KEY = "0123456789abcdef0123456789abcdef"


def evaluate(source: str, body: Any = None) -> Any:
    return Expression.compile(source).value(Message(body))


@pytest.mark.parametrize("length", [16, 24, 32])
@pytest.mark.parametrize("value", ["body.v", "bytes(body.v)"])
@pytest.mark.parametrize("key", ["body.k", "bytes(body.k)"])
def test_aes_gives_back_what_it_sealed(length: int, value: str, key: str) -> None:
    body = {"v": "secret é", "k": KEY[:length]}
    assert "secret é" == evaluate(f"string(fromAes(toAes({value}, {key}), {key}))", body)


@pytest.mark.parametrize("value", ["body.v", "bytes(body.v)", "''"])
@pytest.mark.parametrize("key", ["body.k", "bytes(body.k)"])
def test_chacha_gives_back_what_it_sealed(value: str, key: str) -> None:
    source = f"fromChacha(toChacha({value}, {key}), {key}) == bytes({value})"
    assert evaluate(source, {"v": "secret é", "k": KEY}) is True


@pytest.mark.parametrize(("name", "cipher"), [("Aes", AESGCM), ("Chacha", ChaCha20Poly1305)])
def test_the_nonce_stands_before_the_ciphertext(name: str, cipher: Any) -> None:
    sealed = base64.b64decode(evaluate(f"to{name}('x', body)", KEY))
    assert b"x" == cipher(KEY.encode()).decrypt(sealed[:12], sealed[12:], None)
    text = base64.b64encode(b"n" * 12 + cipher(KEY.encode()).encrypt(b"n" * 12, b"y", None))
    source = f"string(from{name}(base64.decode(body), '{KEY}'))"
    assert "y" == evaluate(source, text.decode())


def test_sealing_twice_gives_different_bytes() -> None:
    assert evaluate("toAes('x', body) != toAes('x', body)", KEY) is True
    expression = Expression.compile(f"toAes('x', '{KEY}')")
    assert expression.value(Message()) != expression.value(Message())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("toAes('x', 'short')", "toAes: the key has 5 bytes, it must have 16, 24 or 32"),
        ("fromAes('x', 'short')", "fromAes: the key has 5 bytes"),
        ("toChacha('x', body.short)", "toChacha: the key has 16 bytes, it must have 32"),
        ("toAes('x', 'éééééééé')", None),
        ("fromAes('x', body.k)", "fromAes: 1 bytes are too few"),
        ("fromAes(toAes('x', body.k), body.other)", "fromAes: this is not what was sealed"),
        ("fromChacha(toChacha('x', body.k), body.other)", "fromChacha: this is not what was"),
        ("fromChacha(toAes('x', body.k), body.k)", "this is not what was sealed"),
        ("toAes(null, body.k)", "does not take"),
        ("toAes({'a': 1}, body.k)", "does not take"),
    ],
)
def test_another_key_or_other_bytes_are_an_error(source: str, said: str | None) -> None:
    body = {"k": KEY, "other": KEY[::-1], "short": KEY[:16]}
    if said is None:
        assert evaluate(source, body)
    else:
        with pytest.raises(ExpressionError, match=said):
            evaluate(source, body)


def test_no_error_shows_the_key() -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate("toAes('x', body.k)", {"k": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_without_its_package_the_error_says_what_to_install() -> None:
    script = (
        "import sys\n"
        "sys.modules['cryptography'] = None\n"
        "from flowrt.expr import Expression\n"
        "from flowrt.message import Message\n"
        "expression = Expression.compile('toAes(\"x\", body)')\n"
        "try: expression.value(Message('k' * 16))\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'flowrt[crypto]'" in done.stdout, done.stderr


def test_its_package_is_imported_when_it_is_first_called() -> None:
    script = (
        "import sys\n"
        "from flowrt.expr import Expression\n"
        "Expression.compile('toAes(body, body)')\n"
        "sys.exit('cryptography' in sys.modules or 'multipart' in sys.modules)"
    )
    assert 0 == subprocess.run([sys.executable, "-c", script]).returncode
