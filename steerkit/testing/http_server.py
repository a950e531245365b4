"""The part of HTTP/1.1 that a scripted server needs: read a request, write an answer piece by piece, keep alive."""

from __future__ import annotations

import contextlib
import http
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO

from attrs import frozen

from steerkit.core.cancel import Cancelled
from steerkit.testing.reply import Framing
from steerkit.testing.script import ConnectionCut

_LONGEST_LINE = 65536


@frozen(eq=False)
class HttpRequest:
    """A request as it was read; the names of `headers` are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@frozen(eq=False)
class HttpAnswer:
    """An answer to be sent.

    Attributes:
        status: the HTTP status.
        headers: without those of the framing.
        body: each item is one write, and is asked for when the last one was sent. ConnectionCut and Cancelled end it
            and the connection.
        framing: how the client knows the end; `length` needs `length`.
        length: bytes of the whole body.
        abort: reset the connection behind the body, in place of its end.
    """

    status: int
    headers: Iterable[tuple[str, str]]
    body: Iterable[bytes]
    framing: Framing
    length: int = 0
    abort: bool = False


def serve(connection: socket.socket, answer: Callable[[HttpRequest], HttpAnswer | None]) -> None:
    """Answer requests until the client or an answer ends the connection. `answer` may give None: drop it.

    A client that goes away, or sends no HTTP, ends it too; that is no error.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError, ConnectionCut, Cancelled), connection.makefile("rb") as reader:
        while (request := _read(reader)) is not None:
            reply = answer(request)
            if reply is None:
                return
            _send(connection, reply)
            if reply.abort:
                # Without lingering, close() resets the connection: the client cannot take it for an end.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if reply.abort or reply.framing == "close" or request.headers.get("connection", "").lower() == "close":
                return


def _read(reader: BinaryIO) -> HttpRequest | None:
    """The next request, or None if there is none, or something else than a whole one."""
    first = reader.readline(_LONGEST_LINE).decode("latin-1").split()
    if len(first) != 3 or not first[2].startswith("HTTP/1."):
        return None
    headers: dict[str, str] = {}
    while (line := _line(reader)) != "":
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    try:
        chunked = "transfer-encoding" in headers
        body = _read_chunks(reader) if chunked else _exactly(reader, int(headers.get("content-length", "0")))
    except ValueError:  # a length that is no number
        return None
    return HttpRequest(first[0], first[1], headers, body)


def _read_chunks(reader: BinaryIO) -> bytes:
    body = b""
    while (size := int(_line(reader).partition(";")[0], 16)) > 0:
        body += _exactly(reader, size)
        _line(reader)
    _line(reader)
    return body


def _line(reader: BinaryIO) -> str:
    line = reader.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise ConnectionResetError("The client went away in the middle of a request.")
    return line.decode("latin-1").rstrip("\r\n")


def _exactly(reader: BinaryIO, size: int) -> bytes:
    data = reader.read(size)
    if len(data) < size:
        raise ConnectionResetError("The client went away in the middle of a request.")
    return data


def _send(connection: socket.socket, answer: HttpAnswer) -> None:
    connection.sendall(_head(answer))
    chunked = answer.framing == "chunked"
    for piece in answer.body:
        if piece:
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
    if chunked and not answer.abort:
        connection.sendall(b"0\r\n\r\n")


def _head(answer: HttpAnswer) -> bytes:
    try:
        phrase = http.HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Unknown"
    framing = {
        "chunked": ("transfer-encoding", "chunked"),
        "length": ("content-length", str(answer.length)),
        "close": ("connection", "close"),
    }[answer.framing]
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{name}: {value}" for name, value in (*answer.headers, framing))]
    return "\r\n".join((*lines, "", "")).encode("latin-1")
