"""Reading what a server sent without trusting its shape, and writing JSON that every server reads. Pure."""

from __future__ import annotations

import json
from typing import Any

from steerkit.core.message import ToolCall


def parse_object(data: str) -> dict[str, Any] | None:
    """The JSON object in `data`; None for anything else, such as `[DONE]` or a text that was cut."""
    try:
        value = json.loads(data, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def as_text(value: Any) -> str:
    """A str that can be encoded: surrogate pairs joined, lone ones replaced by U+FFFD; "" for what is no str."""
    if not isinstance(value, str):
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON.

    Raises:
        ValueError: it holds NaN or an infinity, which is no JSON.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments as a request may hold them: {} when they are no JSON object, which servers refuse in a history."""
    try:
        arguments = call.parse()
        dumps(arguments)
    except (ValueError, RecursionError):
        return {}
    return arguments
