"""What a stream costs: many small pieces, how late each is shown, one huge one; and what a step encodes anew."""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import requests
from attrs import evolve

from steerkit import Endpoint, Message, Request, Tool, user
from steerkit.core.model import ModelRef
from steerkit.models import openai_chat, openai_chat_wire
from steerkit.models.lenient import dumps
from tests.bench.micro import conversation


def ours(endpoint: Endpoint, model: str) -> float:
    """Seconds of CPU in this process for one stream."""
    client = openai_chat(endpoint)
    shown: list[str] = []
    request = Request(ModelRef(model), (user("Go on."),))
    started = time.process_time()
    client.complete(request, shown.append)
    assert shown
    return time.process_time() - started


def by_hand(endpoint: Endpoint, model: str) -> float:
    """The floor: `requests.iter_lines` and `json.loads`."""
    body = {"model": model, "messages": [{"role": "user", "content": "Go on."}], "stream": True}
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    shown: list[str] = []
    with requests.Session() as session:
        started = time.process_time()
        with session.post(f"{endpoint.base_url}/chat/completions", json=body, headers=headers, stream=True) as response:
            for line in response.iter_lines():
                if line.startswith(b"data: ") and line != b"data: [DONE]":
                    text = json.loads(line[6:])["choices"][0]["delta"].get("content")
                    if text:
                        shown.append(text)
        assert shown
        return time.process_time() - started


def lateness_seconds(endpoint: Endpoint) -> float:
    """From the server's write to `on_text`: the median of 100 pieces, 5 ms apart."""
    late: list[float] = []
    openai_chat(endpoint).complete(
        Request(ModelRef("ticks-100-5"), (user("Go on."),)), lambda text: late.append(time.monotonic() - float(text))
    )
    return statistics.median(late)


def closing(endpoint: Endpoint) -> Endpoint:
    """The same server, whose bodies end with the connection."""
    return evolve(endpoint, base_url=endpoint.base_url.replace("/v1", "/close/v1"))


def encoded_bytes(steps: int = 400) -> tuple[float, int]:
    """(bytes that were made anew in the last of so many steps, bytes of its body)."""
    made: list[int] = []

    def counting(value: Any) -> bytes:
        made.append(len(dumps(value)))
        return dumps(value)

    wire, endpoint = openai_chat_wire.ChatWire(), Endpoint("http://localhost/v1")
    tool = Tool("search", "Search.", {"type": "object", "properties": {}}, lambda: "")
    messages: list[Message] = conversation(2 * steps)
    vars(openai_chat_wire)["dumps"] = counting
    try:
        for number in range(1, steps + 1):
            made.clear()
            request = Request(ModelRef("m"), tuple(messages[: 2 * number - 1]), tools=(tool,))
            body = wire.encode(request, endpoint, wire.settings(endpoint, "m"), stream=True)
    finally:
        vars(openai_chat_wire)["dumps"] = dumps
    return sum(made), len(body)
