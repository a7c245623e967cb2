"""Multipart bodies: parts from what clients send, and a body from parts."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowrt.errors import ExpressionError
from flowrt.expr import Expression
from flowrt.expr.multipart import MOST_BYTES, decode_parts, encode_parts
from flowrt.message import Message, clean

TYPE = "multipart/form-data; boundary=b"


def evaluate(source: str, body: Any = None) -> Any:
    return Expression.compile(source).value(Message(body))


def sent(*parts: str | bytes, boundary: str = "b") -> bytes:
    """A body of parts as they stand on the wire: header lines, an empty line, the content."""
    mark = b"--" + boundary.encode()
    octets = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(mark + b"\r\n" + part + b"\r\n" for part in octets) + mark + b"--\r\n"


def field(name: str, content: str) -> str:
    return f'Content-Disposition: form-data; name="{name}"\r\n\r\n{content}'


def file(parameters: str, content: bytes, more: str = "") -> bytes:
    head = f'Content-Disposition: form-data; name="f"; {parameters}\r\n{more}\r\n'
    return head.encode() + content


def test_a_field_is_text_and_says_what_it_was_sent_with() -> None:
    head = 'content-disposition: form-data; name="note"\r\nContent-Type: text/x\r\nX-Trace: 7\r\n'
    assert {
        "note": {
            "name": "note",
            "filename": "",
            "contentType": "text/x",
            "encoding": "text",
            "size": 3,
            "data": "hé",
            "headers": {"X-Trace": "7"},
        }
    } == decode_parts(sent(f"{head}\r\nhé"), TYPE)


def test_a_file_is_base64_whatever_it_holds() -> None:
    parts = decode_parts(sent(file('filename="a.txt"', b"plain")), TYPE)["f"]
    assert ("a.txt", "base64", "cGxhaW4=", 5) == (
        parts["filename"], parts["encoding"], parts["data"], parts["size"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [b"", b"\r\n", b"a\r\nb\r\n", b"a\nb", b"\x00\xff\xfe", b"--b-", b"\r\n--", b"-" * 99],
)
def test_every_byte_of_a_file_arrives(content: bytes) -> None:
    part = decode_parts(sent(file('filename="x"', content)), TYPE)["f"]
    assert (content, len(content)) == (base64.b64decode(part["data"]), part["size"])


def test_a_name_that_comes_again_makes_a_list() -> None:
    parts = decode_parts(sent(*(field("a", text) for text in "xyz"), field("b", "1")), TYPE)
    assert ["x", "y", "z"] == [part["data"] for part in parts["a"]]
    assert "1" == parts["b"]["data"]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ('filename="grüße 日本.txt"', "grüße 日本.txt"),
        ("filename*=UTF-8''gr%C3%BC%C3%9Fe.txt", "grüße.txt"),
        ("filename=\"x.txt\"; filename*=utf-8'de'gr%C3%BC%C3%9Fe.txt", "grüße.txt"),
        ('filename="a%22b.txt"', 'a"b.txt'),
        (r'filename="a\"b.txt"', 'a"b.txt'),
        ("filename=plain.txt", "plain.txt"),
        ('filename="../../etc/passwd"', "../../etc/passwd"),
    ],
)
def test_file_names_of_every_client_are_read(parameters: str, name: str) -> None:
    assert name == decode_parts(sent(file(parameters, b"x")), TYPE)["f"]["filename"]


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data; boundary=b",
        'Multipart/Form-Data; charset=utf-8; Boundary="b"',
        "multipart/mixed;boundary=b",
    ],
)
def test_the_boundary_is_found_however_it_is_written(content_type: str) -> None:
    assert "x" == decode_parts(sent(field("a", "x")), content_type)["a"]["data"]


def test_an_empty_form_has_no_parts() -> None:
    assert {} == decode_parts(b"--b--\r\n", TYPE)


@pytest.mark.parametrize(
    ("head", "content", "text"),
    [
        ("Content-Type: text/plain; charset=ISO-8859-1\r\n", b"\xfc", "ü"),
        ('Content-Type: text/plain; charset="UTF-8"\r\n', "ü".encode(), "ü"),
        ("", b"a\x00b", "a\ufffdb"),
    ],
)
def test_a_field_is_read_in_its_own_charset(head: str, content: bytes, text: str) -> None:
    disposition = 'Content-Disposition: form-data; name="f"\r\n'
    part = decode_parts(sent(f"{disposition}{head}\r\n".encode() + content), TYPE)["f"]
    assert (text, len(content)) == (part["data"], part["size"])


@pytest.mark.parametrize(
    ("data", "content_type", "said"),
    [
        (b"", TYPE, "cannot be read"),
        (b"not multipart at all", TYPE, "cannot be read"),
        (sent(field("a", "x"), boundary="other"), TYPE, "cannot be read"),
        (sent(field("a", "x"))[:-6], TYPE, "cannot be read"),
        (sent("no header"), TYPE, "cannot be read"),
        (sent('Content-Disposition: attachment; name="a"\r\n\r\nx'), TYPE, "cannot be read"),
        (sent(field("a", "x")), "application/json", "not multipart"),
        (sent(field("a", "x")), "multipart/form-data", "with a boundary"),
        (sent(b'Content-Disposition: form-data; name="a"\r\n\r\n\xff'), TYPE, "'a' is no utf-8"),
        (
            sent(f"Content-Type: x; charset=idna\r\n{field('a', 'x')}"),
            TYPE,
            "no idna text",
        ),
        (sent(*[field("a", "")] * 257), TYPE, "more than 256 parts"),
        (b"x" * (MOST_BYTES + 1), TYPE, "more than"),
        (sent(f"X: {'y' * 10_000}\r\n\r\n"), TYPE, "cannot be read"),
    ],
)  # fmt: skip
def test_what_is_no_multipart_body_is_an_error(data: bytes, content_type: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        decode_parts(data, content_type)


def test_a_large_upload_takes_little_time() -> None:
    began = time.perf_counter()
    decode_parts(sent(file('filename="x"', b"\r\n--a" * 1_000_000)), TYPE)
    assert 5 > time.perf_counter() - began


def test_a_body_is_written_in_the_order_of_its_names() -> None:
    found = evaluate("toMultipart({'b': 2, 'a': ['x', null], 'c': b'yz'}, 'B1')")
    fields = [field("a", "x"), field("a", ""), field("b", "2"), field("c", "yz")]
    assert sent(*fields, boundary="B1") == found.encode()


def test_a_part_in_full_is_written_with_its_name_type_and_headers() -> None:
    part = {
        "data": "aMOp",
        "encoding": "base64",
        "filename": 'é"1.txt',
        "contentType": "text/plain",
        "headers": {"X-A": 1, "content-type": "evil/x", "Content-Length": "9"},
    }
    lines = [
        'Content-Disposition: form-data; name="f"; filename="é%221.txt"',
        "Content-Type: text/plain",
        "X-A: 1",
        "",
        "hé",
    ]
    assert sent("\r\n".join(lines)) == encode_parts({"f": part}, "b")


def test_what_was_received_can_be_sent_on_byte_for_byte() -> None:
    body = sent(field("a", "x"), file('filename="y.bin"', b"\x00\xff", "Content-Type: a/b\r\n"))
    assert body == encode_parts(decode_parts(body, TYPE), "b")


@pytest.mark.parametrize(
    ("value", "data", "encoding"),
    [
        ("'é'", "é", "text"),
        ("7", "7", "text"),
        ("7u", "7", "text"),
        ("2.5", "2.5", "text"),
        ("true", "true", "text"),
        ("null", "", "text"),
        ("timestamp(0)", "1970-01-01T00:00:00Z", "text"),
        ("duration('90s')", "90s", "text"),
        ("b'a\\xff'", "Yf8=", "base64"),
        ("{'data': 'x'}", "x", "text"),
        ("{'data': b'x'}", "eA==", "base64"),
        ("{'data': 'eA==', 'encoding': 'base64', 'filename': 'f'}", "eA==", "base64"),
    ],
)
def test_a_part_is_added_for_a_value_of_any_type(value: str, data: str, encoding: str) -> None:
    part = evaluate(f"multipart().addPart('p', {value}).p")
    assert (data, encoding, "p") == (part["data"], part["encoding"], part["name"])


def test_adding_leaves_the_parts_it_was_given_and_collects_a_repeated_name() -> None:
    source = "[body].map(p, [p.addPart('a', ['y', 'z']), p])[0]"
    found, before = evaluate(source, {"a": {"name": "a", "data": "x"}})
    assert ["x", "y", "z"] == [part["data"] for part in found["a"]]
    assert {"a": {"name": "a", "data": "x"}} == before


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("multipart().addPart('a\\r\\nX: y', 1)", "addPart: a name of a part is one line"),
        ("multipart().addPart('a', {'data': 'x', 'filename': 'a\\nb'})", "a filename of a part"),
        ("multipart().addPart('a', {'data': 'x', 'contentType': 'a\\rb'})", "a contentType"),
        ("toMultipart({'a': {'data': 'x', 'headers': {'X': 'a\\r\\nb'}}})", "a header of a part"),
        ("toMultipart({'a': {'data': 'x', 'headers': {'X:': 'b'}}})", "name of a header"),
        ("toMultipart({'a': {'data': 'x', 'headers': [1]}})", "are a map"),
        ("multipart().addPart('a', {})", "needs data"),
        ("multipart().addPart('a', {'data': 1})", "needs data"),
        ("multipart().addPart('a', {'data': 'x', 'fileName': 'f'})", "has no 'fileName'"),
        ("multipart().addPart('a', {'data': 'x', 'encoding': 'hex'})", "is text or base64, found"),
        ("multipart().addPart('a', {'data': '!', 'encoding': 'base64'})", "is not base64"),
        ("toMultipart({1: 'x'})", "a name of a part is one line of text, found 1"),
        ("toMultipart({'a': 'x'}, '')", "cannot be a boundary"),
        ("toMultipart({'a': 'x'}, 'ü')", "cannot be a boundary"),
        ("toMultipart({'a': 'x\\r\\n--B y'}, 'B')", "give toMultipart another"),
        ("toMultipart({'a': b'\\xff'})", "bytes that are not UTF-8"),
        ("toMultipart({'a': b'\\x00'})", "bytes that are not UTF-8"),
        ("fromMultipart({})", "not multipart"),
        ("fromMultipart({'rawData': 1, 'contentType': 'x'})", "both texts"),
        ("fromMultipart('x', 'text/plain')", "not multipart"),
        ("fromMultipart('x')", "does not take"),
    ],
)  # fmt: skip
def test_what_makes_no_part_is_an_error(source: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        evaluate(source)


@pytest.mark.parametrize(
    "source",
    [
        "fromMultipart(body)",
        "fromMultipart(body.rawData, body.contentType)",
        "fromMultipart(bytes(body.rawData), body.contentType)",
    ],
)
def test_a_raw_body_is_read_whole_or_by_its_text_or_bytes(source: str) -> None:
    body = {"rawData": sent(field("a", "é")).decode(), "contentType": TYPE}
    assert "é" == evaluate(f"{source}.a.data", body)


NAMES = st.text(st.characters(exclude_characters='\r\n"\\%'), min_size=1).map(clean)


@settings(deadline=None)
@given(st.dictionaries(NAMES, st.text().map(clean), max_size=4))
def test_text_fields_come_back_as_they_went(fields: dict[str, str]) -> None:
    source = "fromMultipart(toMultipart(body, 'B-1'), 'multipart/form-data; boundary=B-1')"
    found = evaluate(source, fields)
    assert fields == {name: part["data"] for name, part in found.items()}


@settings(deadline=None)
@given(st.binary(), NAMES)
def test_files_come_back_as_they_went(content: bytes, name: str) -> None:
    part = {"data": base64.b64encode(content).decode(), "encoding": "base64", "filename": name}
    found = decode_parts(encode_parts({"f": part}, "B-1"), "multipart/form-data; boundary=B-1")
    assert (part["data"], name) == (found["f"]["data"], found["f"]["filename"])
