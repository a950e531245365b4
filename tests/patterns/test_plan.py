"""Plan: a plan first, perhaps approved, then the work."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from steerkit import AnswerCutOff, PlanError, Request, Response, SteerkitError, StepLimitReached, tool
from steerkit.core.message import Echo
from steerkit.core.model import OnText
from steerkit.patterns import Plan
from steerkit.patterns.plan import ACTING, PLANNING
from steerkit.testing import ScriptedModel, call, say
from tests.conftest import start, texts


@tool
def look() -> str:
    """Look."""
    return "seen"


def _messages(error: SteerkitError) -> list[str]:
    assert error.result is not None
    return texts(error.result.messages)


def test_the_plan_is_asked_for_without_tools_and_then_acted_on_with_them() -> None:
    model = ScriptedModel([say("1. look"), call("look"), say("x")])
    result = start(model, Plan(), tools=[look], system="Be terse.").wait()
    planning, acting, _ = model.requests
    assert (planning.tools, planning.system) == ((), f"Be terse.\n\n{PLANNING}")
    assert ([tool.name for tool in acting.tools], acting.system) == (["look"], "Be terse.")
    assert texts(acting.messages) == ["Q", "1. look", ACTING]
    assert result.output == "x"


def test_without_a_system_prompt_the_planning_request_has_the_planning_words_alone() -> None:
    model = ScriptedModel([say("1. look"), say("x")])
    start(model, Plan()).wait()
    assert [request.system for request in model.requests] == [PLANNING, None]


def test_an_approved_plan_is_acted_on() -> None:
    shown: list[str] = []

    def approve(plan: str) -> bool:
        shown.append(plan)
        return True

    assert start(ScriptedModel([say("1. look"), say("x")]), Plan(approve)).wait().output == "x"
    assert shown == ["1. look"]


def test_a_refused_plan_is_the_output_and_nothing_is_done() -> None:
    model = ScriptedModel([say("1. look")])
    result = start(model, Plan(lambda plan: False), tools=[look]).wait()
    assert (result.output, texts(result.messages), len(model.requests)) == ("1. look", ["Q", "1. look"], 1)


def test_an_approval_that_raises_ends_the_run_with_the_plan_in_its_messages() -> None:
    def approve(plan: str) -> bool:
        raise OSError("nobody is there")

    with pytest.raises(SteerkitError) as ended:
        start(ScriptedModel([say("1. look")]), Plan(approve)).wait()
    assert isinstance(ended.value.__cause__, OSError)
    assert _messages(ended.value) == ["Q", "1. look"]


def test_a_tool_call_in_the_planning_request_is_an_error_and_is_not_run() -> None:
    with pytest.raises(PlanError, match="called look, find in the planning request") as ended:
        start(ScriptedModel([say("I'll look.") + call("look") + call("find")]), Plan(), tools=[look]).wait()
    assert _messages(ended.value) == ["Q"]


@pytest.mark.parametrize("plan", ["", " \n"])
def test_no_plan_is_an_error(plan: str) -> None:
    with pytest.raises(PlanError, match="wrote no plan") as ended:
        start(ScriptedModel([say(plan)]), Plan(), tools=[look]).wait()
    assert _messages(ended.value) == ["Q"]


def test_a_plan_that_was_cut_off_is_not_acted_on() -> None:
    with pytest.raises(AnswerCutOff) as ended:
        start(ScriptedModel([say("1. lo").finishing("length")]), Plan(), tools=[look]).wait()
    assert ended.value.partial == "1. lo"


def test_the_plan_takes_one_of_the_steps() -> None:
    with pytest.raises(StepLimitReached) as ended:
        start(ScriptedModel([say("1. look"), call("look")]), Plan(), tools=[look], max_steps=2).wait()
    assert _messages(ended.value) == ["Q", "1. look", ACTING, "", "seen"]


def test_one_plan_object_serves_runs_at_once() -> None:
    pattern = Plan()
    runs = [start(ScriptedModel([say(f"plan {n}"), say(f"x {n}")]), pattern) for n in range(4)]
    assert [run.wait().output for run in runs] == ["x 0", "x 1", "x 2", "x 3"]


def test_what_a_provider_bound_to_the_planning_request_is_not_sent_in_the_next() -> None:
    class Thinking(ScriptedModel):
        def complete(self, request: Request, on_text: OnText | None = None) -> Response:
            response = super().complete(request, on_text)
            return evolve(response, message=evolve(response.message, echo=Echo("scripted", '{"signature": "abc"}')))

    model = Thinking([say("1. look"), say("x")])
    result = start(model, Plan()).wait()
    assert [message.echo for message in model.requests[1].messages] == [None, None, None]
    assert result.messages[-1].echo is not None


def test_nothing_but_true_approves_a_plan() -> None:
    model = ScriptedModel([say("1. Delete all.")])
    answer: Any = "n"
    result = start(model, Plan(approve=lambda _plan: answer)).wait()
    assert (result.output, len(model.requests)) == ("1. Delete all.", 1)
