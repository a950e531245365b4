"""Events: a handler can neither end a run nor lock it, and nothing is told before it is true."""

from __future__ import annotations

import contextlib
import logging

import pytest

from steerkit import (
    EndEvent,
    Event,
    ModelError,
    Run,
    RunFinished,
    SteerEvent,
    SteerReturnedEvent,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnEvent,
    UsageEvent,
    tool,
)
from steerkit.testing import ScriptedModel, call, fail, say
from tests.conftest import in_thread, said, start
from tests.steering.steered import answer_after_failures, steering_at


@tool
def look() -> str:
    """Look."""
    return "seen"


def _kinds(run: Run) -> list[type[Event]]:
    return [type(event) for event in run.events()]


def test_a_handler_that_always_raises_changes_nothing_but_the_count(caplog: pytest.LogCaptureFixture) -> None:  # B89
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolCallEvent):
            run.steer("S")
        raise ValueError("a bug in the handler")

    model = ScriptedModel([call("look"), call("look"), say("x")])
    with caplog.at_level(logging.ERROR, "steerkit"):
        run = start(model, tools=[look], on_event=on_event)
        result = run.wait()
    kinds = _kinds(run)
    assert (result.output, said(result.messages)) == ("x", ["S", "S"])
    assert run.event_errors == len(kinds)
    logged = [record for record in caplog.records if record.exc_info]
    assert len(logged) == len(set(kinds))  # once a kind, with the traceback
    assert all("a bug in the handler" in str(record.exc_info) for record in logged)


def test_a_handler_that_exits_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:  # B89
    def on_event(run: Run, event: Event) -> None:
        raise SystemExit(3)

    with caplog.at_level(logging.CRITICAL, "steerkit"):
        assert start(ScriptedModel([say("x")]), on_event=on_event).wait().output == "x"


def test_handlers_may_steer_withdraw_and_look_from_the_worker_and_from_a_thread_they_wait_for() -> None:  # B91, B92
    told: list[type[Event]] = []

    def use(run: Run) -> None:
        with contextlib.suppress(RunFinished):
            assert run.withdraw(run.steer("S")) is True
        assert [steer.text for steer in run.pending_steers] in ([], ["kept"])
        assert run.messages[0].role == "user"

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, TurnEvent):
            run.steer("kept")
        use(run)
        in_thread(lambda: use(run))
        told.append(type(event))

    model = ScriptedModel([call("look"), say("x")])
    run = start(model, tools=[look], on_event=on_event)
    run.wait()
    assert run.event_errors == 0
    expected = {TurnEvent, StepEvent, SteerEvent, UsageEvent, ToolCallEvent, ToolResultEvent, TextEvent, EndEvent}
    assert set(told) == expected


def test_a_handler_of_a_returned_steer_may_use_the_run_from_a_thread_it_waits_for() -> None:  # B91, B92
    told: list[str] = []

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, UsageEvent):
            run.steer("S")
        if isinstance(event, SteerReturnedEvent):
            in_thread(lambda: told.append(f"{event.steer.state}, pending: {len(run.pending_steers)}"))

    start(ScriptedModel([say("x")]), on_event=on_event).wait()
    assert told == ["unapplied, pending: 0"]


def test_a_tool_may_steer_its_own_run_from_a_thread_it_waits_for() -> None:  # B91
    runs: list[Run] = []

    @tool
    def think_again() -> str:
        """Think again."""
        in_thread(lambda: runs[0].steer("from a tool"))
        return "thought"

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, TurnEvent):
            runs.append(run)

    model = ScriptedModel([call("think_again"), say("x")])
    result = start(model, tools=[think_again], on_event=on_event).wait()
    assert said(result.messages) == ["from a tool"]


def test_a_wait_in_a_handler_is_refused_instead_of_waiting_for_itself() -> None:  # B91
    refused: list[str] = []

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, TurnEvent):
            for wait in (run.wait, run.events, run.steer("S").wait):
                with pytest.raises(RuntimeError) as error:
                    wait()
                refused.append(str(error.value))

    assert start(ScriptedModel([say("x")]), on_event=on_event).wait().output == "x"
    assert len(refused) == 3
    assert all("wait for itself" in text for text in refused)


def test_with_a_continuation_there_is_one_end_and_it_comes_last() -> None:  # B94
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, UsageEvent) and event.turn < 3:
            run.steer("S")

    run = start(ScriptedModel([say("x"), say("y"), say("z")]), steer_continuations=2, on_event=on_event)
    run.wait()
    kinds = _kinds(run)
    assert kinds.count(TurnEvent) == 3
    assert kinds.index(EndEvent) == len(kinds) - 1


def test_a_turn_tells_which_steers_it_goes_on_for() -> None:  # B94
    run = start(ScriptedModel([say("x"), say("y")]), steer_continuations=1, on_event=steering_at(UsageEvent, "S"))
    run.wait()
    turns = [[steer.text for steer in event.steers] for event in run.events() if isinstance(event, TurnEvent)]
    assert turns == [[], ["S"]]


def test_a_steer_is_told_as_applied_after_its_request_began_and_before_the_text_that_answers_it() -> None:  # B95
    run = start(ScriptedModel([say("Hi.")]), on_event=steering_at(TurnEvent, "S"))
    run.wait()
    assert _kinds(run) == [TurnEvent, StepEvent, SteerEvent, TextEvent, UsageEvent, EndEvent]


def test_a_steer_of_a_request_that_failed_is_told_as_applied_only_by_the_one_that_succeeded() -> None:  # B95
    model = ScriptedModel([fail(500), say("x")])
    run = start(model, answer_after_failures, on_event=steering_at(TurnEvent, "S"))
    run.wait()
    assert [event.step for event in run.events() if isinstance(event, SteerEvent)] == [2]


def test_a_steer_that_ends_unapplied_was_never_told_as_applied() -> None:  # B95
    run = start(ScriptedModel([fail(500)]), on_event=steering_at(TurnEvent, "S"))
    with pytest.raises(ModelError):
        run.wait()
    assert _kinds(run) == [TurnEvent, StepEvent, SteerReturnedEvent, EndEvent]
