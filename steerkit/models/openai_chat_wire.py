"""The chat completions format: from a request to its body, and what to do about a refusal. Pure.

A body is joined from the JSON of its messages, each made once and kept in the message's memo under all that it depends
on besides the message: the `_Style`. So a step costs what is new in it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from steerkit.core.errors import ModelError
from steerkit.core.message import Image, Message, Text, ToolCall
from steerkit.core.model import Endpoint, Request, Response
from steerkit.core.tool import Tool
from steerkit.models.lenient import as_dict, dumps
from steerkit.models.openai_chat_stream import ChatReader, whole_answer
from steerkit.models.shaping import NO_OUTPUT, shape, short_id
from steerkit.models.wire import Settings

# Their templates want roles to alternate, and their ids have 9 letters and digits.
_MISTRAL = re.compile(r"(mi|mini|dev|magi|code)stral|(pi|mi|vo)xtral", re.IGNORECASE)

# What a refusal says, for each thing that the wire added on its own. The words are those of real servers.
_REFUSED = re.compile(
    r"unsupported|not support|unrecogni|unknown|unexpected|extra (inputs|fields)|not (permitted|allowed)|additional",
    re.IGNORECASE,
)
_ECHOES = re.compile(
    r"reasoning_content|reasoning_details|extra_content|thinking_blocks|provider_specific_fields|['\"`.]reasoning\b"
)
_NULL_CONTENT = re.compile(r"AssistantMessage', 'content'|content['\"`]?.{0,40}\b(null|none|nil)\b", re.IGNORECASE)
_ID_FORM = re.compile(r"tool call ids? .*length", re.IGNORECASE | re.DOTALL)

# Gemini refuses a call without the signature it gave; this one stands for a call that another model made.
# https://ai.google.dev/gemini-api/docs/thought-signatures
_FOREIGN_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}


@frozen
class _Style:
    """All that the JSON of a message depends on besides the message."""

    origin: str  # echoes of this origin are sent back
    echoes: bool
    short_ids: bool
    most_id: int  # the longest id that the provider takes
    null_content: bool  # beside tool calls
    foreign_signature: bool  # Gemini
    foreign_reasoning: bool  # DeepSeek
    # What it is looked up by in every message of every request: the hash of a str is kept, and found by C code.
    key: str = field(init=False, eq=False, repr=False)

    @key.default
    def _name(self) -> str:
        return repr(self)


class ChatWire:
    """Chat completions of OpenAI and of all who speak it; see `Wire`."""

    name = "openai_chat"
    path = "/chat/completions"

    def headers(self, endpoint: Endpoint) -> Mapping[str, str]:
        if not endpoint.api_key:
            return {}
        if _host(endpoint.base_url).endswith(".azure.com"):
            return {"api-key": endpoint.api_key}
        return {"Authorization": f"Bearer {endpoint.api_key}"}

    def settings(self, endpoint: Endpoint, model: str) -> Settings:
        if endpoint.placement != "auto":
            return Settings(endpoint.placement)
        return Settings("bridge" if _is_mistral(endpoint.base_url, model) else "raw")

    def cure(self, error: ModelError, request: Request, endpoint: Endpoint, settings: Settings) -> Settings | None:
        cured = _remedy(error, endpoint, settings)
        if cured is None:
            return None
        # What renders to the same bytes would be refused again.
        same = self.encode(request, endpoint, cured, stream=True) == self.encode(
            request, endpoint, settings, stream=True
        )
        return None if same else cured

    def encode(self, request: Request, endpoint: Endpoint, settings: Settings, *, stream: bool) -> bytes:
        style = _style(endpoint.base_url, request.model.name, settings)
        fields = _fields(request, endpoint, settings, stream)
        shaped = shape(request.messages, settings.mode)
        key = style.key
        messages = [message.memo.get(key) or _message_json(message, style) for message in shaped]
        if request.system:
            messages.insert(0, _system_json(request.system))
        tools = b',"tools":' + _tools_json(request.tools) if request.tools and "tools" not in fields else b""
        # One join: a second one would copy the whole conversation once more.
        messages = messages or [b""]
        messages[0] = b"".join((dumps(fields)[:-1], tools, b',"messages":[', messages[0]))
        messages[-1] += b"]}"
        return b",".join(messages)

    def decode(self, body: Any, request: Request, endpoint: Endpoint) -> Response:
        return whole_answer(body, self.reader(request, endpoint))

    def reader(self, request: Request, endpoint: Endpoint) -> ChatReader:
        return ChatReader(
            _origin(endpoint.base_url, request.model.name),
            (tool.name for tool in request.tools),
            [call.id for message in request.messages for call in message.tool_calls],
        )


# ---- what depends on the endpoint


@lru_cache(maxsize=256)
def _host(base_url: str) -> str:
    return urlsplit(base_url).hostname or ""


def _is_openai(base_url: str) -> bool:
    return _host(base_url).endswith((".openai.com", ".openai.azure.com"))


def _is_mistral(base_url: str, model: str) -> bool:
    return _host(base_url) == "api.mistral.ai" or bool(_MISTRAL.search(model))


def _origin(base_url: str, model: str) -> str:
    return f"openai_chat {urlsplit(base_url).netloc} {model}"


@lru_cache(maxsize=256)
def _style(base_url: str, model: str, settings: Settings) -> _Style:
    return _Style(
        origin=_origin(base_url, model),
        echoes="echo" not in settings.without,
        short_ids=settings.mode == "bridge" or _is_mistral(base_url, model),
        most_id=40 if _is_openai(base_url) else 1_000_000,  # elsewhere a long id may hold what its maker needs back
        null_content=settings.mode != "bridge" and "null_content" not in settings.without,
        foreign_signature=_host(base_url).endswith(".googleapis.com") and "gemini" in model.lower(),
        foreign_reasoning=_host(base_url) == "api.deepseek.com",
    )


def _fields(request: Request, endpoint: Endpoint, settings: Settings, stream: bool) -> dict[str, Any]:
    """The body without messages and tools. They come first, so that one request is the beginning of the next."""
    model = request.model
    fields: dict[str, Any] = {"model": model.name}
    if stream:
        fields["stream"] = True
        if "stream_options" not in settings.without:
            fields["stream_options"] = {"include_usage": True}
    if model.max_tokens is not None:
        fields[_limit_name(endpoint, settings)] = model.max_tokens
    if model.temperature is not None:
        fields["temperature"] = model.temperature
    if request.tools and request.tool_choice != "auto":
        fields["tool_choice"] = request.tool_choice
    fields.update(model.extra)
    fields.pop("messages", None)
    return fields


def _limit_name(endpoint: Endpoint, settings: Settings) -> str:
    """OpenAI's newer models refuse `max_tokens`; Ollama and others ignore `max_completion_tokens` in silence."""
    new = _is_openai(endpoint.base_url)
    if ("max_completion_tokens" if new else "max_tokens") in settings.without:
        new = not new
    return "max_completion_tokens" if new else "max_tokens"


# ---- refusals


def _remedy(error: ModelError, endpoint: Endpoint, settings: Settings) -> Settings | None:
    text = f"{error.param or ''} {error}"
    if error.kind == "placement" or _ID_FORM.search(text):
        return evolve(settings, mode="bridge") if endpoint.placement == "auto" else None
    if _NULL_CONTENT.search(text):
        return _without(settings, "null_content")
    if error.kind != "bad_request":
        return None
    if "stream_options" in text or "include_usage" in text:
        return _without(settings, "stream_options")
    if not _REFUSED.search(text):
        return None
    limit = _limit_name(endpoint, settings)
    if re.search(rf"\b{limit}\b", text):
        return _without(settings, limit)
    return _without(settings, "echo") if _ECHOES.search(text) else None


def _without(settings: Settings, name: str) -> Settings:
    return evolve(settings, without=settings.without | {name})


# ---- JSON


@lru_cache(maxsize=64)
def _system_json(system: str) -> bytes:
    return dumps({"role": "system", "content": system})


@lru_cache(maxsize=64)
def _tools_json(tools: tuple[Tool, ...]) -> bytes:
    return dumps([_tool(tool) for tool in tools])


def _tool(tool: Tool) -> dict[str, Any]:
    parameters = json.loads(json.dumps(tool.parameters, default=dict))
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": {"type": "object", "properties": {}, **parameters},
    }
    return {"type": "function", "function": function}


def _message_json(message: Message, style: _Style) -> bytes:
    made: bytes = message.memo.setdefault(style.key, dumps(_message(message, style)))
    return made


def _message(message: Message, style: _Style) -> dict[str, Any]:
    if message.role == "assistant":
        return _assistant(message, style)
    if message.role == "tool":
        # Always a string: Ollama loses the id of one whose content is a list.
        call_id = _wire_id(message.tool_call_id or "", style)
        return {"role": "tool", "tool_call_id": call_id, "content": message.text or NO_OUTPUT}
    if message.role == "user" and message.has_image:
        return {"role": "user", "content": [_part(part) for part in message.content if part != Text("")]}
    return {"role": message.role, "content": message.text}


def _part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _assistant(message: Message, style: _Style) -> dict[str, Any]:
    content: str | None = message.text or (None if style.null_content else "")
    fields: dict[str, Any] = {"role": "assistant", "content": content}
    own = message.echo if message.echo and message.echo.origin == style.origin and style.echoes else None
    echo = as_dict(json.loads(own.json)) if own else {}
    extras = echo.pop("tool_calls", [])
    if message.tool_calls:
        fields["tool_calls"] = [_call(call, style) for call in message.tool_calls]
        for call, extra in zip(fields["tool_calls"], extras, strict=False):
            call.update(extra)
        if style.foreign_signature:
            fields["tool_calls"][0].setdefault("extra_content", _FOREIGN_SIGNATURE)
        if style.foreign_reasoning:
            fields["reasoning_content"] = ""  # unless the echo has it
    return {**fields, **echo}


def _call(call: ToolCall, style: _Style) -> dict[str, Any]:
    # A name that the model made up must not make every later request fail.
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "unknown"
    function = {"name": name, "arguments": _valid_arguments(call)}
    return {"id": _wire_id(call.id, style), "type": "function", "function": function}


def _valid_arguments(call: ToolCall) -> str:
    """The arguments as the model wrote them if they are a JSON object by the letter, else made into one.

    llama.cpp and Ollama read the arguments of the whole history, and refuse every request that has a bad one.
    """
    try:
        rewritten = dumps(call.parse()).decode()
    except (ValueError, RecursionError):
        return "{}"
    try:
        json.loads(call.arguments)
    except ValueError:
        return rewritten  # they are empty, or have a raw line feed in a string
    # Half a surrogate pair is JSON for Python, and for few others.
    return rewritten if "\\ud" in call.arguments.lower() else call.arguments


def _wire_id(call_id: str, style: _Style) -> str:
    return short_id(call_id) if style.short_ids or len(call_id) > style.most_id else call_id
