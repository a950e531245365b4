"""What Anthropic messages refuse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steerkit.testing.dialects.dialect import Body, require

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")

# Which blocks a message of this role may hold.
_BLOCKS = {
    "user": ("text", "image", "document", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use"),
    "system": ("text",),
}


def check(body: Any, headers: Mapping[str, str], _strict: str | None) -> None:
    """Raises: Refused."""
    version = headers.get("anthropic-version")
    require(version, "anthropic-version: header is required")
    require(isinstance(body, dict), "The request body is not valid JSON: expected an object.")
    for name in ("model", "max_tokens", "messages"):
        require(name in body, f"{name}: Field required")
    require(isinstance(body["model"], str) and body["model"], "model: String should have at least 1 character")
    most = body["max_tokens"]
    require(isinstance(most, int) and not isinstance(most, bool), "max_tokens: Input should be a valid integer")
    require(most >= 1, "max_tokens: Input should be greater than or equal to 1")
    for name in ("temperature", "top_p", "top_k") if version == "2026-10-21" else ():
        require(name not in body, f"{name}: not supported from anthropic-version 2026-10-21 on")
    _check_tools(body)
    _check_system(body.get("system"))
    _check_messages(body)
    _check_cache_marks(body)


def _check_tools(body: Body) -> None:
    tools = body.get("tools")
    if tools is None:
        require("tool_choice" not in body, "tool_choice may only be specified while providing tools")
        return
    require(isinstance(tools, list), "tools: Input should be a valid list")
    for index, tool in enumerate(tools):
        path = f"tools.{index}.custom"
        require(isinstance(tool, dict), f"{path}: Input should be a valid dictionary")
        name, schema = tool.get("name"), tool.get("input_schema")
        require(
            isinstance(name, str) and _NAME.fullmatch(name),
            f"{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
        )
        require("input_schema" in tool, f"{path}.input_schema: Field required")
        require(
            isinstance(schema, dict) and schema.get("type") == "object",
            f"{path}.input_schema.type: Input should be 'object'",
        )
        require("function" not in tool, f"{path}.function: Extra inputs are not permitted")


def _check_system(system: Any) -> None:
    if isinstance(system, list):
        for index, block in enumerate(system):
            _check_block(block, f"system.{index}", ("text",))
    else:
        require(system is None or isinstance(system, str), "system: Input should be a valid string or list")


def _check_messages(body: Body) -> None:
    messages = body["messages"]
    require(isinstance(messages, list), "messages: Input should be a valid list")
    require(messages, "messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(message, f"messages.{index}")
    require(messages[0]["role"] != "assistant", 'messages: first message must use the "user" role')
    require(
        messages[-1]["role"] != "assistant",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )
    _check_system_messages(messages)
    _check_pairs(messages)
    used = any(block["type"] in ("tool_use", "tool_result") for message in messages for block in _blocks(message))
    require(
        not used or body.get("tools"), "Requests which include `tool_use` or `tool_result` blocks must define `tools`."
    )


def _check_message(message: Any, path: str) -> None:
    require(isinstance(message, dict), f"{path}: Input should be a valid dictionary")
    role, content = message.get("role"), message.get("content")
    require(
        isinstance(role, str) and role in _BLOCKS,
        f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant". For a system prompt use the '
        "top-level `system` parameter.",
    )
    for name in message:
        require(name in ("role", "content"), f"{path}.{name}: Extra inputs are not permitted")
    require(isinstance(content, (str, list)), f"{path}.content: Input should be a valid string or list")
    require(content, f"{path}: {role} messages must have non-empty content")
    for index, block in enumerate(_blocks(message)):
        _check_block(block, f"{path}.content.{index}", _BLOCKS[role])


def _blocks(message: Body) -> list[Body]:
    content = message["content"]
    blocks: list[Body] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return blocks


def _check_block(block: Any, path: str, allowed: tuple[str, ...]) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    tags = ", ".join(map(repr, allowed))
    require(
        kind in allowed, f"{path}: Input tag {kind!r} found using 'type' does not match any of the expected: {tags}"
    )
    if kind == "text":
        require(isinstance(block.get("text"), str), f"{path}.text.text: Input should be a valid string")
        require(block["text"], "messages: text content blocks must be non-empty")
        require(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
    elif kind == "tool_use":
        _check_id(block.get("id"), f"{path}.tool_use.id")
        require(isinstance(block.get("name"), str), f"{path}.tool_use.name: Input should be a valid string")
        require(isinstance(block.get("input"), dict), f"{path}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        _check_id(block.get("tool_use_id"), f"{path}.tool_result.tool_use_id")
        content = block.get("content", [])
        require(isinstance(content, (str, list)), f"{path}.tool_result.content: Input should be a valid string or list")
        for index, part in enumerate(content if isinstance(content, list) else ()):
            _check_block(part, f"{path}.tool_result.content.{index}", ("text", "image", "document"))
    elif kind == "image":
        require(isinstance(block.get("source"), dict), f"{path}.image.source: Field required")
    elif kind == "thinking":
        require(isinstance(block.get("signature"), str), f"{path}.thinking.signature: Field required")


def _check_id(value: object, path: str) -> None:
    require(isinstance(value, str) and _ID.fullmatch(value), f"{path}: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _check_system_messages(messages: list[Body]) -> None:
    for index, message in enumerate(messages):
        if message["role"] != "system":
            continue
        path = f"messages.{index}"
        before = messages[index - 1]["role"] if index else None
        after = messages[index + 1]["role"] if index + 1 < len(messages) else None
        require(before is not None, f"{path}: a system message cannot be the first message")
        require(before != "system", f"{path}: consecutive system messages are not allowed")
        require(before == "user", f"{path}: a system message must follow a user message")
        require(
            after != "user", f"{path}: a system message must be the last message or be followed by an assistant message"
        )


def _check_pairs(messages: list[Body]) -> None:
    asked: list[str] = []
    for index, message in enumerate([*messages, {"role": "user", "content": "end"}]):
        blocks = _blocks(message)
        leading = 0
        while leading < len(blocks) and blocks[leading]["type"] == "tool_result":
            leading += 1
        answered = [block["tool_use_id"] for block in blocks[:leading]]
        missing = [call_id for call_id in asked if call_id not in answered]
        require(
            not missing,
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message.",
        )
        for place, block in enumerate(blocks):
            if block["type"] == "tool_result":
                require(
                    block["tool_use_id"] in asked and place < leading,
                    f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block in "
                    "the previous message.",
                )
        for call_id in asked:
            require(
                answered.count(call_id) == 1,
                f"messages.{index}.content: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {call_id}",
            )
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    ids = [block["id"] for message in messages for block in _blocks(message) if block["type"] == "tool_use"]
    require(len(set(ids)) == len(ids), "messages: `tool_use` ids must be unique")


def _check_cache_marks(body: Body) -> None:
    blocks = [block for message in body["messages"] for block in _blocks(message)]
    for name in ("tools", "system"):
        blocks += body[name] if isinstance(body.get(name), list) else []
    marks = sum("cache_control" in block for block in blocks) + ("cache_control" in body)
    require(marks <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
