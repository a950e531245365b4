"""How a run ends: every way out, and every step of the end with somebody else between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from steerkit import (
    AnswerCutOff,
    EndEvent,
    Event,
    ModelError,
    Run,
    RunCancelled,
    RunFailed,
    RunFinished,
    Steer,
    SteerEvent,
    SteerkitError,
    SteerReturnedEvent,
    StepEvent,
    StepLimitReached,
    TextEvent,
    ToolCall,
    ToolCallEvent,
    ToolResultEvent,
    Turn,
    TurnEvent,
    Usage,
    UsageEvent,
    assistant,
    tool,
)
from steerkit.testing import ScriptedModel, call, cut, fail, say
from tests.conftest import PATIENCE, Held, LyingLock, accounted, ask_until_answered, in_thread, said, start, texts

KINDS = [
    TurnEvent,
    StepEvent,
    TextEvent,
    UsageEvent,
    ToolCallEvent,
    ToolResultEvent,
    SteerEvent,
    SteerReturnedEvent,
    EndEvent,
]


@tool
def look() -> str:
    """Look."""
    return "seen"


@tool
def crash() -> str:
    """End the program."""
    raise SystemExit(3)


class At:
    """An on_event that does something at the first event of a kind, in the worker."""

    def __init__(self, kind: type[Event], act: Callable[[Run], object], number: int = 1) -> None:
        self._kind, self._act, self._number = kind, act, number
        self.got: list[Any] = []

    def __call__(self, run: Run, event: Event) -> None:
        if isinstance(event, self._kind):
            self._number -= 1
            if self._number == 0:
                self.got.append(self._act(run))


def steering(run: Run) -> Steer:
    return run.steer("S")


def cancelling(run: Run) -> Steer:
    steer = run.steer("S")
    run.cancel()
    return steer


# ---- every way out


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raising(error: BaseException) -> Callable[[Turn], str]:
    def work(turn: Turn) -> str:
        raise error

    return work


def no_output(turn: Turn) -> None:
    return None


def open_calls(turn: Turn) -> str:
    turn.messages.append(assistant("", [ToolCall("c1", "look"), ToolCall("c2", "look")]))
    return "A"


def appends_text(turn: Turn) -> str:
    turn.messages.append("text")  # type: ignore[arg-type]
    return "A"


def loses_its_messages(turn: Turn) -> str:
    turn.messages = None  # type: ignore[assignment]
    return "A"


AT_USAGE, AT_STEP, AT_TURN = (UsageEvent, steering), (StepEvent, steering), (TurnEvent, steering)

WAYS_OUT: dict[str, tuple[Any, Any, Any, type[SteerkitError] | None]] = {
    "an answer": ([say("A")], None, AT_USAGE, None),
    "the step limit": ([call("look")], None, (ToolResultEvent, steering), StepLimitReached),
    "a model error": ([fail(500)], None, AT_STEP, ModelError),
    "a dropped connection": ([cut()], None, AT_STEP, ModelError),
    "an answer cut off": ([say("A").finishing("length")], None, AT_USAGE, AnswerCutOff),
    "a filtered answer": ([say("A").finishing("content_filter")], None, AT_USAGE, ModelError),
    "a crash of the client": ([ZeroDivisionError("a bug")], None, AT_STEP, RunFailed),
    "a tool that ends the program": ([call("crash")], None, (ToolCallEvent, steering), RunFailed),
    "a cancel before the request": ([say("A")], None, (StepEvent, cancelling), RunCancelled),
    "a cancel behind the answer": ([say("A")], None, (UsageEvent, cancelling), RunCancelled),
    "an Exception": ([], raising(ValueError("a bug")), AT_TURN, RunFailed),
    "an error that cannot be shown": ([], raising(Mute()), AT_TURN, RunFailed),
    "a steerkit error": ([], raising(StepLimitReached("enough")), AT_TURN, StepLimitReached),
    "SystemExit": ([], raising(SystemExit(3)), AT_TURN, RunFailed),
    "KeyboardInterrupt": ([], raising(KeyboardInterrupt()), AT_TURN, RunFailed),
    "GeneratorExit": ([], raising(GeneratorExit()), AT_TURN, RunFailed),
    "no output": ([], no_output, AT_TURN, RunFailed),
    "open calls": ([], open_calls, AT_TURN, None),
    "no message": ([], appends_text, AT_TURN, RunFailed),
    "no list": ([], loses_its_messages, AT_TURN, RunFailed),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_every_way_out_hands_back_what_is_pending(way: str) -> None:
    script, work, (kind, act), error = WAYS_OUT[way]
    at = At(kind, act)
    model = ScriptedModel(script)
    run = start(model, work, tools=[look, crash], max_steps=1, on_event=at)
    result = accounted(run, at.got, model)
    assert result.unapplied_steers == tuple(at.got)
    assert len(at.got) == 1
    if error is None:
        assert run.wait().output == "A"
    else:
        with pytest.raises(error):
            run.wait()


@pytest.mark.parametrize("error", [ValueError("a bug"), SystemExit(3), KeyboardInterrupt()])
def test_what_a_pattern_raises_is_the_cause_of_what_wait_raises(error: BaseException) -> None:
    with pytest.raises(RunFailed, match=f"The pattern 'function' raised {type(error).__name__}") as raised:
        start(ScriptedModel([]), raising(error)).wait()
    assert raised.value.__cause__ is error


def test_a_pattern_that_returns_no_text_is_told_so() -> None:
    with pytest.raises(RunFailed, match=r"run\(\) returned NoneType, not the output as a str"):
        start(ScriptedModel([]), no_output).wait()


def test_a_pattern_that_appends_no_message_is_told_so_and_its_messages_are_kept() -> None:
    with pytest.raises(RunFailed, match=r"turn\.messages holds a str; it takes Message objects only") as raised:
        start(ScriptedModel([]), appends_text).wait()
    assert raised.value.result is not None
    assert texts(raised.value.result.messages) == ["Q"]


def test_calls_that_a_pattern_leaves_open_are_closed_by_results_that_say_so() -> None:
    result = start(ScriptedModel([]), open_calls).wait()
    assert [message.tool_call_id for message in result.messages[2:]] == ["c1", "c2"]
    assert texts(result.messages)[2:] == ["Not run: the run ended before this call."] * 2


def test_a_run_that_ends_by_an_error_gets_no_continuation() -> None:
    at = At(StepEvent, steering)
    model = ScriptedModel([fail(500), say("A")])
    run = start(model, steer_continuations=3, on_event=at)
    assert accounted(run, at.got, model).turns == 1


def test_the_output_of_a_run_whose_answer_broke_off_is_the_text_that_had_arrived() -> None:
    model = ScriptedModel([say("half an answer").cut(4)])
    assert accounted(start(model), [], model).output == "half"


def test_a_steer_in_an_answer_that_broke_off_was_applied() -> None:
    at = At(StepEvent, steering)
    model = ScriptedModel([say("half an answer").cut(4)])
    result = accounted(start(model, on_event=at), at.got, model)
    assert at.got[0].state == "applied"
    assert said(result.messages) == ["S"]


def test_a_pattern_that_tries_again_carries_a_steer_once() -> None:
    at = At(StepEvent, steering)
    model = ScriptedModel([fail(500), fail(500), say("A")])
    run = start(model, lambda turn: ask_until_answered(turn).message.text, on_event=at)
    accounted(run, at.got, model)
    assert [said(request.messages) for request in model.requests] == [["S"]] * 3
    assert at.got[0].request == 2


# ---- somebody steers, at every event


@pytest.mark.parametrize("continuations", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("here", [True, False], ids=["the worker", "another thread"])
def test_a_steer_from_any_event_meets_one_fate(kind: type[Event], here: bool, continuations: int) -> None:
    got: list[Steer] = []
    refused: list[str] = []

    def say_more(run: Run) -> None:
        try:
            got.append(run.steer("again"))
        except RunFinished as error:
            refused.append(error.text)

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolCallEvent) or (isinstance(event, UsageEvent) and event.step == 2):
            got.append(run.steer("S"))  # one that is applied, and one that is not
        if isinstance(event, kind):
            say_more(run) if here else in_thread(lambda: say_more(run))

    model = ScriptedModel(lambda request: say("A") if len(request.messages) > 2 else call("look"))
    run = start(model, tools=[look], on_event=on_event, steer_continuations=continuations)
    accounted(run, got, model)
    assert run.event_errors == 0
    # With a continuation every steer is read here, unless it comes with the last answer.
    assert bool(refused) == (kind is EndEvent or (kind is SteerReturnedEvent and continuations == 0))
    assert len(got) >= 2


@pytest.mark.parametrize("kind", [SteerReturnedEvent, EndEvent])
def test_at_the_end_a_steer_is_refused(kind: type[Event]) -> None:
    refused: list[str] = []

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, UsageEvent):
            run.steer("S")
        if isinstance(event, kind):
            with pytest.raises(RunFinished) as error:
                run.steer("late")
            refused.append(error.value.text)

    start(ScriptedModel([say("A")]), on_event=on_event).wait()
    assert refused == ["late"]


# ---- somebody cancels, at every event


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("here", [True, False], ids=["the worker", "another thread"])
def test_a_cancel_at_any_event_loses_nothing(kind: type[Event], here: bool) -> None:
    got: list[Steer] = []

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, kind):
            run.cancel() if here else in_thread(run.cancel)
        if isinstance(event, (ToolCallEvent, TextEvent)):
            try:
                got.append(run.steer("S"))
            except RunFinished:
                assert kind in (TurnEvent, StepEvent, TextEvent, UsageEvent, ToolCallEvent, ToolResultEvent, SteerEvent)

    model = ScriptedModel(lambda request: say("A") if len(request.messages) > 2 else call("look"))
    run = start(model, tools=[look], on_event=on_event)
    accounted(run, got, model)
    assert run.event_errors == 0
    if kind in (SteerReturnedEvent, EndEvent):
        assert run.wait().output == "A"
    else:
        with pytest.raises(RunCancelled):
            run.wait()


def test_a_cancel_just_before_the_queue_closes_starts_no_extra_turn() -> None:
    at = At(UsageEvent, steering)
    held = Held(say("A"))
    model = ScriptedModel([held, say("B")])
    run = start(model, steer_continuations=1, on_event=at)
    held.wait()
    end_turn = run._queue.end_turn

    def cancelled_first(**options: Any) -> list[Steer]:
        in_thread(run.cancel)
        return end_turn(**options)

    run._queue.end_turn = cancelled_first  # type: ignore[method-assign]
    held.go.set()
    assert accounted(run, at.got, model).turns == 1
    assert at.got[0].state == "unapplied"


def test_a_cancel_just_after_the_queue_closed_ends_the_run_as_cancelled_with_its_output() -> None:
    held = Held(say("A"))
    model = ScriptedModel([held])
    run, lock = at_the_lock_of_the_end(model, held)
    lock.after = lambda: in_thread(run.cancel)
    held.go.set()
    assert accounted(run, [], model).output == "A"
    with pytest.raises(RunCancelled):
        run.wait()


# ---- the locked step


def at_the_lock_of_the_end(model: ScriptedModel, held: Held, **settings: Any) -> tuple[Run, LyingLock]:
    """A run whose next use of its queue, once `held` may go on, is to close it; and the lock of that queue."""
    run = start(model, **settings)
    held.wait()
    lock = LyingLock(run._queue._changed)
    run._queue._changed = threading.Condition(lock)  # type: ignore[arg-type]
    return run, lock


@pytest.mark.parametrize("continuations", [0, 1])
def test_a_steer_just_before_the_queue_closes_is_accepted(continuations: int) -> None:
    held = Held(say("A"))
    model = ScriptedModel([held, say("B")])
    run, lock = at_the_lock_of_the_end(model, held, steer_continuations=continuations)
    got: list[Steer] = []
    lock.before = lambda: in_thread(lambda: got.append(steering(run)))
    held.go.set()
    accounted(run, got, model)
    assert [steer.state for steer in got] == ["continued" if continuations else "unapplied"]


def test_a_steer_just_after_the_queue_closed_is_refused() -> None:
    held = Held(say("A"))
    model = ScriptedModel([held])
    run, lock = at_the_lock_of_the_end(model, held)
    refused: list[str] = []

    def late() -> None:
        with pytest.raises(RunFinished) as error:
            run.steer("late")
        refused.append(error.value.text)

    lock.after = lambda: in_thread(late)
    held.go.set()
    assert accounted(run, [], model).unapplied_steers == ()
    assert refused == ["late"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_withdrawal_at_the_locked_step_of_the_end_gets_the_steer_or_the_result_does(moment: str) -> None:
    held = Held(say("A"))
    model = ScriptedModel([held])
    run = start(model)
    held.wait()
    steer = steering(run)
    lock = LyingLock(run._queue._changed)
    run._queue._changed = threading.Condition(lock)  # type: ignore[arg-type]
    got: list[bool] = []
    setattr(lock, moment, lambda: in_thread(lambda: got.append(run.withdraw(steer))))
    held.go.set()
    accounted(run, [steer], model)
    assert (got, steer.state) == (([True], "withdrawn") if moment == "before" else ([False], "unapplied"))


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_withdrawal_at_the_taking_of_a_steer_gets_it_or_the_request_does(moment: str) -> None:
    held = Held(call("look"))
    model = ScriptedModel([held, say("A")])
    got: list[bool] = []
    ready = threading.Event()

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, StepEvent) and event.step == 2:
            # The next use of the queue is the taking.
            lock = LyingLock(run._queue._changed)
            run._queue._changed = threading.Condition(lock)  # type: ignore[arg-type]
            setattr(lock, moment, lambda: in_thread(lambda: got.append(run.withdraw(steers[0]))))
            ready.set()

    run = start(model, tools=[look], on_event=on_event)
    held.wait()
    steers = [steering(run)]
    held.go.set()
    accounted(run, steers, model)
    assert ready.is_set()
    assert (got, steers[0].state) == (([True], "withdrawn") if moment == "before" else ([False], "applied"))


def test_two_threads_that_steer_and_one_that_cancels_at_the_locked_step_agree() -> None:
    held = Held(say("A"))
    model = ScriptedModel([held, say("B")])
    run, lock = at_the_lock_of_the_end(model, held, steer_continuations=1)
    got: list[Steer] = []

    def storm() -> None:
        in_thread(lambda: got.append(steering(run)))
        in_thread(run.cancel)
        with pytest.raises(RunFinished):
            in_thread(lambda: steering(run))

    lock.before = storm
    held.go.set()
    assert accounted(run, got, model).unapplied_steers == tuple(got)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_end_that_fails_itself_leaves_nobody_waiting() -> None:
    held = Held(say("A"))
    run = start(ScriptedModel([held]))
    held.wait()
    run._counting = None  # type: ignore[assignment]
    held.go.set()
    in_thread(lambda: list(run.events()))
    with pytest.raises(AssertionError):
        run.wait(PATIENCE)


def test_done_is_true_only_after_the_last_event_was_told() -> None:
    seen: list[bool] = []

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, EndEvent):
            seen.append(run.done)

    run = start(ScriptedModel([say("A")]), on_event=on_event)
    run.wait()
    assert (seen, run.done) == ([False], True)


def test_receipts_are_final_before_the_events_of_the_end_are_told() -> None:
    at = At(UsageEvent, steering)
    states: list[str] = []

    def on_event(run: Run, event: Event) -> None:
        at(run, event)
        if isinstance(event, SteerReturnedEvent):
            states.append(event.steer.wait(0) if threading.current_thread() is not run._worker else event.steer.state)

    start(ScriptedModel([say("A")]), on_event=on_event).wait()
    assert states == ["unapplied"]


# ---- errors that reach more than one run


def test_an_error_object_that_ends_two_runs_in_turn_gives_each_its_own_result() -> None:
    error = ModelError("no", kind="quota", status=402, partial="half")
    runs = [start(ScriptedModel([error])) for _ in range(2)]
    raised = []
    for run in runs:
        with pytest.raises(ModelError) as caught:
            run.wait()
        raised.append(caught.value)
    assert raised[0].result is not raised[1].result
    assert {(e.kind, e.status, e.partial, str(e)) for e in raised} == {("quota", 402, "half", "no")}


class WaitingCounting:
    """Holds a run that ends between the step in which it knows its error and the one in which that gets its result."""

    def __init__(self, run: Run, both: threading.Barrier) -> None:
        self._counting, self._both = run._counting, both

    @property
    def usage(self) -> Usage:
        self._both.wait(PATIENCE)
        return self._counting.usage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._counting, name)


def test_an_error_object_that_ends_two_runs_at_once_gives_each_its_own_result() -> None:
    error = ModelError("no", kind="server")
    both, go = threading.Barrier(2), threading.Event()

    def work(turn: Turn) -> str:
        assert go.wait(PATIENCE)
        raise error

    model = ScriptedModel([])
    runs = [start(model, work) for _ in range(2)]
    for run in runs:
        run._counting = WaitingCounting(run, both)  # type: ignore[assignment]
    go.set()
    results = [accounted(run, [], model) for run in runs]
    assert results[0] is not results[1]


@pytest.mark.parametrize("way", ["an error of steerkit", "a bug", "a cancel"])
def test_the_error_of_a_run_that_passes_through_the_pattern_of_another_keeps_its_own_result(way: str) -> None:
    children: list[Run] = []

    def parent(turn: Turn) -> str:
        child = {
            "an error of steerkit": lambda: start(ScriptedModel([fail(500)])),
            "a bug": lambda: start(ScriptedModel([]), raising(ValueError("a bug"))),
            "a cancel": lambda: start(ScriptedModel([say("A")]), on_event=lambda run, _: run.cancel()),
        }[way]()
        children.append(child)
        return child.wait().output

    model = ScriptedModel([])
    run = start(model, parent)
    own = accounted(run, [], model)
    child = accounted(children[0], [], model)
    assert own is not child
    with pytest.raises(SteerkitError) as raised:
        run.wait()
    assert isinstance(raised.value.__cause__, type(raised.value))
    assert raised.value.__cause__.result is child
