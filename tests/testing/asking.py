"""Ask a Gateway over HTTP, as a client without any knowledge of steerkit does."""

from __future__ import annotations

import json
import threading
from typing import Any

import requests

from steerkit.testing import Gateway

PATIENCE = 20.0  # seconds after which a wait in a test has failed

CHAT, MESSAGES, RESPONSES = "/chat/completions", "/messages", "/responses"
PATHS = (CHAT, MESSAGES, RESPONSES)

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
FUNCTION = {"name": "search", "parameters": SCHEMA}
TOOLS: dict[str, list[dict[str, Any]]] = {
    CHAT: [{"type": "function", "function": FUNCTION}],
    MESSAGES: [{"name": "search", "input_schema": SCHEMA}],
    RESPONSES: [{"type": "function", **FUNCTION}],
}


class WatchedGate(threading.Event):
    """A gate that tells when somebody is about to wait at it."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at = threading.Event()

    def is_set(self) -> bool:
        self.looked_at.set()
        return super().is_set()


def body_for(path: str, **fields: Any) -> dict[str, Any]:
    """A body that the format of `path` accepts, with these fields changed; a field that is None is left out."""
    said = [{"role": "user", "content": "Why?"}]
    bodies: dict[str, dict[str, Any]] = {
        CHAT: {"messages": said},
        MESSAGES: {"messages": said, "max_tokens": 100},
        RESPONSES: {"input": said},
    }
    body = {"model": "m", **bodies[path], **fields}
    return {name: value for name, value in body.items() if value is not None}


def post(gateway: Gateway, path: str, body: Any = None, *, key: str = "test-key", **options: Any) -> requests.Response:
    headers = {"authorization": f"Bearer {key}", "anthropic-version": "2023-06-01", **options.pop("headers", {})}
    data = (
        body
        if isinstance(body, bytes)
        else json.dumps(body_for(path.partition("?")[0]) if body is None else body).encode()
    )
    url = gateway.endpoint.base_url + path
    return requests.post(url, data=data, headers=headers, timeout=PATIENCE, **options)


def events(response: requests.Response) -> list[dict[str, Any]]:
    """The JSON of every event of a streamed answer."""
    assert response.headers["content-type"] == "text/event-stream"
    lines = [line for line in response.content.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]
