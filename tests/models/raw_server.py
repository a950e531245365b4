"""A server on loopback that sends exactly the bytes that a test says, when the test says."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from attrs import field, frozen

from steerkit.core.cancel import Cancellation, Cancelled
from steerkit.core.errors import ModelError
from steerkit.core.message import assistant, user
from steerkit.core.model import Endpoint, ModelRef, Request, Response
from steerkit.models.client import WireClient
from steerkit.models.failures import error_in_answer
from steerkit.models.sse import ServerEvent
from steerkit.models.wire import Settings

PATIENCE = 20.0  # seconds after which a wait in a test has failed


@frozen
class Received:
    """One request as it came; header names in lower case."""

    target: str
    headers: dict[str, str]
    body: bytes = field(repr=False)


class Connection:
    """One accepted connection; belongs to the thread that serves it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = sock.makefile("rb")

    def receive(self) -> Received | None:
        """The next request, or None when the client has gone."""
        first = self._buffer.readline().decode("latin-1").split(" ")
        if len(first) < 3:
            return None
        headers: dict[str, str] = {}
        while line := self._buffer.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        body = self._buffer.read(length)
        return Received(first[1], headers, body) if len(body) == length else None

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.sock.sendall(piece)

    def wait_until_client_leaves(self) -> None:
        """Until the client has shut or closed its side, or the server is closed."""
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self._buffer.close()
        self.sock.close()


Answer = Callable[[Received, Connection], object]


class RawServer:
    """Calls `answer(request, connection)` for each request, in a thread for each connection.

    `answer` sends what it likes, and closes the connection if it likes. What it raises is raised by leaving the block.
    """

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[Received] = []
        self.connections: list[Connection] = []
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://localhost:{self.port}"

    def endpoint(self, **settings: Any) -> Endpoint:
        return Endpoint(
            **{"base_url": f"{self.url}/v1", "api_key": "sk-secret-key", "read_timeout": PATIENCE, **settings}
        )

    def __enter__(self) -> RawServer:
        self._threads[0].start()
        return self

    def __exit__(self, *exc: object) -> None:
        # A blocked accept() is not ended by closing the listener, but by a connection.
        self._closing = True
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        self._threads[0].join(PATIENCE)
        self._listener.close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a thread of the test's server is stuck"
        if self._errors and exc[0] is None:
            raise self._errors[0]

    _closing = False

    def stop_listening(self) -> None:
        """Refuse new connections from now on."""
        self._listener.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if self._closing:
                sock.close()
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_side=True)
            connection = Connection(sock)
        except OSError:
            sock.close()
            return
        self.connections.append(connection)
        try:
            while (received := connection.receive()) is not None:
                self.requests.append(received)
                self._answer(received, connection)
        except (OSError, ValueError):  # the client has gone, or the answer closed the connection
            pass
        except BaseException as error:
            self._errors.append(error)
        finally:
            connection.close()


def http(status: int, body: bytes | str = b"", **headers: str) -> bytes:
    """A whole reply with a Content-Length; `content_type="..."` is the header Content-Type."""
    body = body.encode() if isinstance(body, str) else body
    headers = {"content_type": "application/json", "content_length": str(len(body)), **headers}
    return head(status, **headers) + body


def head(status: int = 200, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


STREAM = head(content_type="text/event-stream", transfer_encoding="chunked")
STREAM_TO_CLOSE = head(content_type="text/event-stream", connection="close")
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def text_event(text: str) -> bytes:
    return f"data: {json.dumps({'text': text})}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def streamed(*texts: str) -> bytes:
    """A whole streamed answer, chunked."""
    return STREAM + b"".join(chunk(text_event(text)) for text in texts) + chunk(DONE) + LAST_CHUNK


def plain(text: str) -> bytes:
    return http(200, json.dumps({"text": text}))


class TextWire:
    """The least wire format there can be: `{"text": ...}`, plain or in events."""

    name = "text"
    path = "/ask"

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        return {"Authorization": f"Bearer {endpoint.api_key}"}

    def settings(self, endpoint: Endpoint, model: str) -> Settings:
        return Settings("raw")

    def cure(self, error: ModelError, request: Request, endpoint: Endpoint, settings: Settings) -> Settings | None:
        """A placement is cured by the bridge; a refused field by leaving it out; `loop` by turning in a circle."""
        if error.kind == "placement":
            return Settings("bridge", settings.without)
        if error.param == "loop":
            return Settings("fold" if settings.mode == "raw" else "raw")
        if error.param:
            return Settings(settings.mode, settings.without | {error.param})
        return None

    def encode(self, request: Request, endpoint: Endpoint, settings: Settings, *, stream: bool) -> bytes:
        text = request.messages[-1].text
        body = {"text": text, "stream": stream, "mode": settings.mode, "without": sorted(settings.without)}
        return json.dumps(body).encode()

    def decode(self, body: Any, request: Request, endpoint: Endpoint) -> Response:
        if "error" in body:
            raise error_in_answer(body)
        return Response(assistant(body["text"]))

    def reader(self, request: Request, endpoint: Endpoint) -> TextReader:
        return TextReader()


class TextReader:
    def __init__(self) -> None:
        self.done = False
        self._texts: list[str] = []

    def feed(self, event: ServerEvent) -> str:
        if event.data == "[DONE]":
            self.done = True
            return ""
        data = json.loads(event.data)
        if "error" in data:
            raise error_in_answer(data)
        self._texts.append(data["text"])
        text: str = data["text"]
        return text

    def response(self) -> Response:
        if not self.done:
            raise ModelError("The answer broke off.", kind="truncated", retryable=True)
        return Response(assistant("".join(self._texts)))


def question(text: str = "Q", **options: Any) -> Request:
    return Request(ModelRef("tiny"), (user(text),), **options)


def sent(requests: Iterable[Received]) -> list[dict[str, Any]]:
    """The bodies of `requests`."""
    return [json.loads(request.body) for request in requests]


def always(reply: bytes) -> Answer:
    return lambda _received, connection: connection.send(reply)


def text_of(client: WireClient, **options: Any) -> str:
    """The streamed answer to a question."""
    return client.complete(question(**options), lambda _text: None).message.text


def cancelled_while(begun: threading.Event, client: WireClient, on_text: Callable[[str], None] | None) -> float:
    """Ask, cancel once `begun` is set, and return the seconds from the cancel until the ask had ended by it."""
    cancellation = Cancellation()
    ended: list[float] = []

    def ask() -> None:
        with pytest.raises(Cancelled):
            client.complete(question(cancellation=cancellation), on_text)
        ended.append(time.monotonic())

    asking = threading.Thread(target=ask)
    asking.start()
    assert begun.wait(PATIENCE)
    began = time.monotonic()
    cancellation.request()
    asking.join(PATIENCE)
    assert ended, "the cancel did not end the wait"
    return ended[0] - began
