"""The same agent twice: a loop written by hand over `requests`, and steerkit. Each runs in a fresh process.

    python -m tests.bench.loops floor|steerkit BASE_URL KEY STEPS plain|stream

prints, as JSON, milliseconds a step: CPU and wall over all steps, and CPU over the last ones.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

Json = dict[str, Any]

TOOL: Json = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
TASK = "Add the numbers, one after the other."
_LAST = 20


def floor_requests(base_url: str, key: str, steps: int, stream: bool, mark) -> None:
    """What a careful person writes in an afternoon."""
    import requests

    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {key}"
    messages: list[Json] = [{"role": "user", "content": TASK}]
    while True:
        mark()
        body: Json = {"model": f"steps-{steps}", "messages": messages, "tools": [TOOL]}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        response = session.post(f"{base_url}/chat/completions", json=body, stream=stream, timeout=60)
        response.raise_for_status()
        message = read_stream(response) if stream else response.json()["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return
        for call in message["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            result = str(arguments["a"] + arguments["b"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def read_stream(response) -> Json:
    text: list[str] = []
    calls: dict[int, Json] = {}
    for line in response.iter_lines():
        if not line.startswith(b"data: ") or line == b"data: [DONE]":
            continue
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            if delta.get("content"):
                text.append(delta["content"])
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(
                    piece["index"],
                    {"id": piece.get("id"), "type": "function", "function": {"name": "", "arguments": ""}},
                )
                call["function"]["name"] += piece["function"].get("name") or ""
                call["function"]["arguments"] += piece["function"].get("arguments") or ""
    message: Json = {"role": "assistant", "content": "".join(text) or None}
    if calls:
        message["tool_calls"] = list(calls.values())
    return message


def with_steerkit(base_url: str, key: str, steps: int, stream: bool, mark) -> None:
    from steerkit import Endpoint, Runner, Spec, StepEvent, tool, user
    from steerkit.models import openai_chat
    from steerkit.patterns import ReAct

    def watch(_run, event):
        if type(event) is StepEvent:
            mark()

    @tool
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        return str(a + b)

    spec = Spec(f"steps-{steps}", "react", max_steps=steps, tools=[add], stream=stream)
    Runner(openai_chat, [ReAct()]).run(spec, [user(TASK)], Endpoint(base_url, key), watch)


def main() -> None:
    which, base_url, key, steps, mode = sys.argv[1:]
    loop = {"floor": floor_requests, "steerkit": with_steerkit}[which]
    loop(base_url, key, 3, mode == "stream", lambda: None)  # imports, the first connection
    marks: list[float] = []
    wall, cpu = time.perf_counter(), time.process_time()
    loop(base_url, key, int(steps), mode == "stream", lambda: marks.append(time.process_time()))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert len(marks) == int(steps), (len(marks), steps)
    last = (marks[-1] - marks[-1 - _LAST]) / _LAST
    print(json.dumps({"cpu": 1000 * cpu / int(steps), "wall": 1000 * wall / int(steps), "last": 1000 * last}))


if __name__ == "__main__":
    main()
