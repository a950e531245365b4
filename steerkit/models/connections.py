"""Connections whose wait can be broken from another thread, and never a wait that is not meant.

A blocked read ends when its socket is shut down (closing it does not end it). The danger is to shut a socket that went
back to the pool and serves another request by then. So:

1. a connection that is about to send notes its socket in the Exchange of the calling thread, as a duplicate of the
   file descriptor: that number is the Exchange's own, so nobody can close it and give it to another socket;
2. a pool that takes a connection back first takes the socket out of its Exchange, under the lock that `break_off`
   holds while it shuts. (One that was shut before is found closed by urllib3 when it is next taken.)

Not covered: the look-up of a host name and the connecting, which `connect_timeout` bounds.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from steerkit.core.cancel import Cancelled

_sending = threading.local()


class Exchange:
    """One request and its answer on one connection.

    Owns `_socket`, `_breaker`, `_broken` and `was_shut`, under `_lock`, which is reentrant because a signal handler may
    call `break_off` while its own thread is in here. Everything else belongs to the thread that sends and reads.

    Attributes:
        reused: the connection had served another request before.
        sent: the connection stands and the request is on its way.
        was_shut: `break_off` came while the answer was awaited or read, so what was read since may be cut short.
    """

    def __init__(self, read_timeout: float) -> None:
        self.read_timeout = read_timeout
        self.reused = False
        self.sent = False
        self.was_shut = False
        self._lock = threading.RLock()
        self._broken = False
        self._socket: socket.socket | None = None
        self._breaker: socket.socket | None = None

    @contextlib.contextmanager
    def sending(self) -> Iterator[None]:
        """Connections that send in this thread, while the block runs, do it for this exchange."""
        self.reused = self.sent = False
        _sending.exchange = self
        try:
            yield
        finally:
            _sending.exchange = None

    def carry(self, sock: socket.socket, reused: bool) -> None:
        """A connection is about to send through `sock`.

        Raises:
            Cancelled: `break_off` came before.
        """
        self.release()  # of an earlier attempt, which failed
        with self._lock:
            self._socket = sock
            self._breaker = socket.socket(fileno=os.dup(sock.fileno()))
            self.reused, self.sent = reused, True
            if self._broken:
                raise Cancelled

    def set_timeout(self, seconds: float) -> None:
        """How long the next read of the socket may wait. Nothing happens once another may use the socket."""
        with self._lock:
            if self._socket is not None:
                self._socket.settimeout(seconds)

    def break_off(self) -> None:
        """End the wait for the answer, now or as soon as there is one. Any thread, also a signal handler."""
        with self._lock:
            self._broken = True
            if self._breaker is not None:
                self.was_shut = True
                # At the level of the descriptor, for TLS too: an SSLSocket would first drop the state that the
                # reading thread is using.
                with contextlib.suppress(OSError):
                    self._breaker.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Let go of the socket: another may use it from now on."""
        with self._lock:
            breaker, self._breaker, self._socket = self._breaker, None, None
            if breaker is not None:
                breaker.close()


class _Noting(HTTPConnection):
    """A connection that notes its socket when it sends."""

    exchange: Exchange | None = None

    def request(self, *args: Any, **kwargs: Any) -> None:
        exchange: Exchange | None = getattr(_sending, "exchange", None)
        if exchange is None:
            super().request(*args, **kwargs)
            return
        # A TLS connection is connected before it comes here, so only the connection itself knows that it is new.
        reused = self.exchange is not None
        if self.sock is None:
            reused = False
            self.connect()
        assert self.sock is not None
        self.exchange = exchange
        exchange.carry(self.sock, reused)
        # Or the sending of a long conversation would have to be done within connect_timeout.
        self.timeout = exchange.read_timeout
        super().request(*args, **kwargs)

    def close(self) -> None:
        super().close()
        self.exchange = None


class _NotingTLS(_Noting, HTTPSConnection):
    """The same over TLS."""


class _Releasing(HTTPConnectionPool):
    """A pool that takes a connection out of its exchange before anyone else can have it."""

    ConnectionCls = _Noting

    def _put_conn(self, conn: Any) -> None:
        if conn is not None and conn.exchange is not None:
            conn.exchange.release()
        super()._put_conn(conn)


class _ReleasingTLS(_Releasing, HTTPSConnectionPool):
    """The same over TLS."""

    ConnectionCls = _NotingTLS


POOL_CLASSES: dict[str, type[HTTPConnectionPool]] = {"http": _Releasing, "https": _ReleasingTLS}
