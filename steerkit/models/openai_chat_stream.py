"""Chat completions: from the answer, streamed or whole, to a Response. Pure.

A whole answer is read as a stream of one piece. Servers disagree on nearly everything in here, so each rule is the one
that is right for all of them: usage is the last one said and never a sum; an answer is whole with a finish reason or
`[DONE]`; a finish reason nobody knows is a stop.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from steerkit.core.errors import ModelError
from steerkit.core.message import Echo, Message, Text
from steerkit.core.model import Finish, Response, Usage
from steerkit.models.failures import error_in_answer
from steerkit.models.lenient import as_count, as_dict, as_list, as_text
from steerkit.models.openai_chat_pieces import CallPieces, merged_blocks
from steerkit.models.sse import ServerEvent

_FINISH: dict[str, Finish] = {
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}

# Finish reasons with which a server says that it gave up (OpenRouter, DeepSeek, vLLM).
_GAVE_UP = ("error", "insufficient_system_resource", "abort")

# What providers call the thinking of an answer, most faithful first; all of it goes back under the name it came in.
TEXT_ECHOES = ("reasoning_content", "reasoning")
BLOCK_ECHOES = ("reasoning_details", "thinking_blocks")

# One decoder for all events. NaN is no JSON, and could not be sent back in an echo.
_decode = json.JSONDecoder(strict=False, parse_constant=lambda _: None).decode


class ChatReader:
    """Puts one streamed answer together; see `StreamReader`.

    Args:
        origin: who makes the answer, for its Echo.
        tool_names: the tools that were offered.
        used_ids: the ids of the conversation's tool calls; an answer that gives one again gets a new one.
    """

    def __init__(self, origin: str, tool_names: Iterable[str] = (), used_ids: Iterable[str] = ()) -> None:
        self._origin = origin
        self._used_ids = used_ids
        self._calls = CallPieces(tool_names)
        self._text: list[str] = []
        self._thoughts: list[str] = []  # thinking that came as parts of the content
        self._refusal: list[str] = []
        self._echoes: dict[str, Any] = {}
        self._half = ""  # the first half of a surrogate pair, cut from the second one
        self._usage: Any = None
        self._finish: str | None = None
        self.done = False

    def feed(self, event: ServerEvent) -> str:
        data = event.data
        if data.startswith("[DONE]"):
            self.done = True
            return ""
        try:
            chunk = _decode(data)
        except (ValueError, RecursionError):
            if self._finish is not None:
                return ""
            raise self._truncated("The answer broke off inside an event") from None
        if event.event == "error" or not isinstance(chunk, dict) or _is_error(chunk):
            raise self.failure(chunk)
        return self.take(chunk)

    def take(self, chunk: dict[str, Any]) -> str:
        """Add one chunk, or a whole answer; the text in it.

        Raises:
            ModelError: it says that the answer failed, or has not the form of one.
        """
        try:
            usage = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage")
            text = ""
            for choice in chunk.get("choices") or ():
                if not choice.get("index"):  # further choices only come to those who ask for them
                    usage = choice.get("usage") or usage
                    text += self._choice(choice)
            if usage:
                self._usage = usage
            return text
        except (AttributeError, TypeError, KeyError, ValueError, RecursionError) as error:
            raise ModelError(
                f"The server's answer has not the form of a chat completion ({type(error).__name__}: {error}). "
                "Check that base_url leads to a chat completions API.",
                kind="server",
                partial=self.text,
            ) from error

    def response(self) -> Response:
        something = self._text or self._calls or self._echoes or self._refusal or self._thoughts
        if not (self._finish or (self.done and something)):
            raise self._truncated("The answer broke off before its end mark")
        return self.answer()

    def answer(self) -> Response:
        """What has come, as a whole answer."""
        calls = self._calls.tool_calls(self._used_ids)
        finish = _FINISH.get(self._finish or "", "stop")
        if finish in ("stop", "tool_calls"):
            finish = "tool_calls" if calls else "stop"
        text = self.text
        reasoning = next((self._joined(name) for name in TEXT_ECHOES if self._echoes.get(name)), "")
        return Response(
            Message("assistant", Text(text) if text else (), calls, echo=self._echo()),
            finish,
            _usage(self._usage),
            reasoning or as_text("".join(self._thoughts)),
            as_text("".join(self._refusal)),
        )

    @property
    def text(self) -> str:
        return as_text("".join(self._text))

    def _choice(self, choice: dict[str, Any]) -> str:
        finish = choice.get("finish_reason")
        if choice.get("error"):
            raise self.failure(choice)
        delta = choice.get("delta") or choice.get("message")
        shown = self._delta(delta) if delta else ""
        if finish is not None:
            if finish in _GAVE_UP:
                raise self.failure({"error": {"message": f"The server gave up ({finish}).", "type": "server_error"}})
            self._finish = str(finish)
        return shown

    def _delta(self, delta: dict[str, Any]) -> str:
        calls = delta.get("tool_calls")
        if calls:
            for piece in calls:
                self._calls.add(piece)
        elif delta.get("function_call"):
            self._calls.add({"index": 0, "function": delta["function_call"]})
        if len(delta) > 1 or not delta.get("content"):
            self._beside(delta)
        content = delta.get("content")
        return self._show(content if isinstance(content, str) else self._parts(content)) if content else ""

    def _beside(self, delta: dict[str, Any]) -> None:
        """What a delta holds beside its text."""
        for name in TEXT_ECHOES:
            piece = delta.get(name)
            if isinstance(piece, str):  # "" counts: DeepSeek wants it back
                self._echoes.setdefault(name, []).append(piece)
        for name in BLOCK_ECHOES:
            if blocks := [block for block in as_list(delta.get(name)) if isinstance(block, dict)]:
                self._echoes.setdefault(name, []).extend(blocks)
        if extra := delta.get("extra_content"):
            self._echoes["extra_content"] = extra
        if refusal := delta.get("refusal"):
            self._refusal.append(str(refusal))

    def _parts(self, content: Any) -> str:
        """The text in a content that is a list of parts; Mistral's has thinking among them."""
        text = ""
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, str):
                text += part
            elif isinstance(part.get("text"), str):
                text += part["text"]
            elif thinking := part.get("thinking"):
                inner = [thinking] if isinstance(thinking, str) else [as_text(as_dict(t).get("text")) for t in thinking]
                self._thoughts += inner
        return text

    def _show(self, text: str) -> str:
        self._text.append(text)
        if text.isascii() and not self._half:
            return text
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        return as_text(text[: len(text) - len(self._half)])

    def _joined(self, name: str) -> str:
        return as_text("".join(self._echoes[name]))

    def _echo(self) -> Echo | None:
        echo = dict(self._echoes)
        for name in echo:
            if name in TEXT_ECHOES:
                echo[name] = self._joined(name)
            elif name in BLOCK_ECHOES:
                echo[name] = merged_blocks(echo[name])
        if "reasoning_details" in echo:
            echo.pop("reasoning", None)  # OpenRouter says the same in both
        if any(self._calls.extras()):
            echo["tool_calls"] = self._calls.extras()
        return Echo(self._origin, json.dumps(echo)) if echo else None

    def _truncated(self, what: str) -> ModelError:
        text = self.text
        return ModelError(
            f"{what}, so nothing in it was carried out.", kind="truncated", retryable=not text, partial=text
        )

    def failure(self, body: Any) -> ModelError:
        """The error in an error object, with the text that came before it."""
        text = self.text
        error = error_in_answer(body, partial=text)
        error.retryable = error.retryable and not text
        return error


def whole_answer(body: Any, reader: ChatReader) -> Response:
    """The Response of a parsed JSON body of a 2xx reply, read by a new `reader`.

    Raises:
        ModelError: it is an error in spite of its status, or no answer at all.
    """
    choices = as_list(as_dict(body).get("choices"))
    if not choices or _is_error(body):
        raise reader.failure(body)
    for choice in choices:
        for index, call in enumerate(as_list(as_dict(as_dict(choice).get("message")).get("tool_calls"))):
            if isinstance(call, dict):
                call["index"] = index  # here each entry is a call of its own, whatever its id
    reader.take(body)
    return reader.answer()


def _is_error(chunk: dict[str, Any]) -> bool:
    return bool(chunk.get("error")) or chunk.get("object") == "error" or ("detail" in chunk and "choices" not in chunk)


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    details = as_dict(usage.get("prompt_tokens_details"))
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens")
    written = details.get("cache_write_tokens") or usage.get("cache_creation_input_tokens")
    return Usage(
        as_count(usage.get("prompt_tokens")),
        as_count(usage.get("completion_tokens")),
        as_count(cached),
        as_count(written),
    )
