"""OpenAI Responses: from the answer, streamed or whole, to a Response. Pure.

An answer is a list of output items: messages, function calls, reasoning. A stream brings each item in pieces and then
whole, and the whole list once more in its last event; some servers leave the list empty there, or an item out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from steerkit.core.errors import ModelError
from steerkit.core.message import Echo, Message, Part, Text, ToolCall
from steerkit.core.model import Finish, Response, Usage
from steerkit.models.failures import error_in_answer
from steerkit.models.lenient import as_count, as_dict, as_list, as_text, dumps, parse_object
from steerkit.models.sse import ServerEvent

_ENDS = ("response.completed", "response.incomplete", "response.failed")

# What each delta adds to, and the kind of item that has it.
_DELTAS = {
    "response.output_text.delta": ("text", "message"),
    "response.refusal.delta": ("refusal", "message"),
    "response.function_call_arguments.delta": ("arguments", "function_call"),
    "response.reasoning_summary_text.delta": ("summary", "reasoning"),
    "response.reasoning_text.delta": ("summary", "reasoning"),
}


class ResponsesReader:
    """Puts one streamed answer together; see `StreamReader`.

    Args:
        origin: who made the answer, for its Echo.
        used_ids: the ids of the conversation's tool calls.
    """

    def __init__(self, origin: str, used_ids: Iterable[str] = ()) -> None:
        self._origin = origin
        self._used_ids = used_ids
        self._items: dict[int, dict[str, Any]] = {}
        self._whole: set[int] = set()  # which items came whole
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._end: dict[str, Any] | None = None

    @property
    def done(self) -> bool:
        return self._end is not None

    def feed(self, event: ServerEvent) -> str:
        data = parse_object(event.data)
        if data is None:
            raise _broken_off(self._text())  # to skip it might leave a hole in the text
        kind = as_text(data.get("type")) or event.event
        index = as_count(data.get("output_index"))
        if kind in _DELTAS:
            return self._add(index, kind, data.get("delta"))
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._items[index] = as_dict(data.get("item"))
            if kind.endswith("done"):
                self._whole.add(index)
        elif kind in _ENDS:
            self._end = {"status": kind.removeprefix("response."), **as_dict(data.get("response"))}
            if kind == "response.failed":
                raise error_in_answer(self._end, partial=self._text())
        elif kind == "error" or (not kind and data.get("error")):
            raise error_in_answer(data, partial=self._text())
        return ""

    def response(self) -> Response:
        if self._end is None:
            raise _broken_off(self._text())
        listed = as_list(self._end.get("output"))
        pieced = [self._item(index) for index in sorted(self._items)]
        return answer(listed if len(listed) >= len(pieced) else pieced, self._end, self._origin, self._used_ids)

    def _add(self, index: int, kind: str, piece: Any) -> str:
        field, owner = _DELTAS[kind]
        if not isinstance(piece, str):
            return ""
        self._items.setdefault(index, {"type": owner})
        self._pieces.setdefault((index, field), []).append(piece)
        return as_text(piece) if field == "text" else ""

    def _item(self, index: int) -> dict[str, Any]:
        """The item as it came whole, or else what its pieces come to."""
        item = self._items[index]
        if index in self._whole:
            return item
        joined = {field: "".join(pieces) for (owner, field), pieces in self._pieces.items() if owner == index}
        if item.get("type") == "function_call":
            return {**item, "arguments": joined.get("arguments") or item.get("arguments")}
        if item.get("type") == "message":
            text, refusal = joined.get("text"), joined.get("refusal")
            return {
                **item,
                "content": [{"type": "output_text", "text": text}] * bool(text)
                + [{"type": "refusal", "refusal": refusal}] * bool(refusal),
            }
        return {**item, "summary": [{"type": "summary_text", "text": joined.get("summary", "")}]}

    def _text(self) -> str:
        return "".join(as_text("".join(pieces)) for (_, field), pieces in self._pieces.items() if field == "text")


def _broken_off(partial: str) -> ModelError:
    return ModelError(
        "The answer broke off before its end mark, so nothing in it was carried out.",
        kind="truncated",
        retryable=not partial,
        partial=partial,
    )


def answer(output: list[Any], end: dict[str, Any], origin: str, used_ids: Iterable[str] = ()) -> Response:
    """The Response of these output items; `end` is the object that holds the usage and why the answer ended."""
    used = set(used_ids)
    parts: list[Part] = []
    calls: list[ToolCall] = []
    refusals: list[str] = []
    reasoning: list[str] = []
    items: list[dict[str, Any]] = []
    for item in (dict(as_dict(item)) for item in output):
        kind = item.get("type")
        if not isinstance(kind, str):
            continue
        if kind == "message":
            for part in map(as_dict, as_list(item.get("content"))):
                if text := as_text(part.get("text")):
                    parts.append(Text(text))
                refusals.append(as_text(part.get("refusal")))
        elif kind == "function_call":
            calls.append(_tool_call(item, used))
            item["call_id"], item["arguments"] = calls[-1].id, calls[-1].arguments
        elif kind == "reasoning":
            shown = as_list(item.get("summary")) or as_list(item.get("content"))
            reasoning.extend(as_text(as_dict(part).get("text")) for part in shown)
        items.append(item)
    return Response(
        Message("assistant", parts, calls, echo=_echo(items, origin)),
        _finish(end, calls),
        _usage(end.get("usage")),
        reasoning="\n\n".join(filter(None, reasoning)),
        refusal="".join(refusals),
    )


def _tool_call(item: dict[str, Any], used: set[str]) -> ToolCall:
    # `call_id` is what a result answers; `id` only names the item.
    call_id = as_text(item.get("call_id"))
    if not call_id or call_id in used:
        call_id = f"call_{uuid.uuid4().hex[:12]}"  # gateways leave ids out, or count from 0 in each answer
    used.add(call_id)
    raw = item.get("arguments")
    if isinstance(raw, dict):
        try:
            raw = dumps(raw).decode()
        except ValueError:
            raw = "{}"
    return ToolCall(call_id, as_text(item.get("name")), as_text(raw) or "{}")


def _echo(items: list[dict[str, Any]], origin: str) -> Echo | None:
    """The items, if the message alone could not be made into them again: reasoning, phases, refusals, other kinds."""
    if all(_is_plain(item) for item in items):
        return None
    # An item without its content here is known to the provider only, which was told to store nothing.
    kept = [item for item in items if item["type"] != "reasoning" or _has_content(item)]
    try:
        return Echo(origin, dumps({"output": kept}).decode()) if kept else None
    except (ValueError, RecursionError):
        return None


def _has_content(reasoning: dict[str, Any]) -> bool:
    return bool(reasoning.get("encrypted_content") or reasoning.get("content"))


def _is_plain(item: dict[str, Any]) -> bool:
    if item["type"] == "message":
        parts = map(as_dict, as_list(item.get("content")))
        return "phase" not in item and all(part.get("type") == "output_text" for part in parts)
    return bool(item["type"] == "function_call")


def _finish(end: dict[str, Any], calls: list[ToolCall]) -> Finish:
    if end.get("status") == "incomplete":
        reason = as_dict(end.get("incomplete_details")).get("reason")
        return "content_filter" if reason == "content_filter" else "length"
    return "tool_calls" if calls else "stop"


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    details = as_dict(usage.get("input_tokens_details"))
    return Usage(
        as_count(usage.get("input_tokens")),
        as_count(usage.get("output_tokens")),
        as_count(details.get("cached_tokens")),
        as_count(details.get("cache_write_tokens")),
    )


def whole_answer(body: Any, origin: str, used_ids: Iterable[str] = ()) -> Response:
    """The Response of a parsed JSON body of a 2xx reply.

    Raises:
        ModelError: it is an error in spite of its status, or no answer at all.
    """
    data = as_dict(body)
    if data.get("error") or data.get("status") == "failed":
        raise error_in_answer(data)
    if not isinstance(data.get("output"), list):
        raise ModelError(
            "The server's reply is no answer of the Responses API: it has no output. Check that base_url leads to it.",
            kind="server",
        )
    return answer(data["output"], data, origin, used_ids)
