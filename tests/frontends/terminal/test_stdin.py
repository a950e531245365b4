"""Steering by typed lines, in real processes on real pipes and terminals.

A child says on standard output what it is about to do, and waits for its gates; so a test acts at a known moment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[3]

PRELUDE = '''
import signal, sys, threading, traceback
from steerkit import EndEvent, Runner, Spec, StepEvent, SteerEvent, user
from steerkit.frontends.terminal import steer_from_stdin
from steerkit.patterns import ReAct
from steerkit.testing import ScriptedModel, call, say

signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may have been started with it ignored

def tell(text):
    print(text, flush=True)

class Held:
    """A reply that tells when it is asked for, and is given when `gate` is set."""

    def __init__(self, reply, name="asked"):
        self.reply, self.name, self.gate = reply, name, threading.Event()

    def __call__(self, request):
        tell(self.name)
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


@pytest.fixture(params=["pipe", "pty"])
def line(request: pytest.FixtureRequest) -> Iterator[Pipe]:
    made = Pipe(request.param)
    yield made
    made.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe("pipe")
    yield made
    made.close()


def assert_clean(code: int, errors: str) -> None:
    assert "Fatal Python error" not in errors
    assert "Traceback" not in errors
    assert code == 0


# Ends as soon as the steers that a test waits for are pending.
STEERED = """
held = Held(say("x"))
run = start(ScriptedModel([held, say("y")]), steer_continuations=1)
reader = steer_from_stdin(run)
threading.Thread(target=lambda: (run._queue.steer_pending.wait(), held.gate.set()), daemon=True).start()
result = run.wait()
tell(repr([m.text for m in result.messages if m.role == "user"][1:]))
"""


def test_a_typed_line_steers_the_run_and_the_program_ends_with_standard_input_left_open(line: Pipe) -> None:  # B82, B83
    with child(STEERED, line.inner) as program:
        program.wait_for("asked")
        line.write("look in vault.py, größer\n".encode())
        code, lines, errors = program.end()
    assert lines == ["['look in vault.py, größer']"]
    assert_clean(code, errors)


# The reader is parked: nothing was ever typed.
PARKED = """
run = start(ScriptedModel([say("x")]))
reader = steer_from_stdin(run)
tell(run.wait().output)
"""


@pytest.mark.parametrize("times", range(5))
def test_the_program_ends_with_exit_code_0_while_nothing_was_typed(line: Pipe, times: int) -> None:  # B82, B83
    with child(PARKED, line.inner) as program:
        code, lines, errors = program.end()
    assert lines == ["x"]
    assert_clean(code, errors)


def test_the_program_ends_while_the_reader_of_a_run_that_never_ends_is_parked(line: Pipe) -> None:  # B83
    source = """
    class Endless:
        done = False
    reader = steer_from_stdin(Endless())
    """
    with child(source, line.inner) as program:
        code, _, errors = program.end()
    assert_clean(code, errors)


def test_the_reading_thread_ends_with_the_run_while_standard_input_is_open(line: Pipe) -> None:  # B83
    source = """
    run = start(ScriptedModel([say("x")]))
    reader = steer_from_stdin(run)
    run.wait()
    reader.join(10)
    tell(reader.is_alive())
    """
    with child(source, line.inner) as program:
        code, lines, errors = program.end()
    assert lines == ["False"]
    assert_clean(code, errors)


UNTIL_EOF = """
held = Held(say("x"))
run = start(ScriptedModel([held, say("y")]), steer_continuations=1)
reader = steer_from_stdin(run)
reader.join()
tell("end of input")
tell(run.done)
held.gate.set()
result = run.wait()
tell(repr([m.text for m in result.messages if m.role == "user"][1:]))
"""


@pytest.mark.parametrize(
    ("typed", "steers"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"half a line", ["half a line"]),
        (b"one\nhalf", ["one", "half"]),
        (b"windows\r\n", ["windows"]),
        (b"\n  \n\t\none\n\n", ["one"]),
        (b"  kept as typed  \n", ["  kept as typed  "]),
        (b"bad \xff\xfe byte\n", ["bad \ufffd\ufffd byte"]),
        (b"cut \xc3", ["cut \ufffd"]),
        (b"\xed\xa0\x80\n", ["\ufffd\ufffd\ufffd"]),
        ("\u2028 is no line end\n".encode(), ["\u2028 is no line end"]),
        (b"x" * 200_000 + b"\n", ["x" * 200_000]),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_every_line_up_to_the_end_of_input_is_a_steer_and_the_end_does_not_end_the_run(
    pipe: Pipe, typed: bytes, steers: list[str]
) -> None:  # B85
    with child(UNTIL_EOF, pipe.inner) as program:
        os.close(pipe.inner)
        program.wait_for("asked")
        with open(pipe.outer, "wb") as writer:
            writer.write(typed)
        code, lines, errors = program.end()
    assert lines == ["end of input", "False", repr(steers)]
    assert_clean(code, errors)


# The reader tells of every read.
TELLING_READS = """
import os
read = os.read
def telling(descriptor, size):
    data = read(descriptor, size)
    tell(f"read {len(data)}")
    return data
os.read = telling
"""


def test_half_a_line_that_the_end_of_the_run_cuts_short_is_told_as_late(pipe: Pipe) -> None:  # B13
    source = """
    held = Held(say("x"))
    run = start(ScriptedModel([held]))
    half_read = threading.Event()
    read = os.read
    os.read = lambda descriptor, size: (read(descriptor, size), half_read.set())[0]
    reader = steer_from_stdin(run, on_late=lambda line: tell("late: " + line))
    half_read.wait()
    held.gate.set()
    run.wait()
    reader.join()
    """
    with child("import os\n" + textwrap.dedent(source), pipe.inner) as program:
        program.wait_for("asked")
        pipe.write(b"half")
        code, lines, errors = program.end()
    assert lines == ["late: half"]
    assert_clean(code, errors)


def test_a_character_that_comes_in_two_pieces_is_one_character(pipe: Pipe) -> None:  # B50
    with child(TELLING_READS + UNTIL_EOF, pipe.inner) as program:
        os.close(pipe.inner)
        program.wait_for("asked")
        pipe.write(b"gr\xc3")
        program.wait_for("read 3")
        with open(pipe.outer, "wb") as writer:
            writer.write(b"\xb6\xc3\x9fer\n")
        _, lines, _ = program.end()
    assert lines[-1] == "['größer']"


def test_on_a_terminal_the_end_of_input_key_ends_the_reading_and_not_the_run() -> None:  # B85
    terminal = Pipe("pty")
    with child(UNTIL_EOF, terminal.inner) as program:
        program.wait_for("asked")
        terminal.write(b"one\n\x04")
        code, lines, errors = program.end()
    terminal.close()
    assert lines == ["end of input", "False", "['one']"]
    assert_clean(code, errors)


def test_a_terminal_that_hangs_up_ends_the_reading_and_not_the_run() -> None:  # B85
    terminal = Pipe("pty")
    with child(UNTIL_EOF, terminal.inner) as program:
        program.wait_for("asked")
        terminal.close()
        code, lines, errors = program.end()
    assert lines == ["end of input", "False", "[]"]
    assert_clean(code, errors)


def test_an_input_at_its_end_costs_no_processor_time() -> None:  # B85
    source = """
    import os, time
    held = Held(say("x"))
    run = start(ScriptedModel([held]))
    reader = steer_from_stdin(run)
    reader.join()
    before = time.process_time()
    threading.Event().wait(1.0)
    tell(f"{time.process_time() - before < 0.1} {run.done}")
    held.gate.set()
    run.wait()
    """
    with child(source, subprocess.DEVNULL) as program:
        code, lines, errors = program.end()
    assert lines == ["asked", "True False"]
    assert_clean(code, errors)


def test_a_parked_reader_costs_little_processor_time(line: Pipe) -> None:  # B85
    source = """
    import time
    held = Held(say("x"))
    run = start(ScriptedModel([held]))
    reader = steer_from_stdin(run)
    before = time.process_time()
    threading.Event().wait(1.0)
    tell(f"{time.process_time() - before < 0.1} {reader.is_alive()}")
    held.gate.set()
    run.wait()
    """
    with child(source, line.inner) as program:
        code, lines, errors = program.end()
    assert lines == ["asked", "True True"]
    assert_clean(code, errors)


def test_a_closed_standard_input_leaves_the_run_alone() -> None:  # B85
    with child(UNTIL_EOF, subprocess.DEVNULL, close_stdin=True) as program:
        code, lines, errors = program.end()
    assert lines == ["asked", "end of input", "False", "[]"]
    assert_clean(code, errors)


def test_with_standard_input_closed_no_other_file_is_read_in_its_place(tmp_path: Path) -> None:  # B85
    secret = tmp_path / "secret"
    secret.write_text("not typed by anybody\n")
    source = f"opened = open({str(secret)!r})\ntell(opened.fileno())\n{UNTIL_EOF}"
    with child(source, subprocess.DEVNULL, close_stdin=True) as program:
        _, lines, _ = program.end()
    assert lines == ["0", "asked", "end of input", "False", "[]"]


def test_a_standard_input_without_a_descriptor_leaves_the_run_alone() -> None:  # B85
    source = f"import io\nsys.stdin = io.StringIO('not read')\n{UNTIL_EOF}"
    with child(source, subprocess.DEVNULL) as program:
        code, lines, errors = program.end()
    assert lines[-1] == "[]"
    assert_clean(code, errors)


# The worker is held in the last event: the run takes no more steers, and has not ended.
LATE = """
gate = threading.Event()
def on_event(run, event):
    if isinstance(event, EndEvent):
        tell("ending")
        gate.wait()
run = start(ScriptedModel([say("x")]), on_event)
heard = threading.Event()
reader = steer_from_stdin(run{on_late})
{wait}
gate.set()
tell(run.wait().output)
"""


def test_a_line_that_comes_too_late_is_told_on_standard_error(pipe: Pipe) -> None:  # B13
    with child(LATE.format(on_late="", wait="reader.join()"), pipe.inner) as program:
        os.close(pipe.inner)
        program.wait_for("ending")
        with open(pipe.outer, "wb") as writer:
            writer.write(b"S\n")
        code, lines, errors = program.end()
    assert (code, lines) == (0, ["x"])
    assert errors == "Too late, the run has ended: S\n"


def test_a_line_that_comes_too_late_is_given_to_on_late(pipe: Pipe) -> None:  # B13
    on_late = ", on_late=lambda line: (tell('late: ' + line), heard.set())"
    with child(LATE.format(on_late=on_late, wait="heard.wait()"), pipe.inner) as program:
        program.wait_for("ending")
        pipe.write(b"S\n")
        code, lines, errors = program.end()
    assert lines == ["late: S", "x"]
    assert_clean(code, errors)


def test_the_reader_of_a_run_that_has_ended_leaves_the_lines_to_the_next(line: Pipe) -> None:  # B14
    source = """
    first = Held(say("x"), "first")
    run = start(ScriptedModel([first]))
    reader = steer_from_stdin(run)
    first.gate.set()
    run.wait()
    reader.join()
    tell("between")
    second = Held(say("y"), "second")
    again = start(ScriptedModel([second, say("z")]), steer_continuations=1)
    steer_from_stdin(again)
    threading.Thread(target=lambda: (again._queue.steer_pending.wait(), second.gate.set()), daemon=True).start()
    tell(repr([m.text for m in again.wait().messages if m.role == "user"][1:]))
    """
    with child(source, line.inner) as program:
        program.wait_for("between")
        line.write(b"for the second\n")
        code, lines, errors = program.end()
    assert lines == ["second", "['for the second']"]
    assert_clean(code, errors)


def test_two_runs_one_behind_the_other_without_a_pause_lose_no_line(line: Pipe) -> None:  # B14
    source = """
    first = Held(say("x"), "first")
    run = start(ScriptedModel([first]))
    steer_from_stdin(run)
    first.gate.set()
    run.wait()
    second = Held(say("y"), "second")
    again = start(ScriptedModel([second, say("z")]), steer_continuations=1)
    steer_from_stdin(again)
    threading.Thread(target=lambda: (again._queue.steer_pending.wait(), second.gate.set()), daemon=True).start()
    tell(repr([m.text for m in again.wait().messages if m.role == "user"][1:]))
    """
    with child(source, line.inner) as program:
        program.wait_for("second")
        line.write(b"for the second\n")
        code, lines, errors = program.end()
    assert lines == ["['for the second']"]
    assert_clean(code, errors)


CTRL_C = """
held = Held(say("x"))
run = start(ScriptedModel([held]))
{reader}
tell_when_main_waits(run)
try:
    run.wait()
except KeyboardInterrupt:
    tell("interrupted")
    try:
        run.wait()
    except Exception as error:
        tell(type(error).__name__)
"""


@pytest.mark.parametrize("reader", ["steer_from_stdin(run)", ""], ids=["with a reader", "without"])
def test_ctrl_c_in_wait_ends_the_run_while_the_model_hangs(line: Pipe, reader: str) -> None:  # B86
    with child(CTRL_C.format(reader=reader), line.inner) as program:
        program.wait_for("waiting")
        os.kill(program.process.pid, signal.SIGINT)
        code, lines, errors = program.end()
    assert lines == ["interrupted", "RunCancelled"]
    assert_clean(code, errors)


def test_an_uncaught_ctrl_c_ends_the_program_with_a_reader_parked(line: Pipe) -> None:  # B86
    source = """
    run = start(ScriptedModel([Held(say("x"))]))
    steer_from_stdin(run)
    tell_when_main_waits(run)
    run.wait()
    """
    with child(source, line.inner) as program:
        program.wait_for("waiting")
        os.kill(program.process.pid, signal.SIGINT)
        code, _, errors = program.end()
    assert code == -signal.SIGINT
    assert "KeyboardInterrupt" in errors
    assert "Fatal Python error" not in errors
