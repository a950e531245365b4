"""Gateway: a real HTTP server on loopback that answers from a script, in the formats of the providers.

For one request, in this order:

1. it is recorded;
2. what a provider refuses is refused, with the provider's status and words: the path (404), the key (401), the body
   (400). That uses up no reply;
3. the next reply is taken, and held while its gate is closed;
4. it is sent: one write for each event of a stream.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, get_args

from attrs import evolve, field, frozen

from steerkit.core.cancel import Cancellation
from steerkit.core.model import Endpoint
from steerkit.testing.dialects import chat
from steerkit.testing.dialects.dialect import Dialect, Refused
from steerkit.testing.exchange import answer, check, dialect_of, refusal, script_fault
from steerkit.testing.http_server import HttpAnswer, HttpRequest, serve
from steerkit.testing.reply import Reply
from steerkit.testing.script import Script, Step

Strict = Literal["mistral", "alternate"]


@frozen(eq=False)
class Recorded:
    """One request as the Gateway got it.

    Attributes:
        path: with its query.
        headers: names in lower case.
        raw: the body.
        body: the body as parsed JSON, or None if it is not JSON.
    """

    path: str
    headers: Mapping[str, str] = field(repr=False)
    raw: bytes = field(repr=False)
    body: Any


class Gateway:
    """A server on loopback, from its making until `close()`; a context manager.

    It answers POST to paths that end in `/chat/completions`, `/messages` (Anthropic) and `/responses` (OpenAI), plain
    and streamed. A script that is over, or a function of it that raises, is an HTTP 500 that says so.

    Args:
        script: the replies in order, or one function `(recorded) -> Reply` for every request; a step of a list may be
            such a function too. Functions are called in the thread of the connection, several at once.
        key: what clients have to send.
        strict: refuse a further kind of conversation on chat completions: `mistral` a user message behind a tool
            result, `alternate` (chat templates of some local models) two user messages without an answer between.
        port: 0 takes a free one.

    Raises:
        ValueError: `strict` is none of these.
        OSError: the port is taken.
    """

    def __init__(
        self,
        script: Iterable[Step[Recorded]] | Callable[[Recorded], Reply],
        *,
        key: str = "test-key",
        strict: Strict | None = None,
        port: int = 0,
    ) -> None:
        if strict is not None and strict not in get_args(Strict):
            raise ValueError(f"Gateway(strict=...) is one of {', '.join(get_args(Strict))}, not {strict!r}.")
        self._script = Script(_without_exceptions(script))
        self._strict = strict
        self._closing = Cancellation()
        self._changed = threading.Condition()  # guards _requests, _connections and _threads
        self._requests: list[Recorded] = []
        self._connections = 0
        self._threads: set[threading.Thread] = set()
        self._socket = socket.create_server(("127.0.0.1", port), backlog=512)
        self.endpoint = Endpoint(f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1", key)
        self._acceptor = threading.Thread(target=self._accept, name="gateway", daemon=True)
        self._acceptor.start()

    @property
    def requests(self) -> list[Recorded]:
        """Every request so far, refused ones too, in the order in which they came whole."""
        with self._changed:
            return list(self._requests)

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> None:
        """Wait until so many requests have come, at most `timeout` seconds; they may not be answered yet.

        Raises:
            TimeoutError: fewer came.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._requests) >= count, timeout):
                raise TimeoutError(f"{len(self._requests)} of {count} requests came within {timeout} s.")

    @property
    def connections(self) -> int:
        """How many connections were made so far."""
        with self._changed:
            return self._connections

    def endpoint_with(self, **settings: Any) -> Endpoint:
        """`endpoint` with other settings, such as `read_timeout=0.2` (seconds)."""
        return evolve(self.endpoint, **settings)

    def serve_forever(self) -> None:
        """Wait until `close()` is called in another thread: for a process that is nothing but a Gateway.

        Ctrl-C ends the wait by KeyboardInterrupt.
        """
        self._closing.requested.wait()

    def close(self) -> None:
        """Stop: open gates no longer matter, connections are cut, and no thread is left. May be called again."""
        self._closing.request()
        # A blocked accept() wakes for a connection, on every system; closing its socket wakes it only on some.
        with contextlib.suppress(OSError):
            socket.create_connection(self._socket.getsockname(), timeout=1).close()
        self._acceptor.join()
        self._socket.close()
        with self._changed:
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            if self._closing.requested:
                connection.close()
                return
            thread = threading.Thread(target=self._serve, args=(connection,), name="gateway-connection", daemon=True)
            with self._changed:
                self._connections += 1
                self._threads.add(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, self._closing.calling(lambda: _shut(connection)):
                serve(connection, self._answer)
        finally:
            with self._changed:
                self._threads.discard(threading.current_thread())

    def _answer(self, request: HttpRequest) -> HttpAnswer | None:
        recorded, number = self._record(request)
        dialect: Dialect = chat
        try:
            dialect = dialect_of(request)
            check(dialect, request, recorded.body, self.endpoint.api_key, self._strict)
            return answer(dialect, self._script.take(recorded), recorded.body, number, self._closing)
        except Refused as refused:
            return refusal(dialect, refused)
        except Exception as error:
            return script_fault(dialect, error)

    def _record(self, request: HttpRequest) -> tuple[Recorded, int]:
        body = None
        with contextlib.suppress(ValueError):
            body = json.loads(request.body)
        recorded = Recorded(request.path, request.headers, request.body, body)
        with self._changed:
            self._requests.append(recorded)
            self._changed.notify_all()
            return recorded, len(self._requests)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _without_exceptions(
    script: Iterable[Step[Recorded]] | Callable[[Recorded], Reply],
) -> Iterable[Step[Recorded]] | Callable[[Recorded], Reply]:
    if callable(script) or isinstance(script, (str, Reply)):
        return script
    steps = list(script)
    for number, step in enumerate(steps):
        if isinstance(step, BaseException):
            raise TypeError(f"script[{number}] is {step!r}, which HTTP cannot carry: use fail() or cut().")
    return steps
