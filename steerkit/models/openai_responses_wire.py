"""OpenAI Responses: from a Request to JSON bytes. Pure; the answer is read in openai_responses_stream.py.

The input is a flat list of items. Nothing is stored at the provider, so the items that a model made (its reasoning,
encrypted, in front of the calls that came of it) are kept on the message and sent back to it as they are. A call and
its result find each other by `call_id`; user messages stand behind all results of a group, as they do in the Request.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve

from steerkit.core.errors import ModelError
from steerkit.core.message import Image, Message, Part, ToolCall
from steerkit.core.model import Endpoint, Request, Response
from steerkit.core.tool import Tool
from steerkit.models.lenient import arguments_of, as_dict, as_list, as_text, dumps
from steerkit.models.openai_responses_stream import ResponsesReader, whole_answer
from steerkit.models.shaping import NO_OUTPUT, shape
from steerkit.models.wire import Settings, StreamReader

_REASONING_REFUSED = re.compile(r"encrypted.content.*(verified|decrypt|parsed|invalid)|invalid_encrypted_content", re.I)

# Fields that this wire adds on its own, and what a refusal calls them.
_OWN_FIELDS = {"include": "encrypted", "store": "store"}


class OpenAIResponsesWire:
    """The Responses format; see `Wire`."""

    name = "openai_responses"
    path = "/responses"

    def headers(self, endpoint: Endpoint) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}

    def settings(self, endpoint: Endpoint, model: str) -> Settings:  # noqa: ARG002
        return Settings("raw" if endpoint.placement == "auto" else endpoint.placement)

    def cure(self, error: ModelError, request: Request, endpoint: Endpoint, settings: Settings) -> Settings | None:
        cured = self._remedy(error, request, endpoint, settings)
        if cured is None or self._render(request, endpoint, cured) == self._render(request, endpoint, settings):
            return None  # the same bytes would be refused again
        return cured

    def _remedy(self, error: ModelError, request: Request, endpoint: Endpoint, settings: Settings) -> Settings | None:
        if error.kind == "placement":
            return evolve(settings, mode="bridge") if endpoint.placement == "auto" else None
        if error.kind != "bad_request":
            return None
        said = f"{error} {error.param or ''}".lower()
        if _REASONING_REFUSED.search(said):
            return self._without_reasoning(request, endpoint, settings)
        for name, word in _OWN_FIELDS.items():
            if (error.param == name or word in said) and name not in settings.without:
                return evolve(settings, without=settings.without | {name})
        return None

    def _without_reasoning(self, request: Request, endpoint: Endpoint, settings: Settings) -> Settings | None:
        """Drops the reasoning of this conversation so far, and of no other."""
        origin = _origin(request, endpoint)
        refused = [
            _refusal_of(message) for message in request.messages if message.echo and message.echo.origin == origin
        ]
        return evolve(settings, without=settings.without | {refused[-1]}) if refused else None

    def encode(self, request: Request, endpoint: Endpoint, settings: Settings, *, stream: bool) -> bytes:
        head = list(itertools.takewhile(lambda message: message.role == "system", request.messages))
        instructions = "\n\n".join(filter(str.strip, [request.system or "", *(message.text for message in head)]))
        fields: dict[str, Any] = {
            "model": request.model.name,
            "instructions": instructions or None,
            "tools": [_definition(tool) for tool in request.tools] or None,
            "tool_choice": request.tool_choice if request.tools else None,
            "max_output_tokens": request.model.max_tokens,
            "temperature": request.model.temperature,
            "store": None if "store" in settings.without else False,
            "include": None if "include" in settings.without else ["reasoning.encrypted_content"],
            "stream": True if stream else None,
        }
        fields = {key: value for key, value in fields.items() if value is not None} | dict(request.model.extra)
        messages = request.messages[len(head) :]
        origin, stale = _origin(request, endpoint), _stale(messages, settings)
        shaped = shape(messages, settings.mode, images_in_results=True)
        items = [
            _echoed(message)
            if message.echo and message.echo.origin == origin and id(message) not in stale
            else _items(message)
            for message in shaped
        ]
        return dumps(fields)[:-1] + b',"input":[' + b",".join(filter(None, items)) + b"]}"

    def _render(self, request: Request, endpoint: Endpoint, settings: Settings) -> bytes:
        return self.encode(request, endpoint, settings, stream=True)

    def decode(self, body: Any, request: Request, endpoint: Endpoint) -> Response:
        return whole_answer(body, _origin(request, endpoint), _used_ids(request))

    def reader(self, request: Request, endpoint: Endpoint) -> StreamReader:
        return ResponsesReader(_origin(request, endpoint), _used_ids(request))


def _origin(request: Request, endpoint: Endpoint) -> str:
    return f"openai_responses {urlsplit(endpoint.base_url).netloc} {request.model.name}"


def _stale(messages: Sequence[Message], settings: Settings) -> set[int]:
    """The messages (by `id`) whose reasoning was refused, and those before them."""
    if not any(entry.startswith("reasoning ") for entry in settings.without):
        return set()
    refused = [at for at, message in enumerate(messages) if _refusal_of(message) in settings.without]
    return {id(message) for message in messages[: refused[-1] + 1 if refused else 0]}


def _used_ids(request: Request) -> list[str]:
    return [call.id for message in request.messages for call in message.tool_calls]


def _refusal_of(message: Message) -> str:
    made = message.echo.json if message.echo else ""
    return f"reasoning {hashlib.sha256(made.encode()).hexdigest()[:16]}"


def _definition(tool: Tool) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, **tool.parameters}
    # Without `strict` the API takes a schema as strict, and refuses one that has optional arguments.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": schema,
        "strict": False,
    }


def _items(message: Message) -> bytes:
    """The input items of a message, with commas between; nothing for one without content."""
    made = message.memo.get("responses items")
    if made is None:
        made = b",".join(map(dumps, _made_items(message)))
        message.memo["responses items"] = made
    assert isinstance(made, bytes)
    return made


def _made_items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        output: Any = _parts(message.content, "input_text") if message.has_image else message.text
        if not message.has_image and not message.text.strip():
            output = NO_OUTPUT
        return [{"type": "function_call_output", "call_id": _legal_id(message.tool_call_id or ""), "output": output}]
    content = _parts(message.content, "output_text" if message.role == "assistant" else "input_text")
    items: list[dict[str, Any]] = [{"type": "message", "role": message.role, "content": content}] if content else []
    for call in message.tool_calls:
        made = {"call_id": _legal_id(call.id), "name": call.name, "arguments": _arguments(call)}
        items.append({"type": "function_call", **made})
    return items


def _arguments(call: ToolCall) -> str:
    """The arguments as the model wrote them, or for a server that reads JSON strictly, as they should have been."""
    try:
        if isinstance(json.loads(call.arguments, parse_constant=_refuse), dict):
            return call.arguments
    except (ValueError, RecursionError):
        pass
    return dumps(arguments_of(call)).decode()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _parts(parts: Iterable[Part], text_type: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Image):
            data = base64.b64encode(part.data).decode()
            made.append({"type": "input_image", "image_url": f"data:{part.media_type};base64,{data}"})
        elif part.text:
            made.append({"type": text_type, "text": part.text})
    return made


def _legal_id(call_id: str) -> str:
    """The id, or for one that is too long here, one that is always made of it."""
    return call_id if 0 < len(call_id) <= 64 else f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:16]}"


def _echoed(message: Message) -> bytes:
    """The items as the model made them, if they still are those of the message: a pattern may have changed it."""
    made = message.memo.get("responses echo")
    if made is None:
        assert message.echo is not None
        output = json.loads(message.echo.json)["output"]
        made = b",".join(dumps(_legal(item)) for item in output) if _same_content(message, output) else _items(message)
        message.memo["responses echo"] = made
    assert isinstance(made, bytes)
    return made


def _same_content(message: Message, output: Iterable[dict[str, Any]]) -> bool:
    content = [as_list(item.get("content")) for item in output if item["type"] == "message"]
    said = "".join(as_text(as_dict(part).get("text")) for part in itertools.chain(*content))
    called = [item["call_id"] for item in output if item["type"] == "function_call"]
    return said == message.text and called == [call.id for call in message.tool_calls]


def _legal(item: dict[str, Any]) -> dict[str, Any]:
    """The item, with what a server would refuse in it mended: the id of a call, and arguments that are no JSON."""
    if item["type"] != "function_call":
        return item
    call = ToolCall(item["call_id"], "", item["arguments"])
    return {**item, "call_id": _legal_id(call.id), "arguments": _arguments(call)}
