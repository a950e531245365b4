"""@tool: a schema from type hints, arguments against it, and a text for the model whatever goes wrong."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal, Optional

import pydantic
import pytest
from typing_extensions import TypedDict

import steerkit
from steerkit import Image, Text, Tool, ToolCall, ToolContext, tool
from steerkit import ToolContext as Context
from steerkit.core.cancel import Cancellation
from steerkit.core.tool import Outcome, run_tool

if typing.TYPE_CHECKING:
    from decimal import Decimal


def run(used: Tool, arguments: Any = None, approve: Callable[[ToolCall], bool] | None = None) -> Outcome:
    """What a call of `used` comes to; the arguments are JSON text, or made so."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    called = ToolCall("c", used.name, text)
    flag = Cancellation().requested
    return run_tool([used], called, approve, ToolContext(called, flag, flag))


def text(outcome: Outcome) -> str:
    return outcome.message(ToolCall("c", "any")).text


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


# ---- the schema


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
    missing = object()

    @tool
    def look(at: int = missing, deep: bool = False) -> str:  # type: ignore[assignment]
        """Look."""
        return f"{at is missing} {deep}"

    assert "required" not in look.parameters
    assert look.parameters["properties"]["deep"]["default"] is False
    assert text(run(look)) == "True False"


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


# ---- what a tool may be made of


def test_a_tool_can_still_be_called_like_its_function() -> None:
    @tool
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    assert (add(1), add(1, b=2)) == (2, 3)


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, by: int) -> int:
        """Add to the count."""
        self.count += by
        return self.count

    def __call__(self, by: int, context: ToolContext) -> str:
        """Count on.

        Args:
            by: how far
        """
        return f"{context.call.id} {self.add(by)}"

    @staticmethod
    def zero(of: int = 0) -> int:
        """Start again."""
        return of

    @classmethod
    def kind(cls, of: int) -> str:
        """Tell."""
        return f"{cls.__name__} {of}"


def test_a_bound_method_is_a_tool() -> None:
    counter = Counter()
    add = tool(counter.add)
    assert (add.name, add.description, list(add.parameters["properties"])) == ("add", "Add to the count.", ["by"])
    assert (text(run(add, {"by": 2})), counter.count) == ("2", 2)


def test_a_method_that_is_not_bound_is_refused_with_the_cure() -> None:
    with pytest.raises(TypeError, match=r"'self' has no type hint.*tool\(self\.method\)"):
        tool(Counter.add)


def test_static_and_class_methods_are_tools() -> None:
    assert text(run(tool(Counter.zero), {"of": 3})) == "3"
    assert text(run(tool(Counter.kind), {"of": 3})) == "Counter 3"


def test_a_callable_object_is_a_tool_with_the_docstring_of_its_call() -> None:
    made = tool(Counter())
    assert (made.name, made.description) == ("Counter", "Count on.")
    assert made.parameters["properties"] == {"by": {"type": "integer", "description": "how far"}}
    assert text(run(made, {"by": 2})) == "c 2"


def test_of_a_partial_only_what_is_left_open_is_shown_and_can_be_changed() -> None:
    def look(root: str, at: str, deep: bool = False) -> str:
        """Look."""
        return f"{root}/{at} {deep}"

    made = tool(functools.partial(look, "/tmp", deep=True))
    assert (made.name, made.description) == ("look", "Look.")
    assert list(made.parameters["properties"]) == ["at", "deep"]
    assert made.parameters["required"] == ["at"]
    assert text(run(made, {"at": "x"})) == "/tmp/x True"


def test_a_decorated_function_is_a_tool_by_what_it_wraps() -> None:
    def plain(at: int) -> int:
        """Look."""
        return at

    @functools.wraps(plain)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return plain(*args, **kwargs) + 1

    assert text(run(tool(traced), {"at": 1})) == "2"


def _variadic(*at: int) -> None: ...
def _keywords(**at: int) -> None: ...
def _positional(at: int, /) -> None: ...
def _no_hint(at) -> None: ...
def _no_schema(at: Callable[[], int]) -> None: ...
def _foreign(at: Cancellation) -> None: ...
def _undefined(at: Decimal) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_variadic, r"gives arguments by name, so \*at"),
        (_keywords, r"gives arguments by name, so \*\*at"),
        (_positional, "gives arguments by name, so at"),
        (_no_hint, "the parameter 'at' has no type hint"),
        (_no_schema, "no schema can be made of its type hints"),
        (_foreign, r"no schema can be made of its type hints\. Unable to .*Cancellation'>\.$"),
        (_undefined, "a type hint cannot be found where it is defined: name 'Decimal'"),
        (3, "@tool decorates a function, not 3"),
        ("look", "@tool decorates a function"),
    ],
)
def test_what_no_schema_can_be_made_of_is_refused_when_it_is_decorated(function: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        tool(function)


async def _coroutine(at: int) -> int:
    return at


async def _async_generator(at: int) -> AsyncIterator[int]:
    yield at


def _generator(at: int) -> Iterator[int]:
    yield at


class _AsyncCall:
    async def __call__(self, at: int) -> int:
        return at

    async def method(self, at: int) -> int:
        return at


NO_RESULT = [_coroutine, _async_generator, _generator, functools.partial(_coroutine), _AsyncCall(), _AsyncCall().method]


@pytest.mark.parametrize("function", NO_RESULT)
def test_an_async_function_is_refused_because_its_result_would_be_a_coroutine(function: Any) -> None:
    with pytest.raises(TypeError, match="make it a plain function that returns"):
        tool(function)


@pytest.mark.parametrize("function", NO_RESULT)
def test_an_async_function_is_refused_in_a_hand_made_tool_too(function: Any) -> None:
    with pytest.raises(TypeError, match="is async or a generator"):
        Tool("look", "Look.", {"type": "object"}, function)


# ---- the context


def _text_hint(at: int, context: ToolContext) -> str:
    return f"{context.call.id} {at}"


def _qualified(at: int, context: steerkit.ToolContext) -> str:
    return f"{context.call.id} {at}"


def _alias(context: Context, at: int) -> str:
    return f"{context.call.id} {at}"


def _optional(at: int, context: ToolContext | None = None) -> str:
    return f"{context.call.id if context else None} {at}"


def _optional_alias(at: int, *, context: Optional[Context] = None) -> str:  # noqa: UP045
    return f"{context.call.id if context else None} {at}"


def _annotated(at: int, context: Annotated[ToolContext, "the context"]) -> str:
    return f"{context.call.id} {at}"


def _evaluated(at: int, context: Any) -> str:
    return f"{context.call.id} {at}"


_evaluated.__annotations__ = {"at": int, "context": ToolContext | None, "return": str}


@pytest.mark.parametrize(
    "function", [_text_hint, _qualified, _alias, _optional, _optional_alias, _annotated, _evaluated]
)
def test_a_context_parameter_is_filled_in_and_not_shown_to_the_model(function: Callable[..., str]) -> None:
    made = tool(function)
    assert list(made.parameters["properties"]) == ["at"]
    assert text(run(made, {"at": 1})) == "c 1"


def test_a_model_cannot_give_the_context_itself() -> None:
    outcome = run(tool(_optional), {"at": 1, "context": None})
    assert "context: Extra inputs are not permitted" in text(outcome)


def test_a_hand_made_tool_is_given_the_context_too() -> None:
    made = Tool("look", "Look.", {"type": "object", "properties": {"at": {"type": "integer"}}}, _text_hint)
    assert text(run(made, {"at": 1})) == "c 1"


def test_a_hint_that_cannot_be_evaluated_does_not_hide_the_context_of_a_hand_made_tool() -> None:
    def look(at: Decimal, context: ToolContext | None = None) -> str:
        return f"{context.call.id if context else None} {at}"

    made = Tool("look", "Look.", {"type": "object"}, look)
    assert text(run(made, {"at": 1})) == "c 1"


# ---- bad arguments


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
