"""What OpenAI responses refuse, and DeepSeek's of the same format: it wants calls and outputs side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerkit.testing.dialects.dialect import Body, require
from steerkit.testing.dialects.openai import check_call_id, check_filled, check_model, check_string, check_tools

_ITEMS = ("message", "function_call", "function_call_output", "reasoning")
_PARTS = {
    "user": ("input_text", "input_image"),
    "system": ("input_text",),
    "developer": ("input_text",),
    "assistant": ("output_text", "refusal"),
}
_MOVED = {"messages": "input", "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}


def check(body: Any, _headers: Mapping[str, str], _strict: str | None) -> None:
    """Raises: Refused."""
    check_model(body)
    for name, place in _MOVED.items():
        require(
            name not in body,
            f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{place}'.",
            param=name,
            code="unsupported_parameter",
        )
    require("input" in body, "Missing required parameter: 'input'.", param="input", code="missing_required_parameter")
    check_tools(body, nested=False)
    if isinstance(body["input"], str):
        return
    check_filled("input", body["input"])
    for index, item in enumerate(body["input"]):
        _check_item(item, f"input[{index}]")
    _check_reasoning(body["input"])
    _check_pairs(body["input"])


def _kind(item: Body) -> str:
    return str(item.get("type", "message"))


def _check_item(item: Any, path: str) -> None:
    require(isinstance(item, dict), f"Invalid type for '{path}': expected an object.", param=path, code="invalid_type")
    kind = _kind(item)
    supported = ", ".join(map(repr, _ITEMS))
    require(
        kind in _ITEMS,
        f"Invalid value: {kind!r}. Supported values are: {supported}.",
        param=f"{path}.type",
        code="invalid_value",
    )
    if kind == "message":
        _check_message(item, path)
    elif kind == "function_call":
        check_call_id(f"{path}.call_id", item.get("call_id"))
        check_string(f"{path}.name", item.get("name"))
        check_string(f"{path}.arguments", item.get("arguments"))
    elif kind == "function_call_output":
        check_call_id(f"{path}.call_id", item.get("call_id"))
        _check_output(item.get("output"), f"{path}.output")
    else:
        require("summary" in item, f"Missing required parameter: '{path}.summary'.", param=f"{path}.summary")


def _check_message(item: Body, path: str) -> None:
    role, content = item.get("role"), item.get("content")
    supported = ", ".join(map(repr, _PARTS))
    require(
        isinstance(role, str) and role in _PARTS,
        f"Invalid value: {role!r}. Supported values are: {supported}.",
        param=f"{path}.role",
        code="invalid_value",
    )
    for name in item:
        require(
            name in ("type", "role", "content", "id", "status", "phase"),
            f"Unknown parameter: '{path}.{name}'.",
            param=f"{path}.{name}",
            code="unknown_parameter",
        )
    path = f"{path}.content"
    if isinstance(content, str):
        require(content or role != "assistant", f"Invalid '{path}': empty string.", param=path)
        return
    check_filled(path, content)
    for index, part in enumerate(content or ()):
        _check_part(part, _PARTS[str(role)], f"{path}[{index}]")


def _check_part(part: Any, kinds: tuple[str, ...], path: str) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    supported = " and ".join(map(repr, kinds))
    require(
        kind in kinds,
        f"Invalid value: {kind!r}. Supported values are: {supported}.",
        param=path,
        code="invalid_value",
    )
    name = {"input_image": "image_url", "refusal": "refusal"}.get(str(kind), "text")
    check_string(f"{path}.{name}", part.get(name))


def _check_output(output: Any, path: str) -> None:
    if isinstance(output, str):
        return
    check_filled(path, output)
    for index, part in enumerate(output):
        _check_part(part, _PARTS["user"], f"{path}[{index}]")


def _check_reasoning(items: list[Body]) -> None:
    for index, item in enumerate(items):
        if _kind(item) != "reasoning":
            continue
        after = items[index + 1] if index + 1 < len(items) else {"role": "user"}
        require(
            _kind(after) in ("reasoning", "function_call") or after.get("role") == "assistant",
            f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.",
            param="input",
        )


def _check_pairs(items: list[Body]) -> None:
    called: set[str] = set()
    waiting: list[str] = []
    for item in [*items, {"type": "message"}]:
        kind = _kind(item)
        if kind == "function_call":
            require(item["call_id"] not in called, f"Duplicate call_id {item['call_id']!r} in 'input'.", param="input")
            called.add(item["call_id"])
            waiting.append(item["call_id"])
        elif kind == "function_call_output":
            require(
                item["call_id"] in waiting,
                f"No tool call found for function call output with call_id {item['call_id']}.",
                param="input",
            )
            waiting.remove(item["call_id"])
        elif kind == "message":
            require(not waiting, f"No tool output found for function call {', '.join(waiting)}.", param="input")
