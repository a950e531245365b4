"""Anthropic Messages: a message as content blocks, each encoded once and kept in the message's memo. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from steerkit.core.message import Image, Message, Part, Text
from steerkit.models.lenient import arguments_of, dumps
from steerkit.models.shaping import NO_OUTPUT

_THINKING = ("thinking", "redacted_thinking")


def blocks_of(message: Message) -> bytes:
    """The content blocks of a message, with commas between."""
    made = message.memo.get("anthropic blocks")
    if made is None:
        made = b",".join(map(dumps, _content(message)))
        message.memo["anthropic blocks"] = made
    assert isinstance(made, bytes)
    return made


def _content(message: Message) -> list[dict[str, Any]]:
    blocks = _parts(message.content)
    if message.role == "tool":
        content: Any = blocks if message.has_image else message.text
        if not message.has_image and not message.text.strip():
            content = NO_OUTPUT
        return [{"type": "tool_result", "tool_use_id": _legal_id(message.tool_call_id or ""), "content": content}]
    return blocks + [
        {"type": "tool_use", "id": _legal_id(call.id), "name": call.name, "input": arguments_of(call)}
        for call in message.tool_calls
    ]


def _parts(parts: Iterable[Part]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Image):
            data = base64.b64encode(part.data).decode()
            source = {"type": "base64", "media_type": part.media_type, "data": data}
            blocks.append({"type": "image", "source": source})
        elif part.text.strip():  # a blank text block is refused
            blocks.append({"type": "text", "text": part.text})
    return blocks


def _legal_id(call_id: str) -> str:
    """The id, or for another provider's with characters that this one refuses, one that is always made of it."""
    if re.fullmatch(r"[a-zA-Z0-9_-]+", call_id):
        return call_id
    return f"toolu_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:16]}"


def echoed_blocks(message: Message, *, thinking: bool) -> bytes:
    """The blocks as the model made them, if they still are those of the message: a pattern may have changed it."""
    key = ("anthropic echo", thinking)
    made = message.memo.get(key)
    if made is None:
        assert message.echo is not None
        blocks = json.loads(message.echo.json)["content"]
        if _same_content(message, blocks):
            made = b",".join(dumps(_legal(block)) for block in blocks if thinking or block["type"] not in _THINKING)
        else:
            made = blocks_of(message)
        message.memo[key] = made
    assert isinstance(made, bytes)
    return made


def _same_content(message: Message, blocks: Iterable[dict[str, Any]]) -> bool:
    said = "".join(block["text"] for block in blocks if block["type"] == "text")
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    shown = "".join(part.text for part in message.content if isinstance(part, Text) and part.text.strip())
    return said == shown and called == [call.id for call in message.tool_calls]


def _legal(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "id": _legal_id(block["id"])} if block["type"] == "tool_use" else block
