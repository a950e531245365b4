"""A tool that runs a child: each run hears what was said to it, and nothing else."""

from __future__ import annotations

import pytest

from steerkit import (
    ModelError,
    Result,
    Run,
    RunFinished,
    Runner,
    Spec,
    StepEvent,
    TurnEvent,
    UsageEvent,
    tool,
    user,
)
from steerkit.patterns import ReAct
from steerkit.testing import ScriptedModel, call, fail, say
from tests.conftest import Held, said, start
from tests.steering.steered import asked, steering_at


def test_a_steer_to_the_parent_is_in_its_own_next_request_and_in_no_request_of_the_child() -> None:  # B128
    in_child = Held(say("child's answer"))
    model = ScriptedModel([call("ask_child"), in_child, say("x")])
    runner = Runner(model, [ReAct()])

    @tool
    def ask_child() -> str:
        """Ask a child."""
        return runner.run(Spec("scripted", "react", 3), [user("For the child.")], model.endpoint).output

    run = runner.start(Spec("scripted", "react", 5, tools=[ask_child]), [user("Q")], model.endpoint)
    in_child.wait()
    run.steer("S")
    in_child.go.set()
    run.wait()
    assert [said(request.messages) for request in model.requests] == [[], [], ["S"]]
    assert [message.text for message in asked(model, 2)][-2] == "child's answer"


def test_a_child_does_not_inherit_what_waits_in_its_parent() -> None:  # B128
    child_model = ScriptedModel([say("child's answer")])

    @tool
    def ask_child() -> str:
        """Ask a child."""
        return start(child_model).wait().output

    model = ScriptedModel([call("ask_child"), say("x")])
    start(model, tools=[ask_child], on_event=steering_at(UsageEvent, "S")).wait()
    assert said(asked(child_model, 0)) == []
    assert said(asked(model, 1)) == ["S"]


def test_what_a_child_did_not_hear_is_on_the_childs_result_for_the_parents_tool() -> None:  # B130
    results: list[Result] = []

    @tool
    def ask_child() -> str:
        """Ask a child."""
        results.append(start(ScriptedModel([say("x")]), on_event=steering_at(UsageEvent, "S")).wait())
        return f"Not heard: {[steer.text for steer in results[0].unapplied_steers]}"

    model = ScriptedModel([call("ask_child"), say("y")])
    result = start(model, tools=[ask_child]).wait()
    assert asked(model, 1)[-1].text == "Not heard: ['S']"
    assert result.unapplied_steers == ()


def test_a_steer_to_a_child_that_has_ended_is_refused() -> None:  # B130
    children: list[Run] = []

    @tool
    def ask_child() -> str:
        """Ask a child."""
        children.append(start(ScriptedModel([say("x")])))
        return children[0].wait().output

    held = Held(say("y"))
    run = start(ScriptedModel([call("ask_child"), held]), tools=[ask_child])
    held.wait()
    with pytest.raises(RunFinished):
        children[0].steer("S")
    held.go.set()
    run.wait()


def test_a_childs_failure_is_a_tool_result_and_the_parent_keeps_its_own_steers() -> None:  # B130
    @tool
    def ask_child() -> str:
        """Ask a child."""
        return start(ScriptedModel([fail(500)])).wait().output

    model = ScriptedModel([call("ask_child"), say("x")])
    result = start(model, tools=[ask_child], on_event=steering_at(StepEvent, "S", number=2)).wait()
    assert "ask_child failed: ModelError" in asked(model, 1)[-2].text
    assert said(result.messages) == ["S"]


def test_an_error_that_a_pattern_passes_on_from_a_child_does_not_take_the_childs_result_over() -> None:  # B130

    def ask_child(turn) -> str:
        turn.ask()
        return start(ScriptedModel([fail(500)]), on_event=steering_at(TurnEvent, "for the child")).wait().output

    run = start(ScriptedModel([say("x")]), ask_child, on_event=steering_at(UsageEvent, "S"))
    with pytest.raises(ModelError) as failed:
        run.wait()
    childs = failed.value.__cause__
    assert isinstance(childs, ModelError) and childs.result is not None and failed.value.result is not None
    assert [steer.text for steer in failed.value.result.unapplied_steers] == ["S"]
    assert [steer.text for steer in childs.result.unapplied_steers] == ["for the child"]
