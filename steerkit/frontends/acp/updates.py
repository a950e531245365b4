"""Updates: what happens in a run, as the client is told of it. Pure but for the preview of a tool call."""

from __future__ import annotations

import base64
import itertools
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from steerkit.core.event import Event, TextEvent, ToolCallEvent, ToolResultEvent
from steerkit.core.message import Message, Part, Text, ToolCall

if TYPE_CHECKING:
    from steerkit.tools.preview import Preview

logger = logging.getLogger(__name__)

Update = dict[str, Any]

# On a user message that the person sent: patterns add user messages of their own, which are nobody's words.
SAID = "said"


def chunk(kind: str, text: str) -> Update:
    """A piece of a message: `agent_message_chunk`, `user_message_chunk`."""
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def plan_update(text: str, status: str) -> Update:
    """The steps of a plan: its numbered or dashed lines, or else the whole text as one."""
    lines = re.findall(r"^\s*(?:\d+[.)]|[-*])\s+(.+)$", text, re.MULTILINE) or [text.strip()]
    entries = [{"content": line.strip(), "priority": "medium", "status": status} for line in lines]
    return {"sessionUpdate": "plan", "entries": entries}


class ToolCalls:
    """The tool calls of a session, with ids that are its own: a model's ids may come again.

    Calls are told apart as objects: a worker that was left alone may end one that equals a later one.
    """

    def __init__(self, preview: Callable[[ToolCall], Preview | None]) -> None:
        self._preview = preview
        self._numbers = itertools.count(1)
        self._open: dict[int, tuple[ToolCall, Update]] = {}

    def begin(self, call: ToolCall, status: str, *, look: bool = True) -> Update:
        """The fields that tell of a call; with `look`, of what it is about to do too. It is open until `end`."""
        fields: Update = {"toolCallId": f"call-{next(self._numbers)}", "title": call.name, "kind": "other"}
        fields["status"] = status
        try:
            fields["rawInput"] = call.parse()
        except ValueError:
            fields["rawInput"] = call.arguments
        if look:
            fields.update(self._previewed(call))
        self._open[id(call)] = call, fields
        return fields

    def fields(self, call: ToolCall) -> Update:
        """What `begin` told of a call that has not ended."""
        return self._open[id(call)][1]

    def end(self, call: ToolCall, status: str, content: Sequence[Part]) -> Update | None:
        """What tells how a call has ended; None if that was told. The diff of a change that was made stays in sight."""
        _, fields = self._open.pop(id(call), (call, None))
        if fields is None:
            return None
        ended: Update = {"toolCallId": fields["toolCallId"], "status": status}
        shows_diff = any(item["type"] == "diff" for item in fields.get("content", ()))
        if content and not (shows_diff and status == "completed"):
            ended["content"] = [{"type": "content", "content": block(part)} for part in content]
        return {"sessionUpdate": "tool_call_update", **ended}

    def give_up(self) -> list[Update]:
        """What tells that every open call has failed."""
        ended = [self.end(call, "failed", ()) for call, _ in list(self._open.values())]
        return [update for update in ended if update is not None]

    def _previewed(self, call: ToolCall) -> Update:
        try:
            preview = self._preview(call)
        except Exception:
            logger.exception("No preview of the call of %s could be made.", call.name)
            preview = None
        return {} if preview is None else _preview_fields(preview)


def _preview_fields(preview: Preview) -> Update:
    fields: Update = {"title": preview.title, "kind": preview.kind}
    if preview.locations:
        fields["locations"] = [
            {"path": place.path} if place.line is None else {"path": place.path, "line": place.line}
            for place in preview.locations
        ]
    if preview.change is not None:
        change = preview.change
        fields["content"] = [{"type": "diff", "path": change.path, "oldText": change.old, "newText": change.new}]
    elif preview.command is not None:
        fields["content"] = [{"type": "content", "content": {"type": "text", "text": _code(preview.command)}}]
    return fields


def _code(command: str) -> str:
    """The command in a fence longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", command)), default=0))
    return f"{fence}sh\n{command}\n{fence}"


def block(part: Part) -> dict[str, Any]:
    """A part of a message as a content block."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image", "data": base64.b64encode(part.data).decode(), "mimeType": part.media_type}


def event_update(event: Event, calls: ToolCalls, asks_first: Callable[[ToolCall], bool]) -> Update | None:
    """What the client is told of an event; None for what does not concern it."""
    if isinstance(event, TextEvent):
        return chunk("agent_message_chunk", event.text)
    if isinstance(event, ToolCallEvent):
        status = "pending" if asks_first(event.call) else "in_progress"
        return {"sessionUpdate": "tool_call", **calls.begin(event.call, status)}
    if isinstance(event, ToolResultEvent):
        status = "completed" if event.error is None else "failed"
        return calls.end(event.call, status, event.message.content)
    return None


def replay(messages: Sequence[Message], calls: ToolCalls) -> Iterator[Update]:
    """A kept conversation, as updates. Steers are what the person typed, without the label that the model read."""
    called: dict[str, ToolCall] = {}
    for message in messages:
        if message.role == "user" and (SAID in message.meta or "steer_id" in message.meta):
            for part in message.meta.get("steer_content", message.content):
                yield {"sessionUpdate": "user_message_chunk", "content": block(part)}
        elif message.role == "assistant":
            if message.text:
                yield chunk("agent_message_chunk", message.text)
            for call in message.tool_calls:
                called[call.id] = call
                yield {"sessionUpdate": "tool_call", **calls.begin(call, "pending", look=False)}
        elif message.role == "tool" and (call_answered := called.pop(message.tool_call_id or "", None)):
            status = "failed" if _tells_of_failure(message, call_answered) else "completed"
            if ended := calls.end(call_answered, status, message.content):
                yield ended


def _tells_of_failure(message: Message, call: ToolCall) -> bool:
    """Whether a kept result is one of those with which steerkit itself says that the call was not carried out."""
    return message.text.startswith(("Not run: ", "The user did not allow this call", f"{call.name} failed: "))
