"""Requests that are none, or nearly one."""

from __future__ import annotations

import random

HEAD = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
POST = b"POST / HTTP/1.1\r\nhost: x\r\n"
GET = b"GET / HTTP/1.1\r\nhost: x\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
ONE = b"\r\n1\r\n1\r\n0\r\n\r\n"
"""The body `1` in one chunk."""
HIDDEN = b"GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n"
"""A request in what a proxy takes for a body."""

TWO_ENDS = {
    "length and chunks": POST + b"content-length: 4\r\n" + CHUNKED + ONE + HIDDEN,
    "chunks and length": POST + CHUNKED + b"content-length: 4\r\n" + ONE + HIDDEN,
    "a folded encoding": POST + b"transfer-encoding:\r\n chunked\r\ncontent-length: 4\r\n" + ONE,
    "chunks in HTTP/1.0": b"POST / HTTP/1.0\r\nhost: x\r\n" + CHUNKED + ONE + HIDDEN,
}
"""What two readers see the end of in two places."""

NO_HTTP = {
    "two lengths": POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\n11",
    "a length with a sign": POST + b"content-length: +1\r\n\r\n1",
    "a negative length": POST + b"content-length: -1\r\n\r\n1",
    "a length of 5,000 digits": POST + b"content-length: " + b"9" * 5000 + b"\r\n\r\n1",
    "an encoding with a space": POST + b"transfer-encoding : chunked\r\n" + ONE,
    "an unknown encoding": POST + b"transfer-encoding: xchunked\r\n" + ONE,
    "two encodings": POST + CHUNKED + b"transfer-encoding: identity\r\n" + ONE,
    "encodings in a list": POST + b"transfer-encoding: gzip, chunked\r\n" + ONE,
    "a negative chunk": POST + CHUNKED + b"\r\n-1\r\n1\r\n0\r\n\r\n",
    "an endless chunk": POST + CHUNKED + b"\r\n" + b"f" * 21 + b"\r\n1\r\n0\r\n\r\n",
    "a chunk without an end": POST + CHUNKED + b"\r\n1\r\n1X0\r\n\r\n",
    "a folded first line": b"POST / HTTP/1.1\r\n host: x\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "bytes in the path": b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n",
    "two hosts": GET + b"host: y\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "a NUL in a header": GET + b"x: a\0b\r\n\r\n",
}
"""What is answered with 400 before a flow hears of it."""

HUGE = {
    "a header of 200,000 bytes": GET + b"x: " + b"a" * 200_000 + b"\r\n\r\n",
    "headers that never end": GET + b"x: 1\r\n" * 40_000,
    "a method of 200,000 bytes": b"A" * 200_000 + b" / HTTP/1.1\r\nhost: x\r\n\r\n",
}
"""What is answered with 400 or hung up on: the client has not stopped sending."""

ODD = {
    "a length twice": POST + b"content-length: 1\r\ncontent-length: 1\r\n\r\n1",
    "lengths in a list": POST + b"content-length: 1, 1\r\n\r\n1",
    "a folded header": POST + b"x: 1\r\n 2\r\ncontent-length: 1\r\n\r\n1",
    "bare line feeds": b"POST / HTTP/1.1\nhost: x\ncontent-length: 1\n\n1",
    "bytes in a header": GET + b"x: \xff\xfe\r\n\r\n",
    "an absolute address": b"GET http://else/ HTTP/1.1\r\nhost: x\r\n\r\n",
    "another protocol": GET + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "HTTP/2 over an upgrade": GET + b"connection: upgrade\r\nupgrade: h2c\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT": b"CONNECT else:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    "broken chunks to nowhere": b"POST /no HTTP/1.1\r\nhost: x\r\n" + CHUNKED + b"\r\n1\r\n1\r\nZ",
}
"""What is odd and answered all the same."""

SHAPES = [*TWO_ENDS.values(), *NO_HTTP.values(), *HUGE.values(), *ODD.values()]


def malformed(seed: int) -> bytes:
    """One of the shapes, or something that is nearly a request, or no more than bytes."""
    dice = random.Random(seed)
    if dice.random() < 0.3:
        return dice.choice(SHAPES)
    if dice.random() < 0.2:
        return dice.randbytes(dice.randint(1, 2000))
    data = bytearray(HEAD + b'content-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}')
    for _ in range(dice.randint(1, 12)):
        if not data:
            break
        place = dice.randrange(len(data))
        match dice.randrange(4):
            case 0:
                data[place] = dice.randrange(256)
            case 1:
                del data[place : place + dice.randint(1, 9)]
            case 2:
                data[place:place] = dice.randbytes(9)
            case _:
                data = data[: place + 1]
    return bytes(data)
