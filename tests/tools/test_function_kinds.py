"""What @tool can be put on, what it refuses, and the parameter that it fills in itself."""

from __future__ import annotations

import functools
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Optional

import pytest

import steerkit
from steerkit import Tool, ToolContext, tool
from steerkit import ToolContext as Context
from steerkit.core.cancel import Cancellation
from tests.tools.tool_calls import run, text

if typing.TYPE_CHECKING:
    from decimal import Decimal


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
