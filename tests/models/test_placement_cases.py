"""Conversations with steers, each with what its provider is to be sent: asked for by the public clients over a socket.

`tests/cases/placement` has one file for each. A conversation there stands as somebody might send it, legal or not; the
steers in it are taken out, and pinned where they arrived.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from steerkit.core.message import Image, Message, Part, Text
from steerkit.core.model import Endpoint, ModelRef, Placement, Request
from steerkit.core.placement import Pin, place
from steerkit.core.tool import Tool
from steerkit.models import anthropic_messages, openai_chat, openai_responses
from steerkit.models.client import WireClient
from steerkit.testing import Gateway, Reply, raw, say

# Cases that say nothing about a request of ours, and why.
NOT_OURS = {
    "gemini_native": "steerkit speaks to Gemini by its OpenAI endpoint",
    "anthropic_steer_dropped_later": "a steer that was sent is never dropped: see the test of ten steps",
}

# Where the case shows another mode than the one that steerkit takes by itself.
CHOSEN: dict[str, Placement] = {"mistral_common_new_after_tool": "raw"}  # legal there; the bridge is legal everywhere

SYSTEM_STEER = "The user sent the following message while you were working: "
GET_WEATHER = Tool("get_weather", "", {"type": "object"}, lambda: None)

FOUND = {path.stem: path for path in sorted((Path(__file__).parent.parent / "cases" / "placement").glob("*.json"))}
CASES = [name for name in FOUND if name not in NOT_OURS]


def load(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(FOUND[name].read_text("utf-8"))
    return case


def test_there_are_cases() -> None:
    assert CASES


def client_and_model(provider: str) -> tuple[Callable[[Endpoint], WireClient], str]:
    model = provider.partition(":")[2] or provider
    if provider.startswith("anthropic"):
        return anthropic_messages, model.rstrip("+") if ":" in provider else "claude-sonnet-4-5"
    return (openai_responses if provider.endswith("responses") else openai_chat), model


def sent(case: dict[str, Any], placement: Placement) -> Any:
    """The body that the client sends for the case's conversation."""
    make, model = client_and_model(case["provider"])
    replies: list[Reply] = []
    with Gateway(lambda _: replies.pop()) as gateway:
        client = make(gateway.endpoint_with(placement=placement, max_retries=0))

        def ask(messages: Sequence[Message], pins: Sequence[Pin], reply: Reply) -> Message:
            replies.append(reply)
            placed, _ = place(messages, pins)
            request = Request(ModelRef(model), placed, system=system_of(case), tools=(GET_WEATHER,))
            return client.complete(request).message

        # The model itself says each of its messages, so that what it wants back comes back as it does in a run.
        messages, pins = conversation_of(case, make, ask)
        ask(messages, pins, say("Done."))
        client.close()
        return gateway.requests[-1].body


def system_of(case: dict[str, Any]) -> str | None:
    first = case["conversation"][0]
    return first["content"] if first["role"] == "system" else None


def conversation_of(
    case: dict[str, Any],
    make: Callable[[Endpoint], WireClient],
    ask: Callable[[Sequence[Message], Sequence[Pin], Reply], Message],
) -> tuple[list[Message], list[Pin]]:
    """The conversation without steers, and the steers; each is pinned when the model is asked next."""
    messages: list[Message] = []
    pins: list[Pin] = []
    waiting: list[Message] = []

    def take() -> None:
        pins.extend(Pin(steer, tuple(messages)) for steer in waiting)
        waiting.clear()

    answers = [item for item in case["want"]["messages"] if item["role"] == "assistant"]
    for item in case["conversation"][1 if system_of(case) else 0 :]:
        content = parts_of(item["content"]) if item.get("content") else ()
        if item["role"] == "assistant":
            take()
            messages.append(ask(messages, pins, raw(json.dumps(answer_of(item, answers, make)))))
        elif item["role"] == "tool":
            text, _, folded = as_text(content).partition("\n\n")
            call_id = item["tool_call_id"].replace("call", "toolu" if make is anthropic_messages else "call")
            messages.append(Message("tool", text if folded else content, tool_call_id=call_id))
            if folded:
                waiting.append(steer(folded))
        elif messages:
            label = SYSTEM_STEER if "+" in case["provider"] and make is anthropic_messages else ""
            waiting.append(steer(label + as_text(content)))
        else:
            messages.append(Message("user", content))
    take()
    return messages, pins


def steer(text: str) -> Message:
    return Message("user", text, meta={"steer_id": text})


def parts_of(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(
        Text(part["text"]) if part["type"] == "text" else picture(part["image_url"]["url"]) for part in content
    )


def picture(url: str) -> Image:
    media_type, data = re.fullmatch(r"data:(.*);base64,(.*)", url).groups()  # type: ignore[union-attr]
    return Image(base64.b64decode(data), media_type)


def as_text(content: Iterable[Part]) -> str:
    return "".join(part.text for part in content if isinstance(part, Text))


def answer_of(item: dict[str, Any], answers: list[Any], make: Callable[[Endpoint], WireClient]) -> Any:
    """The body of the reply in which the model said this assistant message."""
    if make is openai_chat:
        return {"choices": [{"message": item, "finish_reason": "stop"}]}
    if make is anthropic_messages:
        return {"type": "message", "content": answers.pop(0)["content"], "stop_reason": "tool_use", "usage": {}}
    output = [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in item["tool_calls"]]
    return {"object": "response", "status": "completed", "output": output}


def shown(messages: Any) -> list[Any]:
    """Messages with what means the same written the same way."""
    return [_plain(message) for message in messages]


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    message = {key: value for key, value in message.items() if key != "cache_control"}
    if message["role"] == "assistant" and not message.get("content"):
        message["content"] = None  # "", null and no content at all
    content = message.get("content")
    if isinstance(content, list):
        blocks = [{key: value for key, value in block.items() if key != "cache_control"} for block in content]
        for block in blocks:
            if block["type"] == "tool_result" and isinstance(block["content"], list):
                block["content"] = "".join(part["text"] for part in block["content"])
        message["content"] = blocks
        if message["role"] in ("assistant", "system") and all(block["type"] == "text" for block in blocks):
            message["content"] = "".join(block["text"] for block in blocks)
    return message


def chat_form(items: Any) -> list[dict[str, Any]]:
    """Items of the Responses format as chat messages."""
    messages: list[dict[str, Any]] = []
    for item in items:
        if item.get("type") == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif item.get("type") == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
        else:
            text = item["content"] if isinstance(item["content"], str) else item["content"][0]["text"]
            messages.append({"role": item["role"], "content": text})
    return messages


def messages_in(body: Any, case: dict[str, Any]) -> list[Any]:
    if "input" not in body:
        return shown(body["messages"])
    system = [{"role": "system", "content": system_of(case)}]
    assert body["instructions"] == system_of(case)
    return shown(system + chat_form(body["input"]))


@pytest.mark.parametrize("name", CASES)
def test_the_provider_is_sent_what_it_takes(name: str) -> None:
    case = load(name)
    body = sent(case, CHOSEN.get(name, "auto"))
    assert messages_in(body, case) == shown(case["want"]["messages"])
    if isinstance(case["want"].get("system"), str):
        system = body["system"]
        assert (system if isinstance(system, str) else "".join(block["text"] for block in system)) == system_of(case)


@pytest.mark.parametrize("name", [name for name in CASES if "alternative" in load(name)])
def test_fold_sends_the_alternative(name: str) -> None:
    case = load(name)
    assert shown(sent(case, "fold")["messages"]) == shown(case["alternative"]["messages"])
