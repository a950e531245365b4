"""Run: what callers can do with it while it works."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from steerkit import (
    EndEvent,
    Event,
    Image,
    ModelError,
    Result,
    Run,
    RunCancelled,
    RunFinished,
    Steer,
    SteerEvent,
    StepEvent,
    StepLimitReached,
    TextEvent,
    ToolCallEvent,
    ToolContext,
    ToolResultEvent,
    Turn,
    TurnEvent,
    Usage,
    UsageEvent,
    assistant,
    tool,
    user,
)
from steerkit.core.model import ModelRef
from steerkit.testing import ScriptedModel, call, fail, say
from tests.conftest import PATIENCE, Held, in_thread, said, start, texts


@tool
def look() -> str:
    """Look."""
    return "seen"


# ---- steer


def test_a_steer_reaches_the_next_request_and_the_result_once() -> None:
    first = Held(call("look"))
    model = ScriptedModel([first, say("A")])
    run = start(model, tools=[look])
    first.wait()
    steer = run.steer("S")
    assert run.pending_steers == (steer,)
    first.go.set()
    result = run.wait()
    assert [said(request.messages) for request in model.requests] == [[], ["S"]]
    assert said(result.messages) == ["S"]
    assert (steer.state, steer.request, steer.index) == ("applied", 1, 3)
    assert result.messages[:-1] == model.requests[1].messages


def test_a_steer_can_be_withdrawn() -> None:
    held = Held(call("look"))
    model = ScriptedModel([held, say("A")])
    run = start(model, tools=[look])
    held.wait()
    steer = run.steer("S")
    assert run.withdraw(steer)
    held.go.set()
    assert (said(run.wait().messages), steer.state) == ([], "withdrawn")


@pytest.mark.parametrize(
    ("content", "error"), [("", ValueError), (" \n", ValueError), ("a\ud83d", ValueError), (None, TypeError)]
)
def test_what_cannot_be_said_is_refused_and_nothing_is_queued(content: Any, error: type[Exception]) -> None:
    held = Held(say("A"))
    with start(ScriptedModel([held])) as run:
        with pytest.raises(error):
            run.steer(content)
        assert run.pending_steers == ()
        held.go.set()


def test_an_unknown_time_is_refused() -> None:
    held = Held(say("A"))
    with start(ScriptedModel([held])) as run:
        with pytest.raises(ValueError, match="'next_request' or 'idle', not 'now'"):
            run.steer("S", when="now")  # type: ignore[arg-type]
        held.go.set()


def test_a_steer_for_an_extra_turn_that_there_is_not_is_refused_with_the_cure() -> None:
    held = Held(say("A"))
    with start(ScriptedModel([held])) as run:
        with pytest.raises(ValueError, match="set steer_continuations"):
            run.steer("S", when="idle")
        held.go.set()


def test_an_image_for_a_model_that_takes_none_is_refused() -> None:
    held = Held(say("A"))
    model = ScriptedModel([held])
    with start(model, model=ModelRef("m", images=False)) as run:
        with pytest.raises(ValueError, match="takes no images"):
            run.steer(["look", Image(b"x", "image/png")])
        held.go.set()


def test_two_runs_at_once_keep_their_own_words() -> None:
    held = [Held(call("look")), Held(call("look"))]
    models = [ScriptedModel([step, say("A")]) for step in held]
    runs = [start(model, tools=[look]) for model in models]
    for number, (run, step) in enumerate(zip(runs, held, strict=True)):
        step.wait()
        run.steer(f"S{number}")
    assert not runs[0].withdraw(runs[1].pending_steers[0])
    for step in held:
        step.go.set()
    assert [said(run.wait().messages) for run in runs] == [["S0"], ["S1"]]


def test_a_run_inside_a_tool_has_ears_of_its_own() -> None:
    inner = ScriptedModel([call("look"), say("inner answer")])
    children: list[Run] = []

    @tool
    def delegate() -> str:
        """Ask a sub-agent."""

        def to_child(run: Run, event: Event) -> None:
            if isinstance(event, ToolResultEvent):
                run.steer("for the child")

        children.append(start(inner, tools=[look], on_event=to_child))
        runs[0].steer("for the parent")
        return children[0].wait().output

    runs: list[Run] = []
    started = threading.Event()
    outer = ScriptedModel([call("delegate").after(started), say("A")])
    runs.append(start(outer, tools=[delegate]))
    started.set()
    assert said(runs[0].wait().messages) == ["for the parent"]
    assert said(children[0].wait().messages) == ["for the child"]


# ---- continuations


def test_a_continuation_is_one_run_with_steps_and_usage_summed() -> None:
    last = Held(say("A").using(10, 1))
    model = ScriptedModel([call("look").using(1, 1), last, call("look").using(5, 1), say("B").using(7, 2)])
    run = start(model, tools=[look], steer_continuations=1, max_steps=2)
    last.wait()
    steer = run.steer("S")
    last.go.set()
    result = run.wait()
    assert (result.output, result.turns, result.steps, result.usage) == ("B", 2, 4, Usage(23, 5))
    assert steer.state == "continued"
    assert model.requests[2].messages == (*result.messages[:4], result.messages[4])
    assert (result.messages[4].role, result.messages[4].text) == ("user", "S")


def test_a_continued_steer_is_hidden_metadata_and_plain_text() -> None:
    last = Held(say("A"))
    run = start(ScriptedModel([last, say("B")]), steer_continuations=1)
    last.wait()
    steer = run.steer("S")
    last.go.set()
    (message,) = [message for message in run.wait().messages if message.meta]
    assert (message.text, dict(message.meta)) == ("S", {"steer_id": steer.id, "steer_content": steer.content})


def test_an_idle_steer_rides_no_request_of_the_turn_in_which_it_came() -> None:
    first = Held(call("look"))
    model = ScriptedModel([first, say("A"), say("B")])
    run = start(model, tools=[look], steer_continuations=1)
    first.wait()
    idle, now = run.steer("later", when="idle"), run.steer("now")
    first.go.set()
    run.wait()
    assert [said(request.messages) for request in model.requests] == [[], ["now"], ["now", "later"]]
    assert (now.state, idle.state) == ("applied", "continued")


def test_what_comes_after_the_allowance_is_handed_back() -> None:
    steps = [Held(say("A")), Held(say("B")), Held(say("C"))]
    model = ScriptedModel(steps)
    run = start(model, steer_continuations=2)
    steers: list[Steer] = []
    for step in steps:
        step.wait()
        steers.append(run.steer("S"))
        step.go.set()
    result = run.wait()
    assert [steer.state for steer in steers] == ["continued", "continued", "unapplied"]
    assert (result.turns, result.unapplied_steers) == (3, (steers[2],))


def test_a_steer_applied_in_one_turn_stays_where_it_is_in_the_next() -> None:
    first, second = Held(call("look")), Held(say("A"))
    model = ScriptedModel([first, second, call("look"), say("B")])
    run = start(model, tools=[look], steer_continuations=1)
    for step, text in ((first, "S"), (second, "T")):
        step.wait()
        run.steer(text)
        step.go.set()
    result = run.wait()
    for one, other in zip(model.requests, model.requests[1:], strict=False):
        assert other.messages[: len(one.messages)] == one.messages
    assert result.messages[: len(model.requests[-1].messages)] == model.requests[-1].messages
    assert said(result.messages) == ["S", "T"]


def test_a_continuation_that_fails_leaves_the_result_of_all_turns() -> None:
    last = Held(say("A"))
    run = start(ScriptedModel([last, fail(500)]), steer_continuations=1)
    last.wait()
    steer = run.steer("S")
    last.go.set()
    with pytest.raises(ModelError) as raised:
        run.wait()
    assert raised.value.result is not None
    assert (texts(raised.value.result.messages), steer.state) == (["Q", "A", "S"], "continued")


# ---- wait


def test_a_wait_that_takes_too_long_raises_and_the_run_goes_on() -> None:
    held = Held(say("A"))
    run = start(ScriptedModel([held]))
    with pytest.raises(TimeoutError, match="it goes on"):
        run.wait(0)
    assert not run.done
    held.go.set()
    assert run.wait(PATIENCE).output == "A"
    assert run.done


def test_wait_may_be_called_again_and_from_many_threads() -> None:
    run = start(ScriptedModel([say("A")]))
    results: list[Result] = [run.wait()]
    for _ in range(3):
        in_thread(lambda: results.append(run.wait()))
    assert all(result is results[0] for result in results)


def test_an_error_raised_by_many_waits_keeps_one_traceback() -> None:
    run = start(ScriptedModel([fail(500)]))
    lengths = set()
    for _ in range(3):
        with pytest.raises(ModelError) as raised:
            run.wait()
        lengths.add(len(raised.traceback))
    assert len(lengths) == 1


def test_the_traceback_of_an_error_leads_to_the_line_that_raised_it() -> None:
    with pytest.raises(ModelError) as raised:
        start(ScriptedModel([fail(500)])).wait()
    assert "complete" in [entry.name for entry in raised.traceback]


@pytest.mark.parametrize("what", ["wait", "events", "steer"])
def test_what_would_wait_for_itself_raises_at_once(what: str) -> None:
    runs: list[Run] = []
    started = threading.Event()
    raised: list[str] = []

    @tool
    def self_waiting() -> str:
        """Wait for the run."""
        run = runs[0]
        ways: dict[str, Callable[[], object]] = {
            "wait": run.wait,
            "events": run.events,
            "steer": run.steer("S").wait,
        }
        try:
            ways[what]()
        except RuntimeError as error:
            raised.append(str(error))
        return "seen"

    runs.append(start(ScriptedModel([call("self_waiting").after(started), say("A")]), tools=[self_waiting]))
    started.set()
    runs[0].wait()
    assert "would wait for itself" in raised[0]


class InterruptedEvent:
    """An Event: Ctrl-C comes while it is waited for."""

    def __init__(self, event: threading.Event) -> None:
        self._event = event

    def wait(self, timeout: float | None = None) -> bool:
        signal.raise_signal(signal.SIGINT)
        return self._event.wait(timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._event, name)


@pytest.mark.parametrize("timeout", [None, PATIENCE])
def test_ctrl_c_in_wait_cancels_the_run(timeout: float | None) -> None:
    held = Held(say("A"))
    run = start(ScriptedModel([held]))
    held.wait()
    ended = run._ended
    run._ended = InterruptedEvent(ended)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        run.wait(timeout)
    assert ended.wait(PATIENCE)
    run._ended = ended
    with pytest.raises(RunCancelled):
        run.wait()


# ---- with


def test_leaving_a_with_block_waits_for_the_end() -> None:
    with start(ScriptedModel([say("A")])) as run:
        pass
    assert run.done


def test_an_exception_that_leaves_a_with_block_cancels_the_run() -> None:
    held = Held(say("A"))
    with pytest.raises(ZeroDivisionError), start(ScriptedModel([held])) as run:
        held.wait()
        raise ZeroDivisionError
    assert run.done
    with pytest.raises(RunCancelled):
        run.wait()


def test_a_with_block_raises_the_error_of_a_run_that_nobody_waited_for() -> None:
    with pytest.raises(ModelError), start(ScriptedModel([fail(500)])):
        pass


def test_a_with_block_does_not_raise_again_what_wait_has_raised() -> None:
    with start(ScriptedModel([fail(500)])) as run, pytest.raises(ModelError):
        run.wait()


def test_a_with_block_inside_the_run_itself_cancels_and_does_not_wait_for_itself() -> None:
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, UsageEvent):
            with contextlib.suppress(ZeroDivisionError), run:
                raise ZeroDivisionError

    run = start(ScriptedModel([say("A")]), on_event=on_event)
    with pytest.raises(RunCancelled):
        run.wait(PATIENCE)


# ---- cancel


def test_a_cancel_ends_a_blocked_request_and_hands_back_what_is_pending() -> None:
    held = Held(say("A"))
    run = start(ScriptedModel([held]))
    held.wait()
    steer = run.steer("S")
    run.cancel()
    with pytest.raises(RunFinished, match="was cancelled"):
        run.steer("late")
    with pytest.raises(RunCancelled) as raised:
        run.wait(PATIENCE)
    assert raised.value.result is not None
    assert raised.value.result.unapplied_steers == (steer,)


def test_a_cancel_lets_the_tool_in_flight_finish_and_closes_the_calls_behind_it() -> None:
    inside, seen = threading.Event(), []

    @tool
    def work(context: ToolContext) -> str:
        """Work until cancelled."""
        inside.set()
        seen.append(context.cancelled.wait(PATIENCE))
        return "stopped early"

    run = start(ScriptedModel([call("work") + call("work")]), tools=[work])
    assert inside.wait(PATIENCE)
    run.cancel()
    with pytest.raises(RunCancelled) as raised:
        run.wait(PATIENCE)
    assert raised.value.result is not None
    messages = raised.value.result.messages
    assert texts(messages)[2:] == ["stopped early", "Not run: the run was cancelled before this call."]
    assert seen == [True]
    again = start(ScriptedModel([say("B")]), messages=[*messages, user("go on")], tools=[work])
    assert again.wait().output == "B"


def test_a_pattern_that_catches_every_exception_is_cancelled_all_the_same() -> None:
    held = Held(say("A"))

    def stubborn(turn: Turn) -> str:
        while True:
            try:
                return turn.ask().message.text
            except Exception:
                continue

    run = start(ScriptedModel([held]), stubborn)
    held.wait()
    run.cancel()
    with pytest.raises(RunCancelled):
        run.wait(PATIENCE)


def test_after_a_cancel_no_step_is_begun_and_the_step_limit_is_not_what_ended_it() -> None:
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolResultEvent):
            run.cancel()

    run = start(ScriptedModel([call("look")]), tools=[look], max_steps=1, on_event=on_event)
    with pytest.raises(RunCancelled):
        run.wait()


def test_a_cancel_after_the_end_changes_nothing() -> None:
    run = start(ScriptedModel([say("A")]))
    run.wait()
    run.cancel()
    assert run.wait().output == "A"


def test_a_tool_sees_that_a_steer_waits() -> None:
    seen: list[bool] = []

    @tool
    def work(context: ToolContext) -> str:
        """Work."""
        seen.append(bool(context.steer_pending))
        runs[0].steer("S")
        seen.append(bool(context.steer_pending))
        return "done"

    runs: list[Run] = []
    started = threading.Event()
    runs.append(start(ScriptedModel([call("work").after(started), say("A")]), tools=[work]))
    started.set()
    runs[0].wait()
    assert seen == [False, True]


# ---- messages


def test_the_messages_of_a_run_that_works_show_its_steers_in_their_places() -> None:
    first, second = Held(call("look")), Held(call("look"))
    model = ScriptedModel([first, second, say("A")])
    run = start(model, tools=[look])
    first.wait()
    assert texts(run.messages) == ["Q"]
    run.steer("S")
    first.go.set()
    second.wait()
    assert said(run.messages) == []
    second.go.set()
    result = run.wait()
    assert run.messages == result.messages
    assert said(result.messages) == ["S"]


def test_every_look_at_the_messages_shows_each_applied_steer_once() -> None:
    looks: list[list[str]] = []

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolResultEvent):
            run.steer("S")
        if isinstance(event, UsageEvent) and event.step == 3:
            run.steer("T")
        applied.extend([event.steer.text] if isinstance(event, SteerEvent) else [])
        applied.extend(steer.text for steer in event.steers) if isinstance(event, TurnEvent) else None
        in_thread(lambda: looks.append(said(run.messages)))
        assert looks[-1] == applied, event

    applied: list[str] = []
    script = [call("look"), call("look"), say("A"), say("B")]
    run = start(ScriptedModel(script), tools=[look], on_event=on_event, steer_continuations=1)
    run.wait()
    assert run.event_errors == 0
    assert looks[-1] == ["S", "S", "T"]


def test_the_messages_between_two_turns_show_each_steer_once() -> None:
    looks: list[list[str]] = []
    first = Held(call("look"))
    model = ScriptedModel([first, say("A"), say("B")])

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolResultEvent):
            run.steer("S")
        if isinstance(event, UsageEvent) and event.step == 2:
            run.steer("T")

    run = start(model, tools=[look], on_event=on_event, steer_continuations=1)
    end_turn = run._queue.end_turn

    def looking(**options: Any) -> list[Steer]:
        looks.append(said(run.messages))
        steers = end_turn(**options)
        looks.append(said(run.messages))
        return steers

    first.wait()
    run._queue.end_turn = looking  # type: ignore[method-assign]
    first.go.set()
    run.wait()
    assert looks == [["S"], ["S"], ["S", "T"], ["S", "T"]]


def test_the_messages_can_be_looked_at_while_a_foreign_object_is_among_them() -> None:
    gate, there = threading.Event(), threading.Event()

    def pattern(turn: Turn) -> str:
        turn.messages.append("text")  # type: ignore[arg-type]
        there.set()
        assert gate.wait(PATIENCE)
        del turn.messages[-1]
        return "A"

    run = start(ScriptedModel([]), pattern)
    assert there.wait(PATIENCE)
    assert texts(run.messages) == ["Q"]
    gate.set()
    run.wait()


# ---- events


def test_events_come_in_order_and_say_turn_and_step() -> None:
    last = Held(say("A"))
    run = start(ScriptedModel([call("look"), last, say("B")]), tools=[look], steer_continuations=1)
    last.wait()
    steer = run.steer("S")
    last.go.set()
    seen = [(type(event), event.turn, event.step) for event in run.events()]
    assert seen == [
        (TurnEvent, 1, 0),
        (StepEvent, 1, 1),
        (UsageEvent, 1, 1),
        (ToolCallEvent, 1, 1),
        (ToolResultEvent, 1, 1),
        (StepEvent, 1, 2),
        (TextEvent, 1, 2),
        (UsageEvent, 1, 2),
        (TurnEvent, 2, 0),
        (StepEvent, 2, 1),
        (TextEvent, 2, 1),
        (UsageEvent, 2, 1),
        (EndEvent, 2, 1),
    ]
    turns = [event.steers for event in run.events() if isinstance(event, TurnEvent)]
    assert turns == [(), (steer,)]


def test_a_steer_event_carries_turn_and_step() -> None:
    held = Held(call("look"))
    run = start(ScriptedModel([held, say("A")]), tools=[look])
    held.wait()
    run.steer("S")
    held.go.set()
    (event,) = [event for event in run.events() if isinstance(event, SteerEvent)]
    assert (event.turn, event.step, event.request, event.index, event.size) == (1, 2, 1, 3, 4)


def test_events_can_be_read_by_many_threads_and_again_after_the_end() -> None:
    held = Held(say("A"))
    run = start(ScriptedModel([held]))
    seen: list[list[Event]] = [[], [], []]
    readers = [threading.Thread(target=lambda mine=mine: mine.extend(run.events())) for mine in seen]
    for reader in readers:
        reader.start()
    held.go.set()
    for reader in readers:
        reader.join(PATIENCE)
    assert seen == [list(run.events())] * 3
    assert isinstance(seen[0][-1], EndEvent)


def test_a_handler_is_given_the_run_before_start_has_returned() -> None:
    seen: list[Run] = []
    run = start(ScriptedModel([say("A")]), on_event=lambda run, _: seen.append(run))
    run.wait()
    assert set(seen) == {run}


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_handler_that_raises_ends_nothing_and_is_counted_and_logged_once_a_kind(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, (StepEvent, EndEvent)):
            raise error("a fault of mine")

    with caplog.at_level(logging.ERROR):
        run = start(ScriptedModel([call("look"), say("A")]), tools=[look], on_event=on_event)
        assert run.wait().output == "A"
    assert run.event_errors == 3
    assert [record.message.split(";")[0] for record in caplog.records] == [
        "on_event failed on a StepEvent",
        "on_event failed on a EndEvent",
    ]
    assert "a fault of mine" in caplog.text


def test_without_streaming_there_is_no_text_event() -> None:
    run = start(ScriptedModel([say("A")]), stream=False)
    assert not [event for event in run.events() if isinstance(event, TextEvent)]


def test_an_event_of_a_patterns_own_late_thread_does_not_follow_the_end() -> None:
    turns: list[Turn] = []
    told: list[Event] = []

    def pattern(turn: Turn) -> str:
        turns.append(turn)
        return "A"

    run = start(ScriptedModel([]), pattern, on_event=lambda _, event: told.append(event))
    run.wait()
    turns[0].emit(StepEvent())
    assert isinstance(list(run.events())[-1], EndEvent)
    assert isinstance(told[-1], EndEvent)


# ---- the worker


WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


def test_a_run_works_in_a_copy_of_the_callers_context() -> None:
    seen: list[str] = []

    @tool
    def who() -> str:
        """Who asks."""
        seen.append(WHO.get())
        WHO.set("the tool")
        return "seen"

    def begin() -> None:
        WHO.set("the caller")
        start(ScriptedModel([call("who"), say("A")]), tools=[who]).wait()
        seen.append(WHO.get())

    in_thread(begin)
    assert seen == ["the caller", "the caller"]


def test_the_worker_keeps_a_program_alive_and_is_named_after_the_pattern() -> None:
    workers: list[threading.Thread] = []

    def pattern(_: Turn) -> str:
        workers.append(threading.current_thread())
        return "A"

    start(ScriptedModel([]), pattern).wait()
    assert (workers[0].daemon, workers[0].name) == (False, "steerkit-function")


def test_when_wait_has_returned_the_worker_is_gone() -> None:
    held = Held(say("A"))
    run = start(ScriptedModel([held]))
    held.wait()
    joining = threading.Event()
    ended, join = run._ended.set, run._worker.join

    def slowly() -> None:
        ended()
        joining.wait(PATIENCE)  # the worker has told its end, and is not gone

    def told_join(timeout: float | None = None) -> None:
        joining.set()
        join(timeout)

    run._ended.set = slowly  # type: ignore[method-assign]
    run._worker.join = told_join  # type: ignore[method-assign]
    held.go.set()
    run.wait()
    alive = run._worker.is_alive()
    joining.set()
    assert not alive


def test_the_repr_of_a_run_says_how_far_it_is() -> None:
    held = Held(say("A"))
    run = start(ScriptedModel([held]))
    assert repr(run) == "<Run of react working, turn 1>"
    held.go.set()
    run.wait()
    assert repr(run) == "<Run of react ended, turn 1>"


def test_a_steer_does_not_reset_the_step_limit() -> None:
    model = ScriptedModel(lambda _: call("look"))

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolResultEvent):
            run.steer("S")

    run = start(model, tools=[look], max_steps=3, steer_continuations=5, on_event=on_event)
    with pytest.raises(StepLimitReached) as raised:
        run.wait()
    assert raised.value.result is not None
    assert (len(model.requests), raised.value.result.turns) == (3, 1)
    assert [steer.text for steer in raised.value.result.unapplied_steers] == ["S"]


def test_a_message_that_a_run_made_can_start_another() -> None:
    held = Held(call("look"))
    run = start(ScriptedModel([held, say("A")]), tools=[look])
    held.wait()
    run.steer("S")
    held.go.set()
    model = ScriptedModel([say("B")])
    messages = [*run.wait().messages, user("and now?")]
    assert texts(start(model, messages=messages, tools=[look]).wait().messages)[:-1] == texts(messages)
    assert said(model.requests[0].messages) == ["S"]
    assert messages[-2] == assistant("A")


def test_a_run_started_in_a_daemon_thread_is_no_daemon() -> None:
    # A daemon would be killed in the middle of a tool when the program ends.
    model = ScriptedModel([say("Done.")])
    daemons: list[bool] = []

    def work() -> None:
        start(model, on_event=lambda _run, _event: daemons.append(threading.current_thread().daemon)).wait()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    assert set(daemons) == {False}
