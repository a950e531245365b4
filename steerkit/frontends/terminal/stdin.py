"""Steer a run by typing lines, while it works.

The descriptor is read with `os.read` in a daemon thread. The buffered `sys.stdin` is never touched: a thread that is
parked in it holds its lock, and CPython then aborts at exit (seen: SIGABRT on 3.11 to 3.13 with a pipe or a pty open).
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable

from steerkit.core.errors import RunFinished, SteerQueueFull
from steerkit.run import Run

# How soon the reader sees that the run has ended, in seconds; what is typed after that is left for the next reader.
_LOOK_UP = 0.1


def steer_from_stdin(run: Run, on_late: Callable[[str], None] | None = None) -> threading.Thread:
    """Send every line of standard input to `run` as a steer, until the run or the input ends.

    It works on a terminal, a pipe, a file, `/dev/null` and a closed standard input. The end of input does not end the
    run. Blank lines are passed over; bytes that are no UTF-8 become U+FFFD.

    Args:
        run: the run to steer.
        on_late: called, in the reading thread, with a line that came when the run took no more steers. By default
            the line is written to standard error, with the word that it was too late.

    Returns:
        The reading thread, a daemon; join it to wait for the end of either.
    """
    thread = threading.Thread(target=_read, args=(run, on_late or _tell_late), name="steerkit-stdin", daemon=True)
    thread.start()
    return thread


def _read(run: Run, on_late: Callable[[str], None]) -> None:
    descriptor = _stdin_descriptor()
    if descriptor is None:
        return
    rest = b""
    while not run.done:
        try:
            # A line that comes when the run has ended is for the next reader, which may wait for it already.
            if not _readable(descriptor) or run.done:
                continue
            data = os.read(descriptor, 65536)
        except OSError:  # closed meanwhile; a terminal that hung up
            break
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            _steer(run, line, on_late)
    _steer(run, rest, on_late)  # a line that the end of the input, or of the run, cut short


def _steer(run: Run, typed: bytes, on_late: Callable[[str], None]) -> None:
    line = typed.decode("utf-8", "replace").rstrip("\r")
    if not line.strip():
        return
    try:
        run.steer(line)
    except RunFinished:
        on_late(line)
    except SteerQueueFull as error:
        print(error, file=sys.stderr)


def _tell_late(line: str) -> None:
    print(f"Too late, the run has ended: {line}", file=sys.stderr)


def _stdin_descriptor() -> int | None:
    """None when the program was started without standard input: descriptor 0 may be anybody's file by now."""
    try:
        return sys.stdin.fileno() if sys.stdin is not None else None
    except (OSError, ValueError):  # replaced by an object without a descriptor, or closed
        return None


def _readable(descriptor: int) -> bool:
    """Whether a read would not block. Windows can ask that of sockets only: there the read blocks."""
    if sys.platform == "win32":
        return True
    return bool(select.select([descriptor], [], [], _LOOK_UP)[0])
