"""`multipart/form-data` as a map of parts, and back (dialect 3.3).

A part is ``{name, filename, contentType, encoding, size, data, headers}``. `data` is text, or
base64 where `encoding` says so; one that has a `filename` is always base64, whatever its bytes
are, so that an expression over it means the same for every request.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import unquote

from flowrt.expr.functions import string_of
from flowrt.message import clean, clean_text

T = TypeVar("T")
MOST_PARTS = 256
MOST_BYTES = 32 * 1024 * 1024
"""Of all parts together, as they are sent."""

BOUNDARY = "octo-multipart"
"""The boundary of `toMultipart`; fixed, for `contentType` is no expression and has to repeat it."""

_MOST_HEADERS = 16
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=?-](?:[0-9A-Za-z'()+_,./:=? -]{0,68}[^ ])?")
_TYPE = re.compile(r"\s*multipart/[\w.+-]+\s*(?:;|$)", re.IGNORECASE)
_PARAMETER = re.compile(r';\s*(boundary|charset)\s*=\s*(?:"([^"]*)"|([^\s;"]+))', re.IGNORECASE)
# RFC 7578 forbids this form, and older HTTP clients send it for every name that is not ASCII.
_ENCODED_NAME = re.compile(r";\s*filename\*\s*=\s*utf-8'[^']*'([^\s;]+)", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[0-9A-Za-z!#$%&'*+.^_`|~-]+")
_CHARSETS = ("utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252")
_OWN = ("content-disposition", "content-type", "content-length")
_FIELDS = ("data", "filename", "contentType", "encoding", "headers", "name", "size")


def decode_parts(data: bytes, content_type: str) -> dict[str, Any]:
    """The parts of a body by name; a name that comes more than once has a list.

    Raises `ValueError` where `content_type` is not multipart or names no boundary, for a body that
    does not keep to it or breaks off, and beyond `MOST_PARTS` and `MOST_BYTES`.
    """
    if len(data) > MOST_BYTES:
        raise ValueError(f"the multipart body has more than {MOST_BYTES:,} bytes")
    boundary = _parameter(content_type, "boundary")
    if not _TYPE.match(content_type) or not boundary:
        raise ValueError(
            f"the content type {content_type[:80]!r} is not multipart with a boundary, such as "
            f"'multipart/form-data; boundary={BOUNDARY}'"
        )
    parts: dict[str, Any] = {}
    for part in _parsed(data, boundary):
        _put(parts, part)
    return parts


def _parsed(data: bytes, boundary: str) -> Iterator[dict[str, Any]]:
    from multipart import MultipartError, PushMultipartParser

    segment: Any = None
    chunks: list[bytes] = []
    try:
        with PushMultipartParser(
            boundary, max_segment_count=MOST_PARTS, max_header_count=_MOST_HEADERS
        ) as parser:
            for event in parser.parse(data):
                if event is None:
                    yield _received(segment, b"".join(chunks))
                elif isinstance(event, bytes | bytearray):
                    chunks.append(bytes(event))
                else:
                    segment, chunks = event, []
    except MultipartError as error:
        text = f"more than {MOST_PARTS} parts" if "count" in str(error) else str(error.args[0])
        raise ValueError(f"the multipart body cannot be read: {text}") from error


def _received(segment: Any, data: bytes) -> dict[str, Any]:
    headers = dict(segment.headerlist)
    encoded = _ENCODED_NAME.search(headers["Content-Disposition"])
    filename = unquote(encoded[1]) if encoded else segment.filename or ""
    kind = headers.get("Content-Type", "")
    if filename:
        encoding, text = "base64", base64.b64encode(data).decode()
    else:
        encoding, text = "text", _decoded(data, segment.name, _parameter(kind, "charset"))
    others = {name: value for name, value in headers.items() if name.lower() not in _OWN}
    part = _part(segment.name, text, encoding, filename, kind, others)
    part["size"] = len(data)
    return clean(part)  # type: ignore[no-any-return]  # a map stays one


def _decoded(data: bytes, name: str, charset: str) -> str:
    charset = charset.lower() or "utf-8"
    try:
        if charset in _CHARSETS:
            return data.decode(charset)
    except UnicodeDecodeError:
        pass
    raise ValueError(
        f"the part {name!r} is no {charset} text that can be read; bytes are sent with a filename, "
        "and arrive in base64"
    )


def _parameter(content_type: str, wanted: str) -> str:
    for name, quoted, plain in _PARAMETER.findall(content_type):
        if name.lower() == wanted:
            return str(quoted or plain)
    return ""


def _put(parts: dict[str, Any], part: dict[str, Any]) -> None:
    name = part["name"]
    if name not in parts:
        parts[name] = part
    elif isinstance(parts[name], list):
        parts[name] = [*parts[name], part]
    else:
        parts[name] = [parts[name], part]


def encode_parts(parts: dict[str, Any], boundary: str = BOUNDARY) -> bytes:
    """The body for `parts`, names in order; a list repeats its name, a scalar is a text field.

    Raises `ValueError` for a part that does not have the shape, and for names that would break the
    line they are written on.
    """
    if not _BOUNDARY.fullmatch(boundary):
        raise ValueError(f"{boundary!r} cannot be a boundary: 1 to 70 ASCII letters and digits")
    mark = boundary.encode()
    out = bytearray()
    for name in sorted(parts, key=str):
        for value in _each(parts[name]):
            part = made_part(name, value)
            content = _content(part)
            if b"\r\n--" + mark in b"\r\n" + content:
                raise ValueError(
                    f"the part {name!r} holds the boundary {boundary!r}; give toMultipart another"
                )
            out += b"--" + mark + b"\r\n" + _head(part) + b"\r\n" + content + b"\r\n"
    return bytes(out + b"--" + mark + b"--\r\n")


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def made_part(name: Any, value: Any) -> dict[str, Any]:
    """A part in full from what an expression gives: a scalar, bytes, or a map with `data`."""
    _line(name, "a name")
    if isinstance(value, bytes | bytearray):
        return _part(name, base64.b64encode(value).decode(), "base64")
    if not isinstance(value, dict):
        return _part(name, "" if value is None else string_of(value))
    unknown = [key for key in value if key not in _FIELDS]
    if unknown:
        raise ValueError(
            f"the part {name!r} has no {unknown[0]!r}; a part has {', '.join(_FIELDS)}"
        )
    data, encoding = value.get("data"), value.get("encoding") or "text"
    if isinstance(data, bytes | bytearray):
        data, encoding = base64.b64encode(data).decode(), "base64"
    if not isinstance(data, str):
        raise ValueError(f"the part {name!r} needs data, which is a text or bytes")
    if encoding not in ("text", "base64"):
        raise ValueError(f"the encoding of the part {name!r} is text or base64, found {encoding!r}")
    filename = _line(value.get("filename") or "", "a filename")
    kind = _line(value.get("contentType") or "", "a contentType")
    headers = value.get("headers") or {}
    if not isinstance(headers, dict):
        raise ValueError(f"the headers of the part {name!r} are a map, found {headers!r}")
    return _part(name, data, encoding, filename, kind, headers)


def _part(
    name: str,
    data: str,
    encoding: str = "text",
    filename: str = "",
    content_type: str = "",
    headers: dict[str, Any] | None = None,
) -> dict[str, Any]:
    part = {
        "name": name,
        "filename": filename,
        "contentType": content_type,
        "encoding": encoding,
        "data": data,
        "headers": headers or {},
    }
    return part | {"size": len(_content(part))}


def _content(part: dict[str, Any]) -> bytes:
    data: str = part["data"]
    if part["encoding"] == "text":
        return data.encode()
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError(f"the data of the part {part['name']!r} is not base64: {error}") from error


def _head(part: dict[str, Any]) -> bytes:
    """The header lines, as browsers write them: names in UTF-8, a quote in them as ``%22``."""
    disposition = f'form-data; name="{_quoted(part["name"])}"'
    if part["filename"]:
        disposition += f'; filename="{_quoted(part["filename"])}"'
    lines = [f"Content-Disposition: {disposition}"]
    if part["contentType"]:
        lines.append(f"Content-Type: {part['contentType']}")
    for name, value in sorted(part["headers"].items()):
        if not _HEADER_NAME.fullmatch(str(name)):
            raise ValueError(f"{name!r} cannot be the name of a header")
        # These are written above, from the part's own fields.
        if name.lower() not in _OWN:
            lines.append(f"{name}: {_line(string_of(value), 'a header')}")
    return "".join(f"{line}\r\n" for line in lines).encode()


def _quoted(name: str) -> str:
    return name.replace('"', "%22")


def _line(text: Any, what: str) -> str:
    """`text`, which may not end the line it is written on: it is often the sender's own choice."""
    if not isinstance(text, str) or "\r" in text or "\n" in text:
        raise ValueError(f"{what} of a part is one line of text, found {text!r}")
    return text


def no_parts() -> dict[str, Any]:
    """`multipart()`: parts to add to."""
    return {}


def add_part(parts: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """`parts` and one more; a list adds one for each of its elements."""
    added = dict(parts)
    for each in _each(value):
        _put(added, _named("addPart", made_part, name, each))
    return added


def from_multipart(
    body: dict[str, Any] | str | bytes | bytearray, content_type: str = ""
) -> dict[str, Any]:
    """The parts of a raw body ``{contentType, rawData}``, or of data; text counts as UTF-8."""
    if isinstance(body, dict):
        data, content_type = body.get("rawData", ""), body.get("contentType", "")
        if not isinstance(data, str) or not isinstance(content_type, str):
            raise ValueError("fromMultipart: a raw body has contentType and rawData, both texts")
        return from_multipart(data, content_type)
    octets = body.encode() if isinstance(body, str) else bytes(body)
    return _named("fromMultipart", decode_parts, octets, content_type)


def to_multipart(parts: dict[str, Any], boundary: str = BOUNDARY) -> str:
    """The body as text. Bytes that are no text are an error: a text would change them."""
    try:
        text = _named("toMultipart", encode_parts, parts, boundary).decode()
    except UnicodeDecodeError:
        text = "\0"
    if text != clean_text(text):
        raise ValueError(
            "toMultipart: a part holds bytes that are not UTF-8 text, and the result is a text; "
            "leave base64 in the part's data, with encoding left out, where the receiver takes it"
        )
    return text


def _named(function: str, call: Callable[..., T], *arguments: Any) -> T:
    try:
        return call(*arguments)
    except ValueError as error:
        raise ValueError(f"{function}: {error}") from error
