"""What OpenAI's two formats share: the shape of errors, the rules for tools."""

from __future__ import annotations

import re
from typing import Any

from steerkit.testing.dialects.dialect import Body, kind_name, require

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MOST_TOOLS = 128
_ERROR_TYPES = {401: "invalid_request_error", 403: "insufficient_permissions", 429: "rate_limit_exceeded"}


def error(status: int, message: str, param: str | None = None, code: str | None = None) -> Body:
    kind = _ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def check_model(body: Any) -> None:
    require(isinstance(body, dict), "We could not parse the JSON body of your request: it is no object.")
    require("model" in body, "Missing required parameter: 'model'.", param="model", code="missing_required_parameter")
    require(isinstance(body["model"], str) and body["model"], "you must provide a model parameter", param="model")
    require(
        isinstance(body.get("stream", False), bool),
        f"Invalid type for 'stream': expected a boolean, but got {kind_name(body.get('stream'))} instead.",
        param="stream",
        code="invalid_type",
    )


def check_tools(body: Body, *, nested: bool) -> None:
    """`nested`: a tool's name and schema stand in its `function`, as chat completions want it."""
    tools = body.get("tools")
    if tools is None:
        for name in ("tool_choice", "parallel_tool_calls"):
            require(
                name not in body,
                f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.",
                param=name,
            )
        return
    _check_length("tools", tools, _MOST_TOOLS)
    for index, tool in enumerate(tools):
        _check_tool(tool, f"tools[{index}]", nested)


def check_filled(name: str, value: object) -> None:
    """Refuse what is no array, or an empty one."""
    require(
        isinstance(value, list),
        f"Invalid type for '{name}': expected an array of objects, but got {kind_name(value)} instead.",
        param=name,
        code="invalid_type",
    )
    require(
        value,
        f"Invalid '{name}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        param=name,
        code="empty_array",
    )


def check_string(name: str, value: object) -> None:
    require(
        isinstance(value, str),
        f"Invalid type for '{name}': expected a string, but got {kind_name(value)} instead.",
        param=name,
        code="invalid_type",
    )


def check_call_id(name: str, value: object) -> None:
    check_string(name, value)
    length = len(str(value))
    require(value, f"Invalid '{name}': empty string. Expected a string with minimum length 1.", param=name)
    require(
        length <= 40,
        f"Invalid '{name}': string too long. Expected a string with maximum length 40, but got a string with length "
        f"{length} instead.",
        param=name,
        code="string_above_max_length",
    )


def _check_length(name: str, value: Any, most: int) -> None:
    check_filled(name, value)
    require(
        len(value) <= most,
        f"Invalid '{name}': array too long. Expected an array with maximum length {most}, but got an array with "
        f"length {len(value)} instead.",
        param=name,
        code="array_above_max_length",
    )


def _check_tool(tool: Any, path: str, nested: bool) -> None:
    require(
        isinstance(tool, dict) and tool.get("type") == "function",
        f"Invalid value: {path}.type. Supported values are: 'function'.",
        param=f"{path}.type",
        code="invalid_value",
    )
    path, tool = (f"{path}.function", tool.get("function")) if nested else (path, tool)
    require(
        isinstance(tool, dict) and "name" in tool,
        f"Missing required parameter: '{path}.name'.",
        param=f"{path}.name",
        code="missing_required_parameter",
    )
    name = tool["name"]
    require(
        isinstance(name, str) and _NAME.fullmatch(name),
        f"Invalid '{path}.name': string does not match pattern. Expected a string that matches the pattern "
        "'^[a-zA-Z0-9_-]+$'.",
        param=f"{path}.name",
        code="invalid_value",
    )
    schema = tool.get("parameters")
    if schema is not None:
        kind = schema.get("type") if isinstance(schema, dict) else schema
        require(
            isinstance(schema, dict) and kind == "object" and isinstance(schema.get("properties", {}), dict),
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got "
            f"'type: {kind!r}'.",
            param=f"{path}.parameters",
            code="invalid_function_parameters",
        )
