"""OpenAI chat completions, the format that most servers speak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from steerkit.core.message import ToolCall
from steerkit.core.model import Usage
from steerkit.testing.dialects.chat_rules import check
from steerkit.testing.dialects.dialect import Body, event
from steerkit.testing.dialects.dialect import bearer as key
from steerkit.testing.dialects.openai import error
from steerkit.testing.reply import Answer
from steerkit.testing.script import Piece

__all__ = ["check", "error", "key", "plain", "stream"]


def plain(answer: Answer, model: str, number: int) -> Body:
    message: Body = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [_call(call, call.arguments) for call in answer.calls]
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": answer.reason, "logprobs": None}],
        "usage": _usage(answer.tokens),
    }


def stream(answer: Answer, pieces: Iterable[Piece], body: Body, number: int) -> Iterator[bytes]:
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
    with_usage = (body.get("stream_options") or {}).get("include_usage", False)
    if with_usage:
        head["usage"] = None

    def chunk(delta: Body, finish: str | None = None) -> bytes:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": None if answer.calls and not answer.text else ""})
    announced = -1
    for piece in pieces:
        if piece.call is None:
            yield chunk({"content": piece.text})
            continue
        if piece.call != announced:
            announced = piece.call
            yield chunk({"tool_calls": [{"index": announced, **_call(answer.calls[announced], "")}]})
        yield chunk({"tool_calls": [{"index": announced, "function": {"arguments": piece.text}}]})
    yield chunk({}, answer.reason)
    if with_usage:
        yield event({**head, "choices": [], "usage": _usage(answer.tokens)})
    yield b"data: [DONE]\n\n"


def _call(call: ToolCall, arguments: str) -> Body:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
    }
