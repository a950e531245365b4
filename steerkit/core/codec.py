"""Messages to JSON-ready dicts and back, so that a conversation can be kept in a file and go on from there."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from steerkit.core.message import Echo, Image, Message, Part, Text, ToolCall

FORMAT = 1


def dump_messages(messages: Iterable[Message]) -> dict[str, Any]:
    """`{"format": 1, "messages": [...]}`, ready for `json.dumps`."""
    return {"format": FORMAT, "messages": [message_to_dict(message) for message in messages]}


def load_messages(data: Mapping[str, Any]) -> tuple[Message, ...]:
    """The messages that `dump_messages` was given.

    Raises:
        ValueError: `data` is not of that form, or of a newer format than this steerkit knows.
    """
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, Mapping) else data
        raise ValueError(f"This is not a conversation of format {FORMAT} (found {found!r}), so it was not read.")
    if not isinstance(data.get("messages"), (list, tuple)):
        raise ValueError(f"A conversation of format {FORMAT} has a list of messages, and this has none.")
    return tuple(message_from_dict(item) for item in data["messages"])


def message_to_dict(message: Message) -> dict[str, Any]:
    """One message as a dict; what is empty is left out.

    Raises:
        TypeError: it is no Message.
    """
    if not isinstance(message, Message):
        raise TypeError(f"Only messages can be dumped, not {message!r}.")
    data: dict[str, Any] = {"role": message.role, "content": [_part_to_dict(part) for part in message.content]}
    if message.tool_calls:
        data["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.echo is not None:
        data["echo"] = {"origin": message.echo.origin, "json": message.echo.json}
    if message.meta:
        data["meta"] = {
            key: [_part_to_dict(part) for part in value] if key == "steer_content" else value
            for key, value in message.meta.items()
        }
    return data


def message_from_dict(data: Mapping[str, Any]) -> Message:
    """The message that `message_to_dict` was given.

    Raises:
        ValueError: `data` is not of that form.
    """
    try:
        return Message(
            role=data["role"],
            content=[_part_from_dict(part) for part in data["content"]],
            tool_calls=[ToolCall(call["id"], call["name"], call["arguments"]) for call in data.get("tool_calls", ())],
            tool_call_id=data.get("tool_call_id"),
            echo=Echo(**data["echo"]) if "echo" in data else None,
            meta={
                key: tuple(_part_from_dict(part) for part in value) if key == "steer_content" else value
                for key, value in data.get("meta", {}).items()
            },
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"This is not a message of format {FORMAT} ({error!r}), so it was not read.") from error


def _part_to_dict(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image", "data": base64.b64encode(part.data).decode(), "media_type": part.media_type}


def _part_from_dict(data: Mapping[str, Any]) -> Part:
    if data["type"] == "text":
        return Text(data["text"])
    if data["type"] == "image":
        return Image(base64.b64decode(data["data"], validate=True), data["media_type"])
    raise ValueError(f"A part of a message is a text or an image, not {data['type']!r}.")
