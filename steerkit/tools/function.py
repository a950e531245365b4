"""@tool: a tool from a function's type hints and docstring, with pydantic for the schema.

The libraries are loaded when the first function is decorated, not by `import steerkit`.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, overload

from steerkit.core.tool import Tool, context_parameter

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.errors import PydanticUserError


@overload
def tool(function: Callable[..., Any]) -> Tool: ...
@overload
def tool(*, name: str | None = None, needs_approval: bool = False) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, *, name: str | None = None, needs_approval: bool = False
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: `@tool`, or `@tool(needs_approval=True)`.

    Its name and docstring tell the model what it is for. Every parameter needs a type hint: whatever pydantic
    understands (optional, nested models and dataclasses, enums, literals, lists, defaults). A description comes from
    `Annotated[str, "what it is"]`, else from the docstring's section on the parameter (Google, NumPy or reST style).
    A parameter typed `ToolContext` is filled in when the tool runs, and not shown to the model.

    The tool can still be called like the function.

    Args:
        function: what to call.
        name: what the model calls it, instead of the function's name.
        needs_approval: ask `Spec.approve` before each call.

    Raises:
        TypeError: a parameter has no type hint, or one without a JSON schema.
    """
    if function is None:
        return lambda decorated: _make_tool(decorated, name, needs_approval)
    return _make_tool(function, name, needs_approval)


def _make_tool(function: Callable[..., Any], name: str | None, needs_approval: bool) -> Tool:
    import docstring_parser

    if not callable(function):
        raise TypeError(f"@tool decorates a function, not {function!r}.")
    code = _code(function)
    name = name or str(code.__name__ if code.__name__ != "__call__" else type(function).__name__)
    documentation = docstring_parser.parse(inspect.getdoc(code) or "")
    described = {parameter.arg_name: parameter.description or "" for parameter in documentation.params}
    model = _arguments_model(function, name, described)
    return Tool(
        name=name,
        description=(documentation.description or "").strip(),
        parameters=_schema(model, name),
        function=function,
        needs_approval=needs_approval,
        validate=_validator(model),
    )


def _code(function: Callable[..., Any]) -> Any:
    """What has the hints and the docstring: of a `functools.partial`, the function in it; of an object, its call."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _arguments_model(function: Callable[..., Any], name: str, described: Mapping[str, str]) -> type[BaseModel]:
    """A pydantic model whose fields are the parameters.

    The fields are called f0, f1, ... and the parameters' names are their aliases: so a parameter may be named `json`,
    `model_config` or `_private` too.
    """
    import pydantic

    hints = _hints(function, name)
    hidden = context_parameter(function)
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.name == hidden:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"The tool {name!r}: a model gives arguments by name, so {parameter} cannot be filled.")
        if parameter.name not in hints:
            raise TypeError(
                f"The tool {name!r}: the parameter {parameter.name!r} has no type hint, so it has no schema. "
                "Add one; of a method, make the tool when it is bound: tool(self.method)."
            )
        hint, description = _description(hints[parameter.name], described.get(parameter.name))
        default = ... if parameter.default is parameter.empty else parameter.default
        # Not `description=None`, which would take away the description of a Field in the hint.
        described_as: dict[str, Any] = {"description": description} if description else {}
        fields[f"f{number}"] = (hint, pydantic.Field(default, alias=parameter.name, **described_as))
    try:
        config = pydantic.ConfigDict(extra="forbid", validate_default=False, arbitrary_types_allowed=False)
        return pydantic.create_model(name, __config__=config, **fields)
    except pydantic.errors.PydanticUserError as error:
        raise _no_schema(name, error) from None


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(_code(function), include_extras=True)
    except NameError as error:
        raise TypeError(f"The tool {name!r}: a type hint cannot be found where it is defined: {error}.") from None


def _description(hint: Any, documented: str | None) -> tuple[Any, str | None]:
    """The hint, and the text of `Annotated[..., "text"]` or else what the docstring says."""
    if typing.get_origin(hint) is Annotated:
        texts = [extra for extra in typing.get_args(hint)[1:] if isinstance(extra, str)]
        if texts:
            return hint, " ".join(texts)
        # A Field(description=...) among the extras stands, unless it says nothing.
        if any(getattr(extra, "description", None) for extra in typing.get_args(hint)[1:]):
            return hint, None
    return hint, documented or None


def _no_schema(name: str, error: PydanticUserError) -> TypeError:
    # What follows its first sentence is advice for pydantic's own users.
    return TypeError(
        f"The tool {name!r}: no schema can be made of its type hints. {error.message.split('. ')[0].rstrip('.')}."
    )


def _schema(model: type[BaseModel], name: str) -> dict[str, Any]:
    import pydantic
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Titles repeat the names; they cost tokens and tell nothing."""

        def field_title_should_be_set(self, _schema: Any) -> bool:
            return False

        def emit_warning(self, _kind: str, _detail: str) -> None:
            """A default that JSON cannot hold is left out of the schema; it is the function's own business."""

    try:
        schema = model.model_json_schema(by_alias=True, schema_generator=Untitled)
    except pydantic.errors.PydanticUserError as error:
        raise _no_schema(name, error) from None
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _validator(model: type[BaseModel]) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    import pydantic

    names = {field: info.alias or field for field, info in model.model_fields.items()}

    def validate(arguments: dict[str, Any]) -> Mapping[str, Any]:
        try:
            values = model.model_validate(arguments)
        except pydantic.ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors()
            )
            raise ValueError(f"The arguments do not fit the schema. {faults}.") from None
        # What the model left out is left to the function's own defaults.
        return {names[field]: getattr(values, field) for field in values.model_fields_set}

    return validate
