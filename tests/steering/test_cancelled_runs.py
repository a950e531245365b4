"""Cancel, failure and recovery: what was said is kept or handed back, and nothing goes on by itself."""

from __future__ import annotations

import json
import threading

import pytest

from steerkit import (
    Event,
    Result,
    Run,
    RunCancelled,
    RunFinished,
    SteerReturnedEvent,
    StepEvent,
    ToolCallEvent,
    ToolContext,
    ToolResultEvent,
    TurnEvent,
    dump_messages,
    tool,
)
from steerkit.core.pairing import check_pairs
from steerkit.testing import ScriptedModel, call, fail, say
from tests.conftest import PATIENCE, Held, said, start, texts
from tests.steering.steered import answer_after_failures, asked, label, steering_at


@tool
def look() -> str:
    """Look."""
    return "seen"


def _cancelled(run: Run) -> Result:
    with pytest.raises(RunCancelled) as cancelled:
        run.wait()
    assert cancelled.value.result is not None
    return cancelled.value.result


def test_a_steer_survives_a_failed_request_that_the_pattern_recovers_from() -> None:  # B70
    model = ScriptedModel([fail(500), say("x")])
    start(model, answer_after_failures, on_event=steering_at(TurnEvent, "S")).wait()
    assert said(asked(model, 1)) == ["S"]


def test_cancel_hands_back_every_pending_steer_with_an_event_for_each() -> None:  # B71
    held = Held(say("x"))
    run = start(ScriptedModel([held]))
    held.wait()
    steers = (run.steer("1"), run.steer("2"))
    run.cancel()
    assert _cancelled(run).unapplied_steers == steers
    assert [event.steer for event in run.events() if isinstance(event, SteerReturnedEvent)] == list(steers)


def test_after_a_cancel_no_request_is_made_and_no_steer_begins_anything() -> None:  # B73, B76
    entered, leave = threading.Event(), threading.Event()

    @tool
    def wait_here() -> str:
        """Wait."""
        entered.set()
        leave.wait(PATIENCE)
        return "done"

    model = ScriptedModel([call("wait_here"), say("never asked for")])
    run = start(model, tools=[wait_here], steer_continuations=1)
    assert entered.wait(PATIENCE)
    run.cancel()
    assert not run.done
    with pytest.raises(RunFinished) as refused:
        run.steer("S")
    assert refused.value.text == "S"
    leave.set()
    assert _cancelled(run).steps == len(model.requests) == 1


def test_a_steer_in_flight_cannot_be_withdrawn() -> None:  # B74
    held = Held(say("x"))
    run = start(ScriptedModel([held]), on_event=steering_at(TurnEvent, "S"))
    held.wait()
    (steer,) = run.pending_steers
    assert (run.withdraw(steer), steer.state) == (False, "pending")
    held.go.set()
    run.wait()
    assert steer.state == "applied"


def test_a_steer_in_flight_at_a_cancel_before_the_first_word_is_handed_back() -> None:  # B74
    held = Held(say("x"))
    run = start(ScriptedModel([held]), on_event=steering_at(TurnEvent, "S"))
    held.wait()
    run.cancel()
    assert [(steer.text, steer.state) for steer in _cancelled(run).unapplied_steers] == [("S", "unapplied")]


def test_a_steer_in_flight_at_a_cancel_after_the_first_word_is_applied_and_not_handed_back() -> None:  # B74
    gate = threading.Event()
    run = start(ScriptedModel([say("A long answer").pausing(gate, 4)]), on_event=steering_at(TurnEvent, "S"))
    from steerkit import TextEvent

    next(event for event in run.events() if isinstance(event, TextEvent))
    run.cancel()
    result = _cancelled(run)
    assert (said(result.messages), result.unapplied_steers) == (["S"], ())


def test_a_cancelled_run_starts_no_continuation() -> None:  # B77
    held = Held(say("x"))
    model = ScriptedModel([held, say("never asked for")])
    run = start(model, steer_continuations=3)
    held.wait()
    run.steer("S")
    run.cancel()
    result = _cancelled(run)
    assert (result.turns, [steer.text for steer in result.unapplied_steers]) == (1, ["S"])


def test_a_cancelled_run_can_be_gone_on_from_with_what_it_handed_back() -> None:  # B77, B79
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolCallEvent):
            run.steer("S")
            run.cancel()

    model = ScriptedModel([call("look") + call("look"), say("x")])
    result = _cancelled(start(model, tools=[look], on_event=on_event))
    from steerkit import user

    again = [user(*steer.content) for steer in result.unapplied_steers]
    assert start(model, messages=[*result.messages, *again], tools=[look]).wait().output == "x"
    assert texts(asked(model, 1))[-1] == "S"


def test_after_a_cancel_every_open_call_has_a_result_that_says_it_was_not_run() -> None:  # B79
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolResultEvent):
            run.cancel()

    model = ScriptedModel([call("look") + call("look") + call("look")])
    messages = _cancelled(start(model, tools=[look], on_event=on_event)).messages
    check_pairs(messages)
    assert texts(messages)[2] == "seen"  # the tool that had begun has its result
    assert all("cancelled" in text for text in texts(messages)[3:]) and len(messages) == 5
    json.dumps(dump_messages(messages))


@pytest.mark.parametrize("kind", [TurnEvent, StepEvent, ToolCallEvent])
def test_a_cancel_from_a_handler_ends_the_run_and_hands_back_the_steer(kind: type[Event]) -> None:  # B71
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, kind):
            run.steer("S")
            run.cancel()

    result = _cancelled(start(ScriptedModel([call("look"), say("x")]), tools=[look], on_event=on_event))
    assert [steer.text for steer in result.unapplied_steers] == ["S"]


def test_a_tool_that_waits_can_stop_as_soon_as_a_steer_waits_for_it() -> None:  # B80
    entered = threading.Event()
    ended_early: list[bool] = []

    @tool
    def wait_for_build(context: ToolContext) -> str:
        """Wait for the build."""
        assert not context.steer_pending
        entered.set()
        ended_early.append(context.steer_pending.wait(PATIENCE))
        return "The build still runs."

    model = ScriptedModel([call("wait_for_build"), say("x")])
    run = start(model, tools=[wait_for_build])
    assert entered.wait(PATIENCE)
    run.steer("S")
    run.wait()
    assert ended_early == [True]
    assert texts(asked(model, 1))[-2:] == ["The build still runs.", label("S")]


def test_an_idle_steer_does_not_hurry_a_tool() -> None:  # B80
    seen: list[bool] = []

    @tool
    def wait_a_moment(context: ToolContext) -> str:
        """Wait."""
        seen.append(context.steer_pending.wait(0))
        return "done"

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolCallEvent):
            run.steer("later", when="idle")

    model = ScriptedModel([call("wait_a_moment"), say("x"), say("y")])
    start(model, tools=[wait_a_moment], steer_continuations=1, on_event=on_event).wait()
    assert seen == [False]


def test_a_tool_that_waits_can_stop_as_soon_as_the_run_is_cancelled() -> None:  # B80
    entered = threading.Event()

    @tool
    def wait_for_build(context: ToolContext) -> str:
        """Wait for the build."""
        entered.set()
        return f"stopped {context.cancelled.wait(PATIENCE)}"

    run = start(ScriptedModel([call("wait_for_build")]), tools=[wait_for_build])
    assert entered.wait(PATIENCE)
    run.cancel()
    assert texts(_cancelled(run).messages)[-1] == "stopped True"


@pytest.mark.parametrize("what", ["a steer", "a cancel"])
def test_a_tool_that_sleeps_wakes_for_a_steer_and_for_a_cancel(what: str) -> None:
    asleep = threading.Event()
    woken: list[bool] = []

    def nap(context: ToolContext) -> str:
        asleep.set()
        woken.append(context.wait(60))
        return "awake"

    run = start(ScriptedModel([call("nap"), say("Done.")]), tools=[tool(nap)])
    assert asleep.wait(PATIENCE)
    if what == "a steer":
        run.steer("wake up")
        run.wait()
    else:
        run.cancel()
        with pytest.raises(RunCancelled):
            run.wait()
    assert woken == [True]


def test_a_tool_that_nobody_wakes_sleeps_its_time() -> None:
    woken: list[bool] = []

    def nap(context: ToolContext) -> str:
        woken.append(context.wait(0.01))
        return "awake"

    start(ScriptedModel([call("nap"), say("Done.")]), tools=[tool(nap)]).wait()
    assert woken == [False]


def test_a_tool_is_not_run_when_its_own_event_cancels() -> None:
    ran: list[str] = []

    def delete() -> str:
        ran.append("deleted")
        return "deleted"

    def guard(run: Run, event: Event) -> None:
        if isinstance(event, ToolCallEvent):
            run.cancel()

    run = start(ScriptedModel([call("delete")]), tools=[tool(delete)], on_event=guard)
    with pytest.raises(RunCancelled) as caught:
        run.wait()
    assert ran == []
    assert caught.value.result is not None
    assert "cancelled" in caught.value.result.messages[-1].text


def test_a_tool_is_not_run_when_the_cancel_comes_while_its_approval_is_open() -> None:
    ran: list[str] = []
    asked, gate = threading.Event(), threading.Event()

    def approve(_call: object) -> bool:
        asked.set()
        return gate.wait(PATIENCE)

    delete = tool(needs_approval=True, name="delete")(lambda: ran.append("deleted"))
    run = start(ScriptedModel([call("delete")]), tools=[delete], approve=approve)
    assert asked.wait(PATIENCE)
    run.cancel()
    gate.set()
    with pytest.raises(RunCancelled):
        run.wait()
    assert ran == []
