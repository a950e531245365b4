"""Threads: Ctrl-C gets through a wait, and context variables get into the worker."""

from __future__ import annotations

import contextvars
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

import pytest

from steerkit import Event, Request, Run, RunCancelled, tool
from steerkit.testing import Answer, ScriptedModel, call, say
from tests.conftest import PATIENCE, Held, start

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where the tests were started with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _is_in(thread: int, function: Callable[..., object]) -> bool:
    """Whether a thread waits inside `function`, in something that this called."""
    frames = list(traceback.walk_stack(sys._current_frames()[thread]))
    return any(frame.f_code is function.__code__ for frame, _ in frames[2:])


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_wait_cancels_the_run_and_gets_through() -> None:  # B86
    held = Held(say("x"))
    run = start(ScriptedModel([held]))
    main = threading.get_ident()

    def press() -> None:
        held.wait()
        while not _is_in(main, Run.wait):
            held.go.wait(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        run.wait()
    presser.join(PATIENCE)
    with pytest.raises(RunCancelled):  # a second wait works, and says what became of the run
        run.wait()


def test_a_wait_that_times_out_leaves_the_run_as_it_is() -> None:  # B86
    held = Held(say("x"))
    run = start(ScriptedModel([held]))
    with pytest.raises(TimeoutError):
        run.wait(timeout=0.01)
    held.go.set()
    assert run.wait().output == "x"


def test_tools_the_model_and_handlers_see_the_callers_context_variables() -> None:  # B88
    seen: dict[str, str] = {}

    @tool
    def look() -> str:
        """Look."""
        seen["tool"] = WHO.get()
        return "seen"

    def step(_request: Request) -> Answer:
        seen["model"] = WHO.get()
        return call("look")

    def on_event(_run: Run, _event: Event) -> None:
        seen["handler"] = WHO.get()

    token = WHO.set("Ada")
    try:
        run = start(ScriptedModel([step, say("x")]), tools=[look], on_event=on_event)
    finally:
        WHO.reset(token)
    run.wait()
    assert seen == {"tool": "Ada", "model": "Ada", "handler": "Ada"}


def test_two_runs_at_once_keep_their_own_context_variables() -> None:  # B88
    together = threading.Barrier(2)
    seen: dict[str, tuple[str, str]] = {}

    @tool
    def sign(name: str) -> str:
        """Sign."""
        before = WHO.get()
        WHO.set(f"{name} signed")
        together.wait(PATIENCE)
        seen[name] = (before, WHO.get())
        return "signed"

    runs = []
    for name in ("Ada", "Bob"):
        WHO.set(name)
        runs.append(start(ScriptedModel([call("sign", name=name), say("x")]), tools=[sign]))
    WHO.set("nobody")
    for run in runs:
        run.wait()
    assert seen == {"Ada": ("Ada", "Ada signed"), "Bob": ("Bob", "Bob signed")}
    assert WHO.get() == "nobody"
