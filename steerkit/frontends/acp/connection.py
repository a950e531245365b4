"""Connection: JSON-RPC frames, one a line, on two descriptors.

The reading thread takes a line, parses it and hands it on; it runs nobody's code that could wait. The writing thread
empties the outbox: the order of `put` is the order on the wire, whichever threads they come from. A request to the
client is a future, which the reading thread settles. Both threads are daemons that hold no lock of the interpreter's
streams while they wait, so the process can end while the client keeps its ends open.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from steerkit.frontends.acp.outbox import Outbox
from steerkit.frontends.acp.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    Params,
    RpcError,
)

logger = logging.getLogger(__name__)

# Longer than any message of an honest client; what is longer is read to its end and refused.
LONGEST_LINE = 64 * 1024 * 1024

RequestId = str | int | float | None


class RequestFailed(Exception):
    """The client answered a request of ours with an error."""


class Reply:
    """Where the answer to one request goes. Any thread; call one of its methods, once."""

    def __init__(self, connection: Connection, request_id: RequestId) -> None:
        self._connection = connection
        self.request_id = request_id

    def answers(self, request_id: object) -> bool:
        """Whether it answers the request of this id; `"7"` is not `7`."""
        return type(self.request_id) is type(request_id) and self.request_id == request_id

    def result(self, result: Any) -> None:
        self._connection.send({"id": self.request_id, "result": result})

    def error(self, error: RpcError) -> None:
        self._connection.send({"id": self.request_id, "error": error.to_json()})


# method, params, and where the answer goes (None for a notification)
Receive = Callable[[str, Params, Reply | None], None]


class Connection:
    """Both directions of one connection. Every method works from any thread.

    Owns `_asked`, the requests that the client has not answered, under `_lock`.
    """

    def __init__(self, incoming: int, outgoing: int, receive: Receive) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._receive = receive
        self._outbox = Outbox()
        self._lock = threading.Lock()
        self._asked: dict[int, Future[Any]] = {}
        self._numbers = itertools.count()
        self.over = threading.Event()  # the input has ended, or nobody reads the output

    def start(self) -> None:
        """Start the reading and the writing thread."""
        for work in (self._read, self._write):
            threading.Thread(target=work, name=f"steerkit-acp{work.__name__}", daemon=True).start()

    def send(self, frame: dict[str, Any]) -> None:
        """Queue a frame. Never waits."""
        # ASCII: no reader can take U+2028 for the end of a line, and no lone surrogate can fail to encode.
        self._outbox.put(json.dumps({"jsonrpc": "2.0", **frame}, separators=(",", ":")).encode() + b"\n")

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification. Never waits."""
        self.send({"method": method, "params": params})

    def request(self, method: str, params: dict[str, Any]) -> Future[Any]:
        """Ask the client. The future holds its result, or RequestFailed; cancel it once the answer does not matter."""
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            self._asked[number] = future
        future.add_done_callback(lambda _: self._forget(number))
        self.send({"id": number, "method": method, "params": params})
        return future

    def wait_for_room(self) -> None:
        """Wait while the client is far behind with its reading. Not in the reading thread, not under a lock."""
        self._outbox.wait_for_room()

    def close(self, timeout: float) -> None:
        """Send nothing more, and wait up to `timeout` seconds until what was queued has left."""
        self._outbox.close()
        self._outbox.wait_until_written(timeout)

    def _forget(self, number: int) -> None:
        with self._lock:
            self._asked.pop(number, None)

    # ---- the writing thread

    def _write(self) -> None:
        while (data := self._outbox.take()) is not None:
            view = memoryview(data)
            while view:
                try:
                    size = os.write(self._outgoing, view)
                except OSError as error:
                    logger.debug("The client reads no more: %s", error)
                    self._outbox.discard()
                    self.over.set()
                    return
                view = view[size:]
                self._outbox.written(size)

    # ---- the reading thread

    def _read(self) -> None:
        try:
            for line in _lines(self._incoming):
                self._take(line)
        finally:
            self.over.set()

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self._refuse(None, RpcError(INVALID_REQUEST, f"The line is longer than {LONGEST_LINE} bytes."))
            return
        if not line.strip():
            return
        try:
            frame = json.loads(line.decode(), parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            self._refuse(None, RpcError(PARSE_ERROR, "The line is not JSON in UTF-8."))
            return
        if not isinstance(frame, dict):
            self._refuse(None, RpcError(INVALID_REQUEST, "A message is one JSON object a line."))
        elif "method" in frame:
            self._called(frame)
        elif "id" in frame and ("result" in frame or "error" in frame):
            self._answered(frame)
        else:
            self._refuse(None, RpcError(INVALID_REQUEST, "A message has a method, or an id with a result or error."))

    def _called(self, frame: dict[str, Any]) -> None:
        method, request_id = frame["method"], frame.get("id")
        if isinstance(request_id, bool) or not isinstance(request_id, (str, int, float, type(None))):
            self._refuse(None, RpcError(INVALID_REQUEST, "A request's id is a string or a number."))
            return
        reply = Reply(self, request_id) if "id" in frame else None
        params = {} if frame.get("params") is None else frame["params"]
        try:
            if not isinstance(method, str):
                raise RpcError(INVALID_REQUEST, "The name of a method is a string.")
            if not isinstance(params, dict):
                raise RpcError(INVALID_PARAMS, "The params of every method are an object.")
            self._receive(method, params, reply)
        except RpcError as error:
            if reply is not None:
                reply.error(error)
        except Exception as error:
            logger.exception("%s failed.", method)
            if reply is not None:
                reply.error(internal_error(error))

    def _answered(self, frame: dict[str, Any]) -> None:
        number = frame["id"]
        with self._lock:
            # True is 1 to a dict, and so is 1.0.
            future = self._asked.get(number) if type(number) is int else None
        # Cancelled meanwhile: nobody waits for it.
        if future is None or not future.set_running_or_notify_cancel():
            return
        if "error" in frame:
            future.set_exception(RequestFailed(str(frame["error"])))
        else:
            future.set_result(frame["result"])

    def _refuse(self, request_id: RequestId, error: RpcError) -> None:
        logger.debug("A line was refused: %s", error)
        Reply(self, request_id).error(error)


def internal_error(error: BaseException) -> RpcError:
    """What the client is told of an unexpected error; the log has its traceback."""
    return RpcError(INTERNAL_ERROR, f"{type(error).__name__}: {error}")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _lines(descriptor: int) -> Iterator[bytes | None]:
    """Each line of the input, without its end; None for one that is too long. What ends without \\n is no line."""
    kept: list[bytes] = []
    size = 0
    while True:
        try:
            data = os.read(descriptor, 1 << 18)
        except OSError:
            return
        if not data:
            return
        *ended, rest = data.split(b"\n")
        for end in ended:
            yield b"".join((*kept, end)) if size + len(end) <= LONGEST_LINE else None
            kept.clear()
            size = 0
        size += len(rest)
        if size <= LONGEST_LINE:
            kept.append(rest)
        else:
            kept.clear()


def claim_stdio() -> tuple[int, int]:
    """Private duplicates of descriptors 0 and 1, which then lead to the null device and to standard error.

    A tool that prints cannot break a frame then, and one that reads standard input cannot eat one.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without standard error
        os.dup2(null, 1)
    os.close(null)
    return incoming, outgoing
