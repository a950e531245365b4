"""OpenAI responses."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from steerkit.core.message import ToolCall
from steerkit.core.model import Usage
from steerkit.testing.dialects.dialect import Body, event
from steerkit.testing.dialects.dialect import bearer as key
from steerkit.testing.dialects.openai import error
from steerkit.testing.dialects.responses_rules import check
from steerkit.testing.reply import Answer
from steerkit.testing.script import Piece

__all__ = ["check", "error", "key", "plain", "stream"]

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def plain(answer: Answer, model: str, number: int) -> Body:
    items = [_message(answer, number)] if answer.text else []
    items += [_call(call, call.arguments, number, place) for place, call in enumerate(answer.calls)]
    return {
        **_head(model, number, "incomplete" if answer.reason in _INCOMPLETE else "completed"),
        "incomplete_details": {"reason": _INCOMPLETE[answer.reason]} if answer.reason in _INCOMPLETE else None,
        "output": items,
        "usage": _usage(answer.tokens),
    }


def stream(answer: Answer, pieces: Iterable[Piece], body: Body, number: int) -> Iterator[bytes]:
    for place, (kind, fields) in enumerate(_events(answer, pieces, body, number)):
        yield event({"type": kind, "sequence_number": place, **fields}, kind)


def _events(answer: Answer, pieces: Iterable[Piece], body: Body, number: int) -> Iterator[tuple[str, Body]]:
    begun = _head(body["model"], number, "in_progress")
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    groups = itertools.groupby(pieces, key=lambda piece: piece.call)
    for output_index, (place, group) in enumerate(groups):
        if place is None:
            yield from _message_events(answer, group, number, output_index)
        else:
            yield from _call_events(answer.calls[place], group, number, place, output_index)
    whole = plain(answer, body["model"], number)
    yield f"response.{whole['status']}", {"response": whole}


def _message_events(
    answer: Answer, pieces: Iterable[Piece], number: int, output_index: int
) -> Iterator[tuple[str, Body]]:
    item = _message(answer, number)
    added = {**item, "status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": output_index, "item": added}
    at = {"item_id": item["id"], "output_index": output_index, "content_index": 0}
    part = item["content"][0]
    yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces:
        yield "response.output_text.delta", {**at, "delta": piece.text, "logprobs": []}
    yield "response.output_text.done", {**at, "text": answer.text, "logprobs": []}
    yield "response.content_part.done", {**at, "part": part}
    yield "response.output_item.done", {"output_index": output_index, "item": item}


def _call_events(
    call: ToolCall, pieces: Iterable[Piece], number: int, place: int, output_index: int
) -> Iterator[tuple[str, Body]]:
    item = _call(call, call.arguments, number, place)
    added = {**item, "status": "in_progress", "arguments": ""}
    yield "response.output_item.added", {"output_index": output_index, "item": added}
    at = {"item_id": item["id"], "output_index": output_index}
    for piece in pieces:
        yield "response.function_call_arguments.delta", {**at, "delta": piece.text}
    yield "response.function_call_arguments.done", {**at, "name": call.name, "arguments": call.arguments}
    yield "response.output_item.done", {"output_index": output_index, "item": item}


def _head(model: str, number: int, status: str) -> Body:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": model,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _message(answer: Answer, number: int) -> Body:
    text = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}


def _call(call: ToolCall, arguments: str, number: int, place: int) -> Body:
    return {
        "type": "function_call",
        "id": f"fc_{number}_{place}",
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        "status": "completed",
    }


def _usage(usage: Usage) -> Body:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
