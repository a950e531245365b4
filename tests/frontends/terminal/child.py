"""A Python process with a steered run in it, and a pipe or a terminal as its standard input."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[3]

PRELUDE = '''
import os, signal, sys, threading, traceback
from steerkit import EndEvent, Runner, Spec, StepEvent, SteerEvent, user
from steerkit.frontends.terminal import steer_from_stdin
from steerkit.patterns import ReAct
from steerkit.testing import ScriptedModel, call, say

signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may have been started with it ignored

def tell(text):
    os.write(1, f"{text}\\n".encode())  # at once: two threads tell

class Held:
    """A reply that tells when it is asked for, and is given when `gate` is set."""

    def __init__(self, reply, name="asked"):
        self.reply, self.name, self.gate = reply, name, threading.Event()
        self.asked = threading.Event()

    def __call__(self, request):
        tell(self.name)
        self.asked.set()
        return self.reply.after(self.gate)

def start(model, on_event=None, **settings):
    spec = Spec("scripted", "react", 5, **settings)
    return Runner(model, [ReAct()]).start(spec, [user("Q")], model.endpoint, on_event)

def tell_when_main_waits(run):
    """Says "waiting" once the main thread stands in run.wait(), where Ctrl-C is looked for."""
    main, code = threading.main_thread().ident, type(run)._wait_for_end.__code__
    def look():
        while not any(frame.f_code is code for frame, _ in traceback.walk_stack(sys._current_frames()[main])):
            run._ended.wait(0.001)
        tell("waiting")
    threading.Thread(target=look, daemon=True).start()
'''


class Child:
    """A Python process that runs `source` after the prelude; its lines are read one by one."""

    def __init__(self, source: str, stdin: int, *, close_stdin: bool = False) -> None:
        command = [sys.executable, "-c", PRELUDE + textwrap.dedent(source)]
        if close_stdin:
            command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
        self.process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, start_new_session=True
        )

    def wait_for(self, line: str) -> None:
        assert self.process.stdout is not None
        for found in self.process.stdout:
            if found.decode().rstrip() == line:
                return
        raise AssertionError(f"the child ended before it said {line!r}: {self.errors()}")

    def errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def end(self) -> tuple[int, list[str], str]:
        """Its exit code, its further lines, and its standard error."""
        output, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output.decode().splitlines(), errors.decode()


@contextlib.contextmanager
def child(source: str, stdin: int, *, close_stdin: bool = False) -> Iterator[Child]:
    started = Child(source, stdin, close_stdin=close_stdin)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


class Pipe:
    """Standard input as a pipe or a terminal: the child reads `inner`, and `outer` stays open in the test."""

    def __init__(self, kind: str) -> None:
        self.inner, self.outer = os.pipe() if kind == "pipe" else reversed(os.openpty())

    def write(self, data: bytes) -> None:
        os.write(self.outer, data)

    def close(self) -> None:
        for descriptor in (self.inner, self.outer):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def assert_clean(code: int, errors: str) -> None:
    assert "Fatal Python error" not in errors
    assert "Traceback" not in errors
    assert code == 0
