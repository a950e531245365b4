"""Run a program to its end, with all that it starts: bounded in time and output, and stopped by a cancel.

1. It leads a session of its own, so one signal reaches it and everything it started.
2. However it ends, its group is ended with it: nothing is left running that nobody waits for.
3. The group is signalled before its leader is reaped: until then the system gives its number to nobody else.
4. What left the group (a daemon with its own session) is not found; it is not waited for either.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from attrs import define, field, frozen

from steerkit.core.cancel import Flag

__all__ = ["Ended", "run_process", "without_keys"]

# How soon a cancel, a time-out and an end are seen, in seconds.
_LOOK_UP = 0.05
# What a group gets to clean up between SIGTERM and SIGKILL, and a reader for what is still in the pipe.
_GRACE = 1.0
_KEY = re.compile(r"KEY(?![A-Z])|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` without the variables whose name says that they hold a key, a token or a password.

    It keeps keys out of what a command prints by accident. It is no wall: a command has the rights of this process.
    """
    return {name: value for name, value in environment.items() if not _KEY.search(name)}


@frozen
class Ended:
    """How a program ended.

    Attributes:
        why: `exit`, `timeout` or `cancelled`.
        code: its exit code, minus the number of the signal that ended it.
        output: standard output and error together, bounded; what is no UTF-8 is U+FFFD.
    """

    why: Literal["exit", "timeout", "cancelled"]
    code: int
    output: str


def run_process(
    arguments: Sequence[str],
    *,
    folder: str,
    environment: Mapping[str, str],
    timeout: float,
    limit: int,
    cancelled: Flag,
) -> Ended:
    """Run a program with nothing on its standard input, and wait for its end.

    Args:
        arguments: the program and its arguments.
        folder: where it works.
        environment: all of its variables.
        timeout: seconds until it is ended.
        limit: bytes of output that are kept, half of them from the start and half from the end.
        cancelled: ends it once it is true.

    Raises:
        OSError: it could not be started.
    """
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout, _Output(process.stdout.fileno(), limit) as output:
        try:
            why = _wait(process, output, time.monotonic() + timeout, cancelled)
            if why != "exit":
                _signal(process, signal.SIGTERM)
                _read_until(output, lambda: output.ended and _has_ended(process))
        finally:
            _signal(process, signal.SIGKILL)
            process.wait()
        _read_until(output, lambda: output.ended)
    return Ended(why, process.returncode, output.text())


def _wait(
    process: subprocess.Popen[bytes], output: _Output, deadline: float, cancelled: Flag
) -> Literal["exit", "timeout", "cancelled"]:
    # Not until the output ends: a program in the background may hold it open for ever.
    while not _has_ended(process):
        if cancelled:
            return "cancelled"
        if time.monotonic() >= deadline:
            return "timeout"
        output.read_some()
    return "exit"


def _read_until(output: _Output, stop: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _GRACE
    while not stop() and time.monotonic() < deadline:
        output.read_some()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # macOS says EPERM when only a dead leader is left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@define
class _Output:
    """What comes out of a descriptor: the first and the last bytes are kept."""

    _descriptor: int
    _limit: int
    ended: bool = False
    _head: bytearray = field(factory=bytearray)
    _tail: bytearray = field(factory=bytearray)
    _left_out: int = 0
    _selector: selectors.DefaultSelector = field(factory=selectors.DefaultSelector)

    def __enter__(self) -> _Output:
        self._selector.register(self._descriptor, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    def read_some(self) -> None:
        """Read what is there; wait a moment for it if there is nothing."""
        if self._selector.select(_LOOK_UP / 10 if self.ended else _LOOK_UP):
            data = os.read(self._descriptor, 65536)
            if not data:
                self._selector.unregister(self._descriptor)
                self.ended = True
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        room = self._limit // 2 - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._limit // 2
        if surplus > 0:
            del self._tail[:surplus]
            self._left_out += surplus

    def text(self) -> str:
        head, tail = (bytes(part).decode("utf-8", "replace") for part in (self._head, self._tail))
        if not self._left_out:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        return f"{head}\n[{self._left_out:,} bytes were left out here.]\n{tail}"
