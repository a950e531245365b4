"""Answers of providers, each with what it means, read by the public clients from a real socket.

`tests/cases/wire` has one file for each answer. It is sent whole, and cut into small writes.
"""

from __future__ import annotations

import base64
import email.utils
import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from steerkit.core.errors import ModelError
from steerkit.core.message import ToolCall, user
from steerkit.core.model import Endpoint, ModelRef, Request, Response, Usage
from steerkit.core.tool import Tool
from steerkit.models import anthropic_messages, openai_chat, openai_responses
from steerkit.models.client import WireClient
from steerkit.testing import Gateway, Raw, raw

CASES = sorted((Path(__file__).parent.parent / "cases" / "wire").glob("*.json"))

CLIENTS: dict[str, Callable[[Endpoint], WireClient]] = {
    "chat": openai_chat,
    "messages": anthropic_messages,
    "responses": openai_responses,
}

# Errors that the cases name and steerkit does not tell apart by kind.
KINDS = {
    "unsupported_param": "bad_request",  # `.param` says which
    "not_found": "bad_request",  # `.status` is 404; a wrong name is mended as any wrong field is
    "protocol": "bad_request",  # what answered is no model's API: base_url is wrong
    "thinking_bound": "bad_request",  # the wire drops the thinking and sends once more; what is left is a refusal
}


def test_there_are_cases() -> None:
    assert CASES


@frozen
class Seen:
    """What a client made of an answer."""

    response: Response | None
    error: ModelError | None
    texts: list[str]


def ask(case: dict[str, Any], write_size: int | None) -> Seen:
    tools = tuple(Tool(name, "", {"type": "object"}, lambda: None) for name in case.get("tools", ()))
    request = Request(ModelRef("m"), (user("go"),), tools=tools)
    texts: list[str] = []
    # A reset takes what was not read yet with it, so it waits until the text was shown.
    all_shown = threading.Event()

    def show(text: str) -> None:
        texts.append(text)
        if "".join(texts) == case["expect"]["text"]:
            all_shown.set()

    answer = reply(case, write_size)
    if answer.abort:
        answer = answer.pausing(all_shown, len(answer.body) - 1)
    with Gateway(lambda _: answer) as gateway:
        client = CLIENTS[case["api"]](gateway.endpoint_with(max_retries=0))
        try:
            response = client.complete(request, show if case["kind"] == "stream" else None)
        except ModelError as error:
            return Seen(None, error, texts)
        finally:
            client.close()
    return Seen(response, None, texts)


def reply(case: dict[str, Any], write_size: int | None) -> Raw:
    hints = case.get("wire") or {}
    body = base64.b64decode(case["body_b64"]) if case.get("body_b64") else case["body"].encode()
    headers = {name: re.sub(r"^@http-date\+(\d+)$", _date_in, value) for name, value in case["headers"].items()}
    framing = hints.get("framing", "chunked" if case["kind"] == "stream" else "length")
    return raw(
        body,
        status=case["status"],
        headers=headers,
        write_size=write_size or hints.get("slice"),
        framing=framing,
        abort=hints.get("abort", False),
    )


def _date_in(match: re.Match[str]) -> str:
    return email.utils.formatdate(time.time() + int(match[1]), usegmt=True)


def check_error(seen: Seen, expect: dict[str, Any]) -> None:
    error = seen.error
    assert error is not None
    assert error.kind == KINDS.get(expect["error"], expect["error"])
    assert error.partial == expect["text"]
    # `retry` is whether it is sent again by itself, which no request is once a piece of its answer was shown.
    assert (error.retryable and not seen.texts) == expect["retry"]
    if "param" in expect:
        assert error.param == expect["param"]
    if "retry_after" in expect:
        # A date has whole seconds, and some time has passed.
        assert error.retry_after == pytest.approx(expect["retry_after"], abs=0 if expect["retry_after"] < 5 else 2)


def check_response(response: Response, expect: dict[str, Any]) -> None:
    message = response.message
    assert message.text == expect["text"]
    assert response.finish == expect["finish"]
    assert response.usage == (expect["usage"] and usage_of(expect["usage"]))
    assert response.reasoning == expect.get("reasoning", response.reasoning)
    assert response.refusal == expect.get("refusal", "")
    assert len(message.tool_calls) == len(expect["tool_calls"])
    for call, expected in zip(message.tool_calls, expect["tool_calls"], strict=True):
        check_call(call, expected)
    assert len({call.id for call in message.tool_calls}) == len(message.tool_calls)
    if "echo" in expect:
        assert message.echo is not None and json.loads(message.echo.json) == expect["echo"]


def usage_of(tokens: dict[str, int]) -> Usage:
    return Usage(tokens["input"], tokens["output"], tokens.get("cached", 0), tokens.get("cache_write", 0))


def check_call(call: ToolCall, expected: dict[str, Any]) -> None:
    assert call.id and call.id == expected.get("id", call.id)
    assert call.name == expected["name"]
    if expected["arguments"] is not None:
        assert call.parse() == expected["arguments"]
        return
    # null stands for what is no JSON object: it is kept as it was written, and can never be run.
    assert call.arguments == expected["raw"]
    with pytest.raises(ValueError):
        call.parse()


@pytest.mark.parametrize("write_size", [None, 1, 2, 3, 7, 64])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_an_answer_is_read_as_it_is_meant_however_it_is_cut(path: Path, write_size: int | None) -> None:
    case = json.loads(path.read_text("utf-8"))
    seen = ask(case, write_size)
    if case["expect"]["error"]:
        check_error(seen, case["expect"])
    else:
        assert seen.error is None and seen.response is not None
        check_response(seen.response, case["expect"])
    if case["kind"] == "stream":
        assert "".join(seen.texts) == case["expect"]["text"]
        assert "" not in seen.texts
