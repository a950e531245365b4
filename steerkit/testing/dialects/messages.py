"""Anthropic messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from steerkit.core.message import ToolCall
from steerkit.core.model import Finish, Usage
from steerkit.testing.dialects.dialect import Body, bearer, event, is_json_object
from steerkit.testing.dialects.messages_rules import check
from steerkit.testing.reply import Answer
from steerkit.testing.script import Piece

__all__ = ["check", "error", "key", "plain", "stream"]

_STOP_REASONS: dict[Finish, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def key(headers: Mapping[str, str]) -> str | None:
    # Anthropic's own SDK sends the key either way: older releases in x-api-key, 2.14 as a bearer token.
    return headers.get("x-api-key") or bearer(headers)


def error(status: int, message: str, _param: str | None = None, _code: str | None = None) -> Body:
    kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}


def plain(answer: Answer, model: str, number: int) -> Body:
    content: list[Body] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [_tool_use(call, _parsed(call)) for call in answer.calls]
    return {
        **_head(model, number),
        "content": content,
        "stop_reason": _STOP_REASONS[answer.reason],
        "usage": _usage(answer.tokens),
    }


def stream(answer: Answer, pieces: Iterable[Piece], body: Body, number: int) -> Iterator[bytes]:
    begun = {**_usage(answer.tokens), "output_tokens": 1}
    yield _event("message_start", message={**_head(body["model"], number), "usage": begun})
    yield _event("ping")
    open_block: int | None = None
    index = -1
    for piece in pieces:
        if index < 0 or piece.call != open_block:
            if index >= 0:
                yield _event("content_block_stop", index=index)
            index, open_block = index + 1, piece.call
            block = {"type": "text", "text": ""} if piece.call is None else _tool_use(answer.calls[piece.call], {})
            yield _event("content_block_start", index=index, content_block=block)
        kind, field = ("text_delta", "text") if piece.call is None else ("input_json_delta", "partial_json")
        yield _event("content_block_delta", index=index, delta={"type": kind, field: piece.text})
    if index >= 0:
        yield _event("content_block_stop", index=index)
    ended = {"stop_reason": _STOP_REASONS[answer.reason], "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage=_usage(answer.tokens))
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> bytes:
    return event({"type": kind, **fields}, kind)


def _head(model: str, number: int) -> Body:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _tool_use(call: ToolCall, arguments: Body) -> Body:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _parsed(call: ToolCall) -> Body:
    if call.arguments and not is_json_object(call.arguments):
        raise ValueError(
            f"The arguments of {call.name} are no JSON object, which a plain answer of this format cannot hold: "
            "ask for a stream."
        )
    parsed: Body = json.loads(call.arguments or "{}")
    return parsed


def _usage(usage: Usage) -> dict[str, int]:
    # What was read from a cache, or written to one, is not part of input_tokens here.
    return {
        "input_tokens": usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
    }
