"""Cancel: one flag for a run, and what has to be broken when it is raised.

`request()` comes from any thread, also from a signal handler. It raises the flag under the lock and runs the
callbacks after it, in the caller's thread; so a callback is quick (it shuts a socket) and never waits.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class Flag:
    """A read-only view of something that becomes true: `if flag:` and `flag.wait(1.0)` both say what they seem to."""

    def __init__(self, changed: threading.Condition, is_set: Callable[[], bool]) -> None:
        self._changed = changed
        self.is_set = is_set

    def __bool__(self) -> bool:
        return self.is_set()

    def wait(self, timeout: float | None = None, also: Flag | None = None) -> bool:
        """Wait until it is true, or `also` is, at most `timeout` seconds; returns whether one is.

        Whoever makes `also` true has to call `wake` here.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self.is_set() or bool(also), timeout)

    def wake(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()


class Cancelled(BaseException):
    """Unwinds the worker of a cancelled run.

    A BaseException, so that a pattern's `except Exception: try again` cannot keep a cancelled run alive.
    """


class Cancellation:
    """Owns `_requested` and `_callbacks`, both under `_changed`.

    The lock is reentrant: a signal handler may cancel while its own thread is in here.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._requested = False
        self._callbacks: dict[object, Callable[[], None]] = {}
        self.requested = Flag(self._changed, lambda: self._requested)

    def request(self) -> None:
        """Cancel. Only the first call does anything."""
        with self._changed:
            self._requested = True
            self._changed.notify_all()
            callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks.values():
            try:
                callback()
            except Exception:
                import logging  # a tenth of what `import steerkit` would take, for what hardly ever happens

                logging.getLogger(__name__).exception("A callback of cancel() failed; the others still run.")

    def raise_if_requested(self) -> None:
        """Raises: Cancelled, once `request()` was called."""
        if self._requested:
            raise Cancelled

    @contextlib.contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """While the block runs, `request()` calls `callback`, in its own thread; at once if it came before."""
        key = object()
        with self._changed:
            # Kept first, and looked for afterwards: a signal handler may cancel in between. Who takes it out calls it.
            self._callbacks[key] = callback
            late = self._requested and self._callbacks.pop(key, None) is not None
        if late:
            callback()
        try:
            yield
        finally:
            with self._changed:
                self._callbacks.pop(key, None)
