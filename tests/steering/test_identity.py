"""One steer, one delivery: nothing is told apart by its text, and nothing is said twice."""

from __future__ import annotations

import pytest

from steerkit import (
    ModelError,
    Run,
    RunFinished,
    SteerEvent,
    SteerRefused,
    ToolCallEvent,
    Turn,
    TurnEvent,
    UsageEvent,
    tool,
    user,
)
from steerkit.testing import ScriptedModel, call, cut, fail, say
from tests.conftest import Held, ask_until_answered, said, start, texts
from tests.steering.steered import asked, steering_at


@tool
def look() -> str:
    """Look."""
    return "seen"


def test_what_a_run_hands_back_can_be_read_twice_and_said_to_the_next_run_once() -> None:  # B61, B22
    model = ScriptedModel([say("x"), call("look"), say("y")])
    first = start(model, on_event=steering_at(UsageEvent, "S")).wait()
    assert first.unapplied_steers == first.unapplied_steers
    again = [user(*steer.content) for steer in first.unapplied_steers]
    start(model, messages=[*first.messages, *again], tools=[look]).wait()
    assert [texts(request.messages).count("S") for request in model.requests] == [0, 1, 1]


def test_a_refusal_is_told_by_its_class_and_carries_what_was_said() -> None:  # B62
    run = start(ScriptedModel([say("x")]))
    run.wait()
    with pytest.raises(SteerRefused) as refused:
        run.steer(["a", "b"])
    assert type(refused.value) is RunFinished
    assert [part.text for part in refused.value.content] == ["a", "b"]  # type: ignore[union-attr]


def test_two_steers_with_one_text_are_two_steers() -> None:  # B62
    model = ScriptedModel([call("look"), say("x")])
    run = start(model, tools=[look], on_event=steering_at(ToolCallEvent, "S", "S"))
    result = run.wait()
    told = [event.steer for event in run.events() if isinstance(event, SteerEvent)]
    assert said(result.messages) == ["S", "S"]
    assert [message.meta["steer_id"] for message in asked(model, 1)[-2:]] == [steer.id for steer in told]
    assert told[0].id != told[1].id


def test_what_a_continuation_took_is_not_handed_back_too() -> None:  # B64
    model = ScriptedModel([say("x"), say("y")])
    result = start(model, steer_continuations=1, on_event=steering_at(UsageEvent, "S")).wait()
    assert result.unapplied_steers == ()
    assert said(result.messages) == ["S"]


def test_a_continuation_says_the_first_question_once() -> None:  # B65
    model = ScriptedModel([say("x"), say("y")])
    start(model, steer_continuations=1, on_event=steering_at(UsageEvent, "S")).wait()
    assert texts(asked(model, 1)) == ["Q", "x", "S"]


def test_a_steer_whose_request_failed_thrice_is_carried_once_and_applied_once() -> None:  # B67
    def run(turn: Turn) -> str:
        turn.messages.append(ask_until_answered(turn).message)
        turn.messages.append(user("more"))
        return turn.ask().message.text

    model = ScriptedModel([fail(500), cut(), fail(429), say("x"), say("y")])
    handle = start(model, run, on_event=steering_at(TurnEvent, "S"))
    handle.wait()
    assert [said(request.messages) for request in model.requests] == [["S"]] * 5
    told = [event for event in handle.events() if isinstance(event, SteerEvent)]
    assert [(event.request, event.index, event.step) for event in told] == [(3, 1, 4)]


def test_a_steer_to_a_child_run_is_one_message_in_the_childs_next_request() -> None:  # B68
    child_model = ScriptedModel([call("look"), say("x")])

    @tool
    def ask_child() -> str:
        """Ask a child."""
        return start(child_model, tools=[look], on_event=steering_at(ToolCallEvent, "S")).wait().output

    model = ScriptedModel([call("ask_child"), say("y")])
    start(model, tools=[ask_child]).wait()
    assert said(asked(child_model, 1)) == ["S"]
    assert said(asked(model, 1)) == []


def test_a_steer_that_is_applied_is_never_handed_back_when_a_later_request_fails() -> None:  # B67
    model = ScriptedModel([call("look"), fail(500)])
    run = start(model, tools=[look], on_event=steering_at(TurnEvent, "S"))
    with pytest.raises(ModelError) as failed:
        run.wait()
    assert failed.value.result is not None
    assert (said(failed.value.result.messages), failed.value.result.unapplied_steers) == (["S"], ())


def test_a_steer_to_an_old_run_does_not_reach_the_one_that_works_now() -> None:  # B22
    held = Held(say("y"))
    model = ScriptedModel([say("x"), held])
    old = start(model)
    old.wait()
    new: Run = start(model)
    held.wait()
    with pytest.raises(RunFinished):
        old.steer("S")
    assert new.pending_steers == ()
    held.go.set()
    new.wait()
