"""Anthropic Messages: from the answer, streamed or whole, to a Response. Pure.

A whole answer is a list of content blocks. A streamed one is the same list in pieces: each block starts with what it
has, deltas add to it, and the usage and the reason for the end come last.
https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from steerkit.core.errors import ModelError
from steerkit.core.message import Echo, Message, Part, Text, ToolCall
from steerkit.core.model import Finish, Response, Usage
from steerkit.models.failures import error_in_answer
from steerkit.models.lenient import arguments_of, as_count, as_dict, as_list, as_text, dumps, parse_object
from steerkit.models.sse import ServerEvent

_FINISH: dict[Any, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}

# What a delta adds to, and the kind of block that has it.
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "thinking"),
    "input_json_delta": ("partial_json", "tool_use"),
}


class MessagesReader:
    """Puts one streamed answer together; see `StreamReader`.

    Args:
        origin: who made the answer and behind what, for its Echo.
        used_ids: the ids of the conversation's tool calls.
    """

    def __init__(self, origin: str, used_ids: Iterable[str] = ()) -> None:
        self._origin = origin
        self._used_ids = used_ids
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}  # joined once: a long text costs its length, not its square
        self._stop: Any = None
        self._usage: dict[str, Any] = {}
        self.done = False

    def feed(self, event: ServerEvent) -> str:
        data = parse_object(event.data)
        if data is None:
            raise _broken_off(self._text())  # to skip it might leave a hole in the text
        kind = as_text(data.get("type")) or event.event
        if kind == "content_block_delta":
            return self._add(as_count(data.get("index")), as_dict(data.get("delta")))
        if kind == "content_block_start":
            self._blocks[as_count(data.get("index"))] = dict(as_dict(data.get("content_block")))
        elif kind == "message_start":
            self._count(as_dict(data.get("message")).get("usage"))
        elif kind == "message_delta":
            self._stop = as_dict(data.get("delta")).get("stop_reason") or self._stop
            self._count(data.get("usage"))
        elif kind == "message_stop":
            self.done = True
        elif kind == "error":
            raise error_in_answer(data, partial=self._text())
        return ""

    def response(self) -> Response:
        if not self.done:
            raise _broken_off(self._text())
        content = [self._whole(index) for index in self._blocks]
        return answer(content, self._stop, self._usage, self._origin, self._used_ids)

    def _add(self, index: int, delta: dict[str, Any]) -> str:
        if delta.get("type") == "citations_delta":
            self._block(index, "text").setdefault("citations", []).append(delta.get("citation"))
            return ""
        field, kind = _DELTAS.get(as_text(delta.get("type")), ("", ""))
        piece = delta.get(field)
        if not isinstance(piece, str):
            return ""
        self._block(index, kind)
        self._pieces.setdefault((index, field), []).append(piece)
        return as_text(piece) if field == "text" else ""

    def _block(self, index: int, kind: str) -> dict[str, Any]:
        return self._blocks.setdefault(index, {"type": kind})

    def _whole(self, index: int) -> dict[str, Any]:
        block = self._blocks[index]
        for field in ("text", "thinking", "signature"):
            if pieces := self._pieces.get((index, field)):
                block = {**block, field: as_text(block.get(field)) + "".join(pieces)}
        if arguments := "".join(self._pieces.get((index, "partial_json"), ())):
            block = {**block, "input": arguments}
        return block

    def _text(self) -> str:
        return "".join(as_text("".join(pieces)) for (_, field), pieces in self._pieces.items() if field == "text")

    def _count(self, usage: Any) -> None:
        # Later numbers replace earlier ones: they count from the start of the answer, not from the last event.
        self._usage.update((key, value) for key, value in as_dict(usage).items() if value is not None)


def _broken_off(partial: str) -> ModelError:
    return ModelError(
        "The answer broke off before its end mark, so nothing in it was carried out.",
        kind="truncated",
        retryable=not partial,
        partial=partial,
    )


def answer(content: list[Any], stop: Any, usage: dict[str, Any], origin: str, used_ids: Iterable[str] = ()) -> Response:
    """The Response of these content blocks. An `input` that is a str is a JSON text, whole or cut."""
    used = set(used_ids)
    parts: list[Part] = []
    calls: list[ToolCall] = []
    kept: list[dict[str, Any]] = []
    reasoning: list[str] = []
    for block in (dict(as_dict(item)) for item in content):
        kind = block.get("type")
        if not isinstance(kind, str):
            continue
        if kind == "text":
            if text := as_text(block.get("text")):
                parts.append(Text(text))
            if not text.strip():
                continue  # in a request the API refuses it
        elif kind == "thinking":
            reasoning.append(as_text(block.get("thinking")))
        elif kind == "tool_use":
            calls.append(_tool_call(block, used))
            block["id"] = calls[-1].id
        if isinstance(block.get("input"), str):
            block["input"] = arguments_of(ToolCall("", "", block["input"]))
        kept.append(block)
    return Response(
        Message("assistant", parts, calls, echo=_echo(kept, origin)),
        _FINISH.get(stop if isinstance(stop, str) else None, "tool_calls" if calls else "stop"),
        _usage(usage),
        reasoning="\n\n".join(filter(None, reasoning)),
    )


def _tool_call(block: dict[str, Any], used: set[str]) -> ToolCall:
    call_id = as_text(block.get("id"))
    if not call_id or call_id in used:
        call_id = f"toolu_{uuid.uuid4().hex[:12]}"  # gateways leave ids out, or count from 0 in each answer
    used.add(call_id)
    raw = block.get("input")
    if not isinstance(raw, str):
        try:
            raw = dumps(as_dict(raw)).decode()
        except ValueError:
            raw = "{}"
    return ToolCall(call_id, as_text(block.get("name")), as_text(raw) or "{}")


def _echo(blocks: list[dict[str, Any]], origin: str) -> Echo | None:
    """The blocks, if the message alone could not be made into them again: thinking, unknown kinds, another order."""
    kinds = [block.get("type") for block in blocks]
    plain = {"text": {"type", "text"}, "tool_use": {"type", "id", "name", "input"}}
    if kinds == sorted(kinds, key=lambda kind: kind == "tool_use") and all(
        block.keys() <= plain.get(as_text(block.get("type")), set()) for block in blocks
    ):
        return None
    try:
        return Echo(origin, dumps({"content": blocks}).decode())
    except (ValueError, RecursionError):
        return None


def _usage(usage: dict[str, Any]) -> Usage | None:
    if not usage:
        return None
    read, written = as_count(usage.get("cache_read_input_tokens")), as_count(usage.get("cache_creation_input_tokens"))
    return Usage(
        as_count(usage.get("input_tokens")) + read + written, as_count(usage.get("output_tokens")), read, written
    )


def whole_answer(body: Any, origin: str, used_ids: Iterable[str] = ()) -> Response:
    """The Response of a parsed JSON body of a 2xx reply.

    Raises:
        ModelError: it is an error in spite of its status, or no answer at all.
    """
    data = as_dict(body)
    if data.get("type") == "error" or data.get("error"):
        raise error_in_answer(data)
    if not isinstance(data.get("content"), list):
        raise ModelError(
            "The server's reply is no answer of the Messages API: it has no content. Check that base_url leads to it.",
            kind="server",
        )
    return answer(as_list(data["content"]), data.get("stop_reason"), as_dict(data.get("usage")), origin, used_ids)
