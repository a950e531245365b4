"""Limits: a steer buys no steps, a queue has an end, and nothing spins."""

from __future__ import annotations

import pytest

from steerkit import (
    RunFinished,
    SpecError,
    SteerQueueFull,
    StepEvent,
    StepLimitReached,
    ToolCallEvent,
    ToolResultEvent,
    tool,
)
from steerkit.core.spec import Spec
from steerkit.patterns import ReAct
from steerkit.runner import Runner
from steerkit.testing import ScriptedModel, call, fail, say
from tests.conftest import Held, said, start
from tests.steering.steered import answer_after_failures, asked, steering_at


@tool
def look() -> str:
    """Look."""
    return "seen"


def test_a_steer_does_not_reset_the_step_limit() -> None:  # B109
    model = ScriptedModel([call("look")] * 9)
    run = start(model, tools=[look], max_steps=3, on_event=steering_at(StepEvent, "S", number=3))
    with pytest.raises(StepLimitReached) as ended:
        run.wait()
    assert (len(model.requests), said(asked(model, 2))) == (3, ["S"])
    assert ended.value.result is not None and ended.value.result.steps == 3


@pytest.mark.parametrize("continuations", [0, 1])
def test_a_run_that_ends_at_its_limit_gets_no_continuation(continuations: int) -> None:  # B109
    model = ScriptedModel([call("look")] * 9)
    late = steering_at(ToolResultEvent, "S", number=3)
    run = start(model, tools=[look], max_steps=3, steer_continuations=continuations, on_event=late)
    with pytest.raises(StepLimitReached) as ended:
        run.wait()
    assert ended.value.result is not None
    assert [steer.text for steer in ended.value.result.unapplied_steers] == ["S"]
    assert len(model.requests) == 3


def test_a_continuation_has_its_own_steps_and_no_more() -> None:  # B109
    late = Held(say("x"))
    model = ScriptedModel([call("look"), late, *[call("look")] * 9])
    run = start(model, tools=[look], max_steps=2, steer_continuations=1)
    late.wait()
    run.steer("S")
    late.go.set()
    with pytest.raises(StepLimitReached):
        run.wait()
    assert len(model.requests) == 4


def test_no_more_extra_turns_start_than_the_spec_allows() -> None:  # B109
    model = ScriptedModel(lambda request: say("x"))

    def on_event(run, event) -> None:
        if isinstance(event, StepEvent):
            run.steer(f"S{event.turn}", when="idle")

    result = start(model, steer_continuations=2, on_event=on_event).wait()
    assert (result.turns, [steer.text for steer in result.unapplied_steers]) == (3, ["S3"])


def test_a_run_with_nothing_to_answer_is_refused_before_it_starts() -> None:  # B110
    model = ScriptedModel([])
    with pytest.raises(SpecError, match="messages is empty"):
        Runner(model, [ReAct()]).start(Spec("scripted", "react", 3), [], model.endpoint)


def test_a_full_queue_refuses_the_newest_and_drops_nothing() -> None:  # B112
    held = Held(call("look"))
    model = ScriptedModel([held, say("x")])
    run = start(model, tools=[look])
    held.wait()
    with pytest.raises(SteerQueueFull) as refused:
        for number in range(10_000):
            run.steer(f"S{number}")
    accepted = [steer.text for steer in run.pending_steers]
    assert refused.value.text == f"S{len(accepted)}"
    held.go.set()
    run.wait()
    assert said(asked(model, 1)) == accepted


def test_a_full_queue_takes_steers_again_once_a_request_carried_some() -> None:  # B112
    held = Held(call("look"))
    model = ScriptedModel([held, say("x")])

    def on_event(run, event) -> None:
        if isinstance(event, ToolCallEvent):
            run.cancel()

    run = start(model, tools=[look], on_event=on_event)
    held.wait()
    with pytest.raises(SteerQueueFull):
        for number in range(10_000):
            run.steer(f"S{number}")
    assert run.withdraw(run.pending_steers[0])
    assert run.steer("again").text == "again"
    run.cancel()
    held.go.set()
    with pytest.raises(Exception, match="cancelled"):
        run.wait()


def test_steers_put_back_after_a_failure_count_against_the_bound_and_none_is_lost() -> None:  # B112
    held = Held(fail(500))
    model = ScriptedModel([held, say("x")])
    run = start(model, answer_after_failures, on_event=steering_at(StepEvent, *(f"early {n}" for n in range(100))))
    held.wait()
    with pytest.raises(SteerQueueFull):
        for number in range(10_000):
            run.steer(f"S{number}")
    accepted = [steer.text for steer in run.pending_steers]
    held.go.set()
    run.wait()
    assert len(accepted) == 1000
    assert said(asked(model, 1)) == accepted


def test_a_refused_steer_is_no_run_finished() -> None:  # B112
    assert not issubclass(SteerQueueFull, RunFinished)
