"""EventLog: every event of a run, for any number of readers."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from steerkit.core.event import EndEvent, Event


class EventLog:
    """Owns `_events` and `_closed`, under `_changed`. The worker appends; readers wait, each with a place of its own.

    No lock is held while a reader works on an event.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._closed = False

    def append(self, event: Event) -> bool:
        """Keep an event for the readers. False, and not kept, after the EndEvent: a pattern's own thread is late."""
        with self._changed:
            if self._closed:
                return False
            self._events.append(event)
            self._closed = isinstance(event, EndEvent)
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """No event comes any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def read(self) -> Iterator[Event]:
        """Every event from the first one on; waits for more until the log is closed."""
        place = 0
        while True:
            with self._changed:
                while not self._closed and len(self._events) == place:
                    self._changed.wait()
                new = self._events[place:]
            if not new:
                return
            place += len(new)
            yield from new
