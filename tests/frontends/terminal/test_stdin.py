"""Steering by typed lines, in real processes on real pipes and terminals: what becomes of every line.

A child says on standard output what it is about to do, and waits for its gates; so a test acts at a known moment.
"""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.frontends.terminal.child import Pipe, assert_clean, child

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


UNTIL_EOF = """
held = Held(say("x"))
run = start(ScriptedModel([held, say("y")]), steer_continuations=1)
reader = steer_from_stdin(run)
reader.join()
held.asked.wait()
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


def test_lines_beyond_what_a_run_holds_are_told_and_those_before_are_kept(pipe: Pipe) -> None:  # B112
    with child(UNTIL_EOF, pipe.inner) as program:
        os.close(pipe.inner)
        program.wait_for("asked")
        with open(pipe.outer, "wb") as writer:
            writer.write(b"".join(b"S%d\n" % number for number in range(1001)))
        code, lines, errors = program.end()
    assert lines[-1] == repr([f"S{number}" for number in range(1000)])
    assert "1000 steers are pending already" in errors
    assert_clean(code, errors)


def test_a_descriptor_that_is_closed_while_it_is_read_ends_the_reading_and_not_the_run(line: Pipe) -> None:  # B85
    source = UNTIL_EOF.replace("reader.join()", "import os\nos.close(0)\nreader.join()")
    with child(source, line.inner) as program:
        code, lines, errors = program.end()
    assert lines == ["asked", "end of input", "False", "[]"]
    assert_clean(code, errors)
