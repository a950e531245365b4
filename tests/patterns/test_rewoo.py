"""ReWOO: every call planned in one request, and solved from in a second."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit import AnswerCutOff, PlanError, SpecError, SteerkitError, StepLimitReached, ToolCallEvent, tool
from steerkit.core.pairing import check_pairs
from steerkit.patterns import ReWOO
from steerkit.patterns.rewoo import SOLVING, fill_in
from steerkit.testing import Answer, ScriptedModel, call, fail, say
from tests.conftest import start, texts


@tool
def look(at: str = "") -> str:
    """Look at something."""
    return f"seen {at}"


@tool
def show(value: dict[str, Any]) -> dict[str, Any]:
    """Show a value."""
    return value


def plan(*steps: tuple[str, dict[str, Any]]) -> Answer:
    return call("submit_plan", steps=[{"tool": tool, "arguments": arguments} for tool, arguments in steps])


def _messages(error: SteerkitError) -> list[str]:
    assert error.result is not None
    check_pairs(error.result.messages)
    return texts(error.result.messages)


def test_two_requests_are_made_however_many_tools_run() -> None:
    model = ScriptedModel([plan(*[("look", {"at": str(n)}) for n in range(6)]), say("x")])
    run = start(model, ReWOO(), tools=[look])
    assert (run.wait().output, len(model.requests)) == ("x", 2)
    ran = [event.call.arguments for event in run.events() if isinstance(event, ToolCallEvent)]
    assert ran == [f'{{"at": "{n}"}}' for n in range(6)]


def test_the_planner_is_told_of_every_tool_and_may_call_only_the_one_for_the_plan() -> None:
    model = ScriptedModel([plan(("look", {})), say("x")])
    start(model, ReWOO(), tools=[look], system="Be terse {really}.").wait()
    planning, solving = model.requests
    assert planning.system is not None
    assert planning.system.startswith("Be terse {really}.\n\n")
    assert "look: Look at something." in planning.system
    assert [tool.name for tool in planning.tools] == ["submit_plan"]
    assert (solving.system, solving.tools, solving.tool_choice) == (planning.system, planning.tools, "none")


def test_the_solver_gets_all_results_as_the_result_of_the_plan() -> None:
    model = ScriptedModel([plan(("look", {"at": "a"}), ("look", {"at": "b"})), say("x")])
    start(model, ReWOO(), tools=[look]).wait()
    assert texts(model.requests[1].messages)[2] == f"{SOLVING}\n\n#E1: seen a\n\n#E2: seen b"


def test_a_reference_stands_for_the_result_of_its_step() -> None:
    model = ScriptedModel([plan(("look", {"at": "a"}), ("look", {"at": "<#E1>"})), say("x")])
    assert "#E2: seen <seen a>" in start(model, ReWOO(), tools=[look]).wait().messages[2].text


def test_a_tool_that_fails_is_a_result_for_the_later_steps_and_the_solver() -> None:
    @tool
    def broken() -> str:
        """Break."""
        raise OSError("no disk")

    model = ScriptedModel([plan(("broken", {}), ("look", {"at": "#E1"}), ("find", {})), say("x")])
    evidence = start(model, ReWOO(), tools=[look, broken]).wait().messages[2].text
    assert "#E2: seen broken failed: OSError: no disk" in evidence
    assert "#E3: There is no tool named 'find'." in evidence


def test_a_result_with_a_reference_in_it_is_not_filled_in_again() -> None:
    model = ScriptedModel([plan(("look", {"at": "#E2"}), ("look", {"at": "#E1"})), say("x")])
    evidence = start(model, ReWOO(), tools=[look]).wait().messages[2].text
    assert "#E2: seen seen (#E2 has not run, so it has no result)" in evidence


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ("#E1", "one"),
        ("#E1#E2, #E1.", "onetwo, one."),
        ("#E10", "ten"),  # not step 1 and a zero
        ("#E11", "(#E11 has not run, so it has no result)"),
        ("#E0", "(#E0 has not run, so it has no result)"),
        ("#E01", "(#E01 has not run, so it has no result)"),
        ("#E", "#E"),
        ("#e1", "#e1"),
        (["#E1", ["#E2", 3]], ["one", ["two", 3]]),
        ({"a": {"b": ["#E2"]}}, {"a": {"b": ["two"]}}),
        ({"#E1": "x"}, {"#E1": "x"}),  # a name of an argument is not the model's text
        (1.5, 1.5),
        (None, None),
        (True, True),
        ("{0} {results} %s $E1 #E1.__class__ #E1[0]", "{0} {results} %s $E1 one.__class__ one[0]"),
        ("__import__('os').abort()", "__import__('os').abort()"),
    ],
)
def test_references_are_filled_in_as_text(value: Any, filled: Any) -> None:
    assert fill_in(value, {"#E1": "one", "#E2": "two", "#E10": "ten"}) == filled


@pytest.mark.parametrize("result", ["\\1 \\g<0>", "{0} {x!r}", "%s", "$1", '"quoted"', "line\nline", "#E2"])
def test_a_result_is_put_in_as_it_is(result: str) -> None:
    assert fill_in("<#E1>", {"#E1": result}) == f"<{result}>"


@pytest.mark.parametrize("number", ["9" * 5000, "0" * 5000, "18446744073709551617"])
def test_a_reference_to_a_step_beyond_all_counting_has_no_result(number: str) -> None:
    assert fill_in(f"#E{number}", {"#E1": "one"}) == f"(#E{number} has not run, so it has no result)"


@pytest.mark.parametrize("number", ["\N{ARABIC-INDIC DIGIT ONE}", "\N{SUPERSCRIPT ONE}"])
def test_digits_of_other_scripts_make_no_reference(number: str) -> None:
    assert fill_in(f"#E{number}", {"#E1": "one"}) == f"#E{number}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON)
def test_what_has_no_reference_is_left_as_it_is(value: Any) -> None:
    if "#E" not in repr(value):
        assert fill_in(value, {"#E1": "one"}) == value


def test_nested_references_reach_the_tool() -> None:
    model = ScriptedModel(
        [plan(("look", {"at": "a"}), ("show", {"value": {"deep": ["#E1", {"er": "#E1"}]}})), say("x")]
    )
    evidence = start(model, ReWOO(), tools=[look, show]).wait().messages[2].text
    assert '#E2: {"deep": ["seen a", {"er": "seen a"}]}' in evidence


@pytest.mark.parametrize(
    "reply",
    [
        say("I would rather talk."),
        say(""),
        call("look"),
        plan(("look", {})) + call("look"),
        plan(("look", {})) + plan(("look", {})),
    ],
    ids=["text", "nothing", "another tool", "a plan and a call", "two plans"],
)
def test_no_plan_is_an_error_and_no_tool_is_run(reply: Answer) -> None:
    run = start(ScriptedModel([reply]), ReWOO(), tools=[look])
    with pytest.raises(PlanError, match="did not submit a plan") as ended:
        run.wait()
    assert _messages(ended.value) == ["Q"]
    assert not any(isinstance(event, ToolCallEvent) for event in run.events())


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "{}",
        '{"steps": null}',
        '{"steps": "look"}',
        '{"steps": 3}',
        '{"steps": [null]}',
        '{"steps": ["look"]}',
        '{"steps": [{}]}',
        '{"steps": [{"tool": "look"}]}',
        '{"steps": [{"tool": "look", "arguments": null}]}',
        '{"steps": [{"tool": "look", "arguments": "at"}]}',
        '{"steps": [{"tool": "look", "arguments": [1]}]}',
        '{"steps": ""}',
        '{"steps": [{"tool": "look", "arguments": []}]}',
        '{"steps": [{"tool": "look", "arguments": [["at", "x"]]}]}',
        '{"steps": [{"tool": 3, "arguments": {}}]}',
        '{"steps": [{"tool": null, "arguments": {}}]}',
        '{"steps": {"tool": "look", "arguments": {}}}',
        '{"steps": [',
        "[]",
    ],
)
def test_a_plan_of_another_form_is_an_error_and_no_tool_is_run(arguments: str) -> None:
    run = start(ScriptedModel([call("submit_plan", arguments)]), ReWOO(), tools=[look])
    with pytest.raises(PlanError, match="no list of steps"):
        run.wait()
    assert not any(isinstance(event, ToolCallEvent) for event in run.events())


def test_an_empty_plan_is_an_error() -> None:
    with pytest.raises(PlanError, match="plan is empty") as ended:
        start(ScriptedModel([plan()]), ReWOO(), tools=[look]).wait()
    assert _messages(ended.value)[:1] == ["Q"]


def test_a_plan_longer_than_the_step_limit_is_an_error_and_none_of_it_is_run() -> None:
    run = start(ScriptedModel([plan(*[("look", {})] * 4)]), ReWOO(), tools=[look], max_steps=3)
    with pytest.raises(PlanError, match="has 4 steps and max_steps is 3"):
        run.wait()
    assert not any(isinstance(event, ToolCallEvent) for event in run.events())


def test_a_plan_that_was_cut_off_is_not_run() -> None:
    run = start(ScriptedModel([plan(("look", {})).finishing("length")]), ReWOO(), tools=[look])
    with pytest.raises(AnswerCutOff):
        run.wait()
    assert not any(isinstance(event, ToolCallEvent) for event in run.events())


def test_when_the_solver_fails_the_results_are_in_the_messages() -> None:
    with pytest.raises(SteerkitError) as ended:
        start(ScriptedModel([plan(("look", {"at": "a"})), fail(500)]), ReWOO(), tools=[look]).wait()
    assert "#E1: seen a" in _messages(ended.value)[2]


def test_the_solver_takes_a_step_too() -> None:
    with pytest.raises(StepLimitReached) as ended:
        start(ScriptedModel([plan(("look", {"at": "a"}))]), ReWOO(), tools=[look], max_steps=1).wait()
    assert "#E1: seen a" in _messages(ended.value)[2]


def test_without_tools_there_is_nothing_to_plan_with() -> None:
    with pytest.raises(SpecError, match=r"Spec\.tools is empty"):
        start(ScriptedModel([]), ReWOO())


def test_a_tool_named_like_the_patterns_own_is_refused() -> None:
    @tool
    def submit_plan() -> None:
        """Submit."""

    with pytest.raises(SpecError, match="rename yours"):
        start(ScriptedModel([]), ReWOO(), tools=[submit_plan])
