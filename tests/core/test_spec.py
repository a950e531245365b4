"""Spec: what no run can work with is refused when it is made."""

from __future__ import annotations

from typing import Any

import pytest

from steerkit import ModelRef, Spec, SpecError, Tool


def hand_made(name: Any, **settings: Any) -> Tool:
    return Tool(name, "", {"type": "object", "properties": {}}, lambda: None, **settings)


def spec(**settings: Any) -> Spec:
    return Spec(**{"model": "m", "pattern": "react", "max_steps": 3, **settings})


def test_a_model_may_be_a_name_or_a_model_ref() -> None:
    assert spec(model="m").model == spec(model=ModelRef("m")).model


@pytest.mark.parametrize("steps", [0, -1, True, 2.0, "3", None])
def test_max_steps_is_a_whole_number_from_1(steps: Any) -> None:
    with pytest.raises(SpecError, match=r"Spec\.max_steps is a whole number, 1 or more"):
        spec(max_steps=steps)


def test_max_steps_has_no_default() -> None:
    with pytest.raises(TypeError, match="max_steps"):
        Spec("m", "react")  # type: ignore[call-arg]


@pytest.mark.parametrize("continuations", [-1, False, 1.5])
def test_steer_continuations_is_a_whole_number_from_0(continuations: Any) -> None:
    with pytest.raises(SpecError, match=r"Spec\.steer_continuations is a whole number, 0 or more"):
        spec(steer_continuations=continuations)


@pytest.mark.parametrize("label", ["", " \n", None])
def test_a_blank_label_is_refused(label: Any) -> None:
    with pytest.raises(SpecError, match="steer_label is blank"):
        spec(steer_label=label)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "t\u00e4st", "a\n", None])
def test_a_tool_name_that_some_provider_refuses_is_refused(name: Any) -> None:
    with pytest.raises(SpecError, match="is not 1 to 64 letters"):
        spec(tools=[hand_made(name)])


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(SpecError, match="Two tools are named 'look'"):
        spec(tools=[hand_made("look"), hand_made("look")])


def test_a_plain_function_is_no_tool() -> None:
    with pytest.raises(SpecError, match="which is no Tool: decorate"):
        spec(tools=[len])


def test_a_tool_that_needs_approval_needs_somebody_to_ask() -> None:
    with pytest.raises(SpecError, match=r"needs approval, but Spec\.approve is not set"):
        spec(tools=[hand_made("look", needs_approval=True)])
    spec(tools=[hand_made("look", needs_approval=True)], approve=lambda _: True)
