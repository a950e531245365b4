"""Outbox: the frames that wait for the writing thread; its order is the order on the wire."""

from __future__ import annotations

import threading

# A client that stops reading stops the runs that talk to it at so many bytes, instead of filling the memory.
ROOM = 4 * 1024 * 1024


class Outbox:
    """Owns `_frames`, `_unwritten` (bytes, those being written too) and `_closed`, under `_changed`."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._frames: list[bytes] = []
        self._unwritten = 0
        self._closed = False

    def put(self, frame: bytes) -> None:
        """Append a frame. Never waits; dropped once the outbox is closed."""
        with self._changed:
            if not self._closed:
                self._frames.append(frame)
                self._unwritten += len(frame)
                self._changed.notify_all()

    def wait_for_room(self) -> None:
        """Wait while more than `ROOM` bytes are unwritten. For workers; the reading thread must not call it."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._unwritten <= ROOM)

    def take(self) -> bytes | None:
        """Every waiting frame, joined; waits for one. None once it is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._frames or self._closed)
            data = b"".join(self._frames)
            self._frames.clear()
            return data or None

    def written(self, size: int) -> None:
        """So many bytes have left."""
        with self._changed:
            self._unwritten -= size
            self._changed.notify_all()

    def close(self) -> None:
        """Take nothing more, and let go whoever waits for room. What waits can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def discard(self) -> None:
        """Close it and forget what waits: there is nobody left to write it to."""
        with self._changed:
            self._frames.clear()
            self._unwritten = 0
            self.close()

    def wait_until_written(self, timeout: float) -> bool:
        """Wait until everything has left, at most `timeout` seconds; returns whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: self._unwritten <= 0, timeout)
