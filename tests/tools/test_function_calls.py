"""A call of a tool: its arguments, its result, and who is asked first. Whatever goes wrong is text for the model."""

from __future__ import annotations

from typing import Any, Literal

import pydantic
import pytest

from steerkit import Image, Text, Tool, ToolCall, tool
from tests.tools.tool_calls import run, text


class Point(pydantic.BaseModel):
    x: int


@tool
def measure(width: int, unit: Literal["cm", "m"] = "cm", at: Point | None = None) -> str:
    """Measure."""
    return f"{width} {unit}"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{", "The arguments are not valid JSON"),
        ("[]", "are a JSON list, not an object"),
        ("null", "are a JSON NoneType, not an object"),
        ('"width"', "are a JSON str, not an object"),
        ("{}", "width: Field required"),
        ('{"width": "wide"}', "width: Input should be a valid integer"),
        ('{"width": 1, "unit": "mile"}', "unit: Input should be 'cm' or 'm'"),
        ('{"width": 1, "depth": 2}', "depth: Extra inputs are not permitted"),
        ('{"width": 1, "at": {"x": "left"}}', "at.x: Input should be a valid integer"),
        ('{"width": null, "unit": 3}', "; unit: "),
    ],
)
def test_bad_arguments_are_a_text_that_says_what_to_mend_and_the_tool_is_not_run(arguments: str, told: str) -> None:
    outcome = run(measure, arguments)
    assert told in text(outcome)
    assert isinstance(outcome.error, ValueError)


def test_a_text_about_bad_arguments_does_not_send_the_model_to_a_website() -> None:
    assert "http" not in text(run(measure, {"width": "wide"}))


def test_arguments_with_line_breaks_in_their_texts_are_taken() -> None:
    @tool
    def look(at: str) -> str:
        """Look."""
        return at

    assert text(run(look, '{"at": "a\nb"}')) == "a\nb"


# ---- results


def type_name(value: object) -> str:
    return type(value).__name__


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Odd:
    def __str__(self) -> str:
        return "odd"


PICTURE = Image(b"\x89PNG", "image/png")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", (Text("text"),)),
        ("", (Text(""),)),
        (None, ()),
        (True, (Text("true"),)),
        (3, (Text("3"),)),
        (1.5, (Text("1.5"),)),
        ({"a": [1, None]}, (Text('{"a": [1, null]}'),)),
        (("a", "b"), (Text('["a", "b"]'),)),
        ([], (Text("[]"),)),
        ("größe", (Text("größe"),)),
        (["größe"], (Text('["größe"]'),)),
        (Text("t"), (Text("t"),)),
        (PICTURE, (PICTURE,)),
        (["see", PICTURE], (Text("see"), PICTURE)),
        (Odd(), (Text('"odd"'),)),
        ("a\ud83d", (Text("a?"),)),
        (["\ud83d"], (Text('["?"]'),)),
    ],
)
def test_every_kind_of_value_is_content_for_the_model(value: Any, content: tuple[Any, ...]) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    outcome = run(give)
    assert (outcome.content, outcome.error) == (content, None)


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


class Shapeless:
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("value", [CIRCLE, {(1, 2): 3}, Shapeless(), [PICTURE, 3]], ids=type_name)
def test_a_value_that_is_no_content_is_a_failure_of_the_tool(value: Any) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    outcome = run(give)
    assert text(outcome).startswith("give failed: ")
    assert outcome.error is not None


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError("no disk"), "fails failed: OSError: no disk"),
        (KeyError("a"), "fails failed: KeyError: 'a'"),
        (ValueError("bad value"), "fails failed: ValueError: bad value"),
        (StopIteration(), "fails failed: StopIteration: "),
        (AssertionError("a\ud83d"), "fails failed: AssertionError: a?"),
        (Unspeakable(), "fails failed: Unspeakable"),
    ],
    ids=type_name,
)
def test_a_tool_that_raises_is_a_text_for_the_model_and_the_error_is_kept(error: Exception, told: str) -> None:
    @tool
    def fails() -> None:
        """Fail."""
        raise error

    outcome = run(fails)
    assert text(outcome).startswith(told)
    assert outcome.error is error


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_ends_the_tool_too(kind: type[BaseException]) -> None:
    @tool
    def leave() -> None:
        """Leave."""
        raise kind

    with pytest.raises(kind):
        run(leave)


# ---- approval


@pytest.fixture
def erased() -> list[str]:
    return []


@pytest.fixture
def erase(erased: list[str]) -> Tool:
    def erase(path: str) -> str:
        """Erase."""
        erased.append(path)
        return "erased"

    return tool(needs_approval=True)(erase)


def test_a_tool_that_needs_approval_is_asked_for_with_the_call_and_run_when_allowed(erase: Tool, erased: Any) -> None:
    asked: list[ToolCall] = []

    def approve(called: ToolCall) -> bool:
        asked.append(called)
        return True

    assert text(run(erase, {"path": "/"}, approve)) == "erased"
    assert ([called.arguments for called in asked], erased) == (['{"path": "/"}'], ["/"])


@pytest.mark.parametrize("answer", [False, None, 0, ""])
def test_a_refused_call_is_not_run_and_the_model_is_told(erase: Tool, erased: list[str], answer: Any) -> None:
    outcome = run(erase, {"path": "/"}, lambda called: answer)
    assert "The user did not allow this call of erase" in text(outcome)
    assert (type(outcome.error), erased) == (PermissionError, [])


def test_a_call_is_not_run_when_asking_fails(erase: Tool, erased: list[str]) -> None:
    def approve(called: ToolCall) -> bool:
        raise EOFError("nobody is there")

    outcome = run(erase, {"path": "/"}, approve)
    assert "nobody is there" in text(outcome)
    assert (type(outcome.error), erased) == (EOFError, [])


def test_a_call_is_not_run_when_there_is_nobody_to_ask(erase: Tool, erased: list[str]) -> None:
    assert isinstance(run(erase, {"path": "/"}, None).error, PermissionError)
    assert erased == []


def test_nobody_is_asked_about_a_call_with_bad_arguments(erase: Tool) -> None:
    def approve(called: ToolCall) -> bool:
        raise AssertionError("nobody is to be asked")

    assert "Field required" in text(run(erase, {}, approve))
