"""Ends, in real processes: of the program with a reader parked, of one run before the next, and by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.frontends.terminal.child import Pipe, assert_clean, child

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
