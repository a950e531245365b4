"""Tools: what a model may ask to be run. A tool that fails is text for the model, never an exception."""

from __future__ import annotations

import enum
import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from steerkit.core.cancel import Cancelled, Flag
from steerkit.core.errors import described
from steerkit.core.message import Image, Message, Part, Text, ToolCall, parts, tool_result


@frozen(eq=False)
class ToolContext:
    """What a running tool may look at: give it a parameter typed `ToolContext`, which the model does not see.

    Attributes:
        call: the call that it answers.
        cancelled: true once the run was cancelled: what the tool returns now goes to nobody.
        steer_pending: true while somebody's steer waits for this tool to end.

    Both are true or false (`if context.cancelled:`) and can be waited for, each (`context.cancelled.wait(1.0)`) or
    together (`context.wait(1.0)`).
    """

    call: ToolCall
    cancelled: Flag
    steer_pending: Flag

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep `timeout` seconds, or until the user says something or the run is cancelled; whether one did."""
        return self.steer_pending.wait(timeout, also=self.cancelled)


Validate = Callable[[dict[str, Any]], Mapping[str, Any]]


@frozen(eq=False)
class Tool:
    """A function that the model may call. `@tool` makes one from type hints; this is for a hand-made schema.

    Attributes:
        name: 1 to 64 letters, digits, `_` or `-`.
        description: what the model reads to choose it.
        parameters: the JSON schema of its arguments, an object.
        function: called with the arguments by name.
        needs_approval: ask `Spec.approve` before each call.
        validate: the arguments as the model gave them to those for the function, or ValueError with a sentence
            for the model. None: the runner checks them against `parameters`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any] = field()
    needs_approval: bool = False
    validate: Validate | None = field(default=None, repr=False)
    _context_parameter: str | None = field(init=False, repr=False)

    @_context_parameter.default
    def _find_context_parameter(self) -> str | None:
        return context_parameter(self.function)

    @function.validator
    def _check_function(self, _attribute: object, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"The tool {self.name!r}: its function is {function!r}, which cannot be called.")
        kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
        if any(is_kind(code) for is_kind in kinds for code in (function, type(function).__call__)):
            raise TypeError(
                f"The tool {self.name!r} is async or a generator, so the model would read the name of an object "
                "instead of a result: make it a plain function that returns."
            )

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the function with validated arguments, and with the context if it wants one."""
        if self._context_parameter:
            arguments = {**arguments, self._context_parameter: context}
        return self.function(**arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, as if it were not a tool."""
        return self.function(*args, **kwargs)


@frozen
class Outcome:
    """What a call came to: the content for the model, and the error if it did not do what was asked."""

    content: tuple[Part, ...]
    error: BaseException | None = None

    def message(self, call: ToolCall) -> Message:
        return tool_result(call.id, self.content)


def run_tool(
    tools: Sequence[Tool], call: ToolCall, approve: Callable[[ToolCall], bool] | None, context: ToolContext
) -> Outcome:
    """Run what `call` asks for. Every fault of the model or of the tool comes back as an Outcome.

    `Cancelled` and every other BaseException that is no Exception passes through.
    """
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        known = ", ".join(tool.name for tool in tools) or "none"
        return _failed(LookupError(f"There is no tool named {call.name!r}. The tools are: {known}."))
    try:
        arguments = tool.validate(call.parse()) if tool.validate else call.parse()
    except Exception as error:
        return _failed(error, "" if isinstance(error, ValueError) else f"{call.name} failed: {described(error)}")
    try:
        # Nothing but True allows: the "n" that somebody typed is true as well.
        if tool.needs_approval and not (approve and approve(call) is True):
            return _failed(PermissionError(f"The user did not allow this call of {call.name}. It was not run."))
    except Exception as error:
        return _failed(error, f"The user could not be asked about {call.name} ({described(error)}). It was not run.")
    if context.cancelled:  # by whoever was told of the call, or asked about it
        raise Cancelled
    try:
        return Outcome(_content(tool.run(arguments, context)))
    except Exception as error:
        return _failed(error, f"{call.name} failed: {described(error)}")


def _failed(error: Exception, text: str = "") -> Outcome:
    return Outcome(parts(_encodable(text or str(error))), error)


def _content(value: Any) -> tuple[Part, ...]:
    """What a tool returned, as the model reads it: text and images as they are, anything else as JSON."""
    if value is None:
        return ()
    if isinstance(value, str):
        return parts(_encodable(value))
    if isinstance(value, (Text, Image)):
        return (value,)
    if isinstance(value, (list, tuple)) and any(isinstance(item, (Text, Image)) for item in value):
        return parts(value)
    return parts(_encodable(json.dumps(value, ensure_ascii=False, default=_plain)))


def _plain(value: Any) -> Any:
    """What JSON does not know: models, dataclasses and attrs classes by their fields, an enum by its value."""
    dump = getattr(value, "model_dump", None)  # pydantic
    if callable(dump):
        return dump(mode="json")
    fields = getattr(value, "__dataclass_fields__", None) or {
        each.name: each for each in getattr(value, "__attrs_attrs__", ())
    }
    if fields:
        return {name: getattr(value, name) for name in fields}
    if isinstance(value, (set, frozenset)):
        return list(value)
    return value.value if isinstance(value, enum.Enum) else str(value)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def context_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the parameter typed `ToolContext` or `ToolContext | None`, if there is one."""
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except (TypeError, ValueError):
        return None
    except Exception:  # a hint that cannot be evaluated leaves all of them as text
        parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        hint = parameter.annotation
        if isinstance(hint, str) and re.search(r"\bToolContext\b", hint):
            return parameter.name
        if ToolContext in (hint, *typing.get_args(hint)):
            return parameter.name
    return None
