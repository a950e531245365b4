"""Requests and answers of the chat completions format, for the tests of its wire."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve

from steerkit.core.errors import ModelError
from steerkit.core.message import Message, ToolCall, assistant, user
from steerkit.core.model import Endpoint, ModelRef, Request, Response
from steerkit.core.tool import Tool
from steerkit.models.openai_chat_wire import ChatWire
from steerkit.models.sse import ServerEvent
from steerkit.models.wire import Settings

WIRE = ChatWire()
LOCAL = Endpoint("http://localhost:8080/v1", "key")
OPENAI = Endpoint("https://api.openai.com/v1", "key")
GEMINI = Endpoint("https://generativelanguage.googleapis.com/v1beta/openai", "key")
DEEPSEEK = Endpoint("https://api.deepseek.com", "key")
RAW, BRIDGE = Settings("raw"), Settings("bridge")
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}}, lambda at: at)


def asked(*messages: Message, **fields: Any) -> Request:
    return Request(fields.pop("model", ModelRef("m")), messages or (user("go"),), **fields)


def body(
    request: Request, endpoint: Endpoint = LOCAL, settings: Settings | None = None, stream: bool = False
) -> dict[str, Any]:
    settings = settings or WIRE.settings(endpoint, request.model.name)
    sent: dict[str, Any] = json.loads(WIRE.encode(request, endpoint, settings, stream=stream))
    return sent


def sent(*messages: Message, endpoint: Endpoint = LOCAL, settings: Settings | None = None, model: str = "m") -> Any:
    return body(asked(*messages, model=ModelRef(model)), endpoint, settings)["messages"]


def called(*arguments: str, call_id: str = "call_1", **fields: Any) -> Message:
    calls = [ToolCall(call_id, "look", text) for text in arguments or ("{}",)]
    return evolve(assistant(tool_calls=calls), **fields)


def read(*deltas: Any, finish: str | None = "stop", done: bool = True, request: Request | None = None) -> Response:
    reader = WIRE.reader(request or asked(tools=(LOOK,)), LOCAL)
    for delta in deltas:
        reader.feed(event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))
    if finish:
        reader.feed(event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
    if done:
        reader.feed(ServerEvent("", "[DONE]"))
    return reader.response()


def event(chunk: Any, name: str = "") -> ServerEvent:
    return ServerEvent(name, json.dumps(chunk))


def piece(arguments: Any = None, **fields: Any) -> dict[str, Any]:
    function = {key: fields.pop(key) for key in ("name",) if key in fields}
    return {"tool_calls": [{**fields, "function": {**function, "arguments": arguments}}]}


def calls(response: Response) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in response.message.tool_calls]


def echo_of(response: Response) -> Any:
    assert response.message.echo is not None
    return json.loads(response.message.echo.json)


def refusal(text: str, **fields: Any) -> ModelError:
    return ModelError(text, **{"kind": "bad_request", "status": 400, **fields})
