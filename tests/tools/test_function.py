"""@tool: a schema from type hints and a docstring."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Annotated, Any, Literal, Optional

import pydantic
import pytest
from typing_extensions import TypedDict

from steerkit import tool
from tests.tools.tool_calls import run, text


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(pydantic.BaseModel):
    x: int
    y: int = 0


@dataclasses.dataclass
class Size:
    width: int
    unit: str = "cm"


class Options(TypedDict, total=False):
    deep: bool


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Any, {}),
        (Annotated[int, pydantic.Field(ge=1)], {"type": "integer", "minimum": 1}),
    ],
)
def test_a_hint_becomes_the_schema_of_its_parameter(hint: Any, schema: dict[str, Any]) -> None:
    def look(at):
        """Look."""

    look.__annotations__ = {"at": hint}
    assert tool(look).parameters == {
        "type": "object",
        "properties": {"at": schema},
        "required": ["at"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("hint", "given", "received"),
    [
        (Point, {"x": 1}, Point(x=1)),
        (Size, {"width": 3}, Size(3)),
        (Options, {"deep": True}, {"deep": True}),
        (Colour, "red", Colour.RED),
        (list[Point], [{"x": 1, "y": 2}], [Point(x=1, y=2)]),
        (dict[str, Size], {"a": {"width": 1, "unit": "m"}}, {"a": Size(1, "m")}),
        (Point | None, None, None),
    ],
)
def test_a_nested_argument_reaches_the_function_as_its_type(hint: Any, given: Any, received: Any) -> None:
    got: list[Any] = []

    def look(at):
        got.append(at)

    look.__annotations__ = {"at": hint}
    assert run(tool(look), {"at": given}).error is None
    assert got == [received]


def test_a_tool_without_parameters_has_an_object_of_no_properties() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    assert look.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert text(run(look, "")) == "seen"


def test_a_parameter_with_a_default_may_be_left_out_and_the_functions_own_default_is_used() -> None:
    shared: list[int] = []

    @tool
    def look(at: list[int] = shared, deep: bool = False) -> str:
        """Look."""
        return f"{at is shared} {deep}"

    assert "required" not in look.parameters
    assert look.parameters["properties"]["deep"]["default"] is False
    assert text(run(look)) == "True False"


def test_a_default_that_json_cannot_hold_is_left_out_of_the_schema_without_a_warning() -> None:
    missing = object()

    @tool
    def look(at: int = missing) -> str:  # type: ignore[assignment]
        """Look."""
        return f"{at is missing}"

    assert look.parameters["properties"]["at"] == {"type": "integer"}
    assert text(run(look)) == "True"


def test_a_schema_repeats_no_name_as_a_title() -> None:
    @tool
    def look(at: Point, deep: bool) -> None:
        """Look."""

    assert "title" not in look.parameters
    assert "title" not in look.parameters["properties"]["deep"]
    assert "title" not in look.parameters["$defs"]["Point"]["properties"]["x"]


@pytest.mark.parametrize(
    "docstring",
    [
        "Look.\n\nArgs:\n    at: where to look\n",
        "Look.\n\nParameters\n----------\nat : str\n    where to look\n",
        "Look.\n\n:param at: where to look\n",
    ],
    ids=["Google", "NumPy", "reST"],
)
def test_a_description_comes_from_the_docstring_and_is_no_part_of_the_tools_own(docstring: str) -> None:
    def look(at: str) -> None: ...

    look.__doc__ = docstring
    made = tool(look)
    assert made.parameters["properties"]["at"]["description"] == "where to look"
    assert made.description == "Look."


def test_an_annotated_text_is_the_description_before_that_of_the_docstring() -> None:
    @tool
    def look(at: Annotated[str, "the file"], line: Annotated[int, pydantic.Field(description="the line")]) -> None:
        """Look.

        Args:
            at: where
            line: which
        """

    properties = look.parameters["properties"]
    assert [properties[name]["description"] for name in ("at", "line")] == ["the file", "the line"]


def test_an_annotated_constraint_without_a_text_leaves_the_docstrings_description() -> None:
    @tool
    def look(line: Annotated[int, pydantic.Field(ge=1)]) -> None:
        """Look.

        Args:
            line: which
        """

    assert look.parameters["properties"]["line"] == {"type": "integer", "minimum": 1, "description": "which"}


def test_the_whole_docstring_before_its_sections_describes_the_tool() -> None:
    @tool
    def look() -> None:
        """Look at it.

        Never twice.

        Returns:
            Nothing.
        """

    assert look.description == "Look at it.\n\nNever twice."


def test_a_tool_may_have_another_name_than_its_function() -> None:
    @tool(name="look-up", needs_approval=True)
    def look() -> None:
        """Look."""

    assert (look.name, look.needs_approval) == ("look-up", True)


def test_parameters_may_have_names_that_a_schema_library_uses_itself() -> None:
    @tool
    def look(
        json: str, schema: int, model_config: str, model_fields: str, _x: int, copy: int, self: str, cls: str, f0: int
    ) -> list[Any]:
        """Look."""
        return [json, schema, model_config, model_fields, _x, copy, self, cls, f0]

    names = ["json", "schema", "model_config", "model_fields", "_x", "copy", "self", "cls", "f0"]
    assert list(look.parameters["properties"]) == names
    values = ["a", 1, "b", "c", 2, 3, "d", "e", 4]
    assert text(run(look, dict(zip(names, values, strict=True)))) == json.dumps(values)
