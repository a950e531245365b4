"""Tools: whatever goes wrong in one is text for the model."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import pydantic
import pytest
from attrs import frozen

from steerkit import Image, Text, Tool, ToolCall, ToolContext
from steerkit.core.cancel import Cancellation, Cancelled
from steerkit.core.tool import Outcome, run_tool

IMAGE = Image(b"x", "image/png")
FLAG = Cancellation().requested


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    colour: Colour = Colour.RED


@frozen
class Line:
    points: list[Point]


class Model(pydantic.BaseModel):
    colour: Colour


def ran(
    function: Callable[..., Any],
    arguments: str = "{}",
    *,
    name: str = "look",
    approve: Callable[[ToolCall], bool] | None = None,
    **settings: Any,
) -> Outcome:
    tool = Tool("look", "Look.", {"type": "object"}, function, **settings)
    call = ToolCall("c1", name, arguments)
    return run_tool([tool], call, approve, ToolContext(call, FLAG, FLAG))


def text(outcome: Outcome) -> str:
    return outcome.message(ToolCall("c1", "look")).text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("seen", "seen"),
        (None, ""),
        (3, "3"),
        ({"a": "\u00e9"}, '{"a": "\u00e9"}'),
        ([1, "b"], '[1, "b"]'),
        (b"x", "\"b'x'\""),
        (Line([Point(1)]), '{"points": [{"x": 1, "colour": "red"}]}'),
        ([Model(colour=Colour.RED)], '[{"colour": "red"}]'),
        ({"seen": {1}}, '{"seen": [1]}'),
    ],
)
def test_what_a_tool_returns_is_read_as_text_or_json(value: Any, shown: str) -> None:
    outcome = ran(lambda: value)
    assert (text(outcome), outcome.error) == (shown, None)


@pytest.mark.parametrize("value", [IMAGE, [IMAGE], ("a", IMAGE, Text("b"))])
def test_images_are_kept(value: Any) -> None:
    assert IMAGE in ran(lambda: value).content


def test_a_lone_surrogate_in_a_result_is_replaced() -> None:
    assert text(ran(lambda: "a\ud83d")) == "a?"


def test_arguments_are_given_by_name() -> None:
    assert text(ran(lambda path: path, '{"path": "a.py"}')) == "a.py"


def test_an_unknown_tool_is_told_with_the_known_ones() -> None:
    outcome = ran(lambda: 1, name="find")
    assert text(outcome) == "There is no tool named 'find'. The tools are: look."
    assert isinstance(outcome.error, LookupError)


def test_arguments_that_are_not_json_are_told_and_nothing_is_run() -> None:
    ran_it: list[int] = []
    outcome = ran(lambda: ran_it.append(1), '{"path": ')
    assert "not valid JSON" in text(outcome)
    assert isinstance(outcome.error, ValueError)
    assert ran_it == []


def test_a_tool_that_raises_is_told_by_its_name_and_the_error() -> None:
    outcome = ran(lambda: 1 / 0)
    assert text(outcome) == "look failed: ZeroDivisionError: division by zero"
    assert isinstance(outcome.error, ZeroDivisionError)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_that_cannot_be_shown_is_told_by_its_type() -> None:
    def fails() -> None:
        raise Mute

    assert text(ran(fails)) == "look failed: Mute (its text cannot be shown)"


def refuse(_: dict[str, Any]) -> dict[str, Any]:
    raise ValueError("path: required.")


def crash(_: dict[str, Any]) -> dict[str, Any]:
    raise KeyError("path")


def test_what_the_check_of_the_arguments_says_is_told_as_it_is() -> None:
    assert text(ran(lambda: 1, validate=refuse)) == "path: required."


def test_a_check_of_the_arguments_that_crashes_is_told_too() -> None:
    outcome = ran(lambda: 1, validate=crash)
    assert text(outcome) == "look failed: KeyError: 'path'"


def test_the_function_gets_what_the_check_returned() -> None:
    assert (
        text(ran(lambda number: number + 1, '{"number": "1"}', validate=lambda a: {"number": int(a["number"])})) == "2"
    )


@pytest.mark.parametrize("approve", [lambda _: False, None])
def test_a_call_that_is_not_allowed_is_not_run(approve: Any) -> None:
    ran_it: list[int] = []
    outcome = ran(lambda: ran_it.append(1), needs_approval=True, approve=approve)
    assert "did not allow this call of look. It was not run" in text(outcome)
    assert isinstance(outcome.error, PermissionError)
    assert ran_it == []


def test_a_call_that_is_allowed_is_run() -> None:
    assert text(ran(lambda: "seen", needs_approval=True, approve=lambda call: call.name == "look")) == "seen"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, Cancelled])
def test_what_ends_a_program_or_a_run_passes_through(error: type[BaseException]) -> None:
    def ends() -> None:
        raise error

    with pytest.raises(error):
        ran(ends)


def test_a_parameter_typed_tool_context_is_filled_in() -> None:
    def look(path: str, context: ToolContext) -> str:
        return f"{context.call.id} {path}"

    assert text(ran(look, '{"path": "a"}')) == "c1 a"


@pytest.mark.parametrize("hint", [ToolContext, "ToolContext", "steerkit.ToolContext"])
def test_the_type_of_the_context_may_be_a_text(hint: Any) -> None:
    def look(context: Any) -> Any:
        return context.call.id

    look.__annotations__["context"] = hint
    assert text(ran(look)) == "c1"


def test_what_has_no_signature_can_be_a_tool() -> None:
    assert text(ran(dict, "{}")) == "{}"


def test_a_tool_can_be_called_like_its_function() -> None:
    tool = Tool("double", "", {}, lambda number: 2 * number)
    assert tool(2) == tool(number=2) == 4


@pytest.mark.parametrize("answer", ["n", 1, None, [True]])
def test_nothing_but_true_allows_a_call(answer: Any) -> None:
    ran_it: list[int] = []
    outcome = ran(lambda: ran_it.append(1), needs_approval=True, approve=lambda _: answer)
    assert isinstance(outcome.error, PermissionError)
    assert ran_it == []


def test_an_approval_that_fails_does_not_read_as_if_the_tool_had_run() -> None:
    def approve(_call: ToolCall) -> bool:
        raise OSError("no terminal")

    assert text(ran(lambda: "seen", needs_approval=True, approve=approve)) == (
        "The user could not be asked about look (OSError: no terminal). It was not run."
    )
