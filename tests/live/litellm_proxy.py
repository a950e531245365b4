"""A LiteLLM proxy with mock models, its errors and its cut streams, through our chat client.

python -m tests.live.litellm_proxy BASE_URL KEY
"""

from __future__ import annotations

import sys

from steerkit import Endpoint, ModelError, ModelRef, Request, Response, Tool, user
from steerkit.models import openai_chat
from tests.live.checks import run_checks

WEATHER = Tool("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}}, str)


def ask(model: str, *, stream: bool, tools: tuple[Tool, ...] = ()) -> Response:
    endpoint = Endpoint(sys.argv[1], sys.argv[2], max_retries=0, read_timeout=20)
    request = Request(ModelRef(model), (user("Hello."),), tools=tools)
    return openai_chat(endpoint).complete(request, (lambda _text: None) if stream else None)


def error(model: str, *, stream: bool) -> ModelError:
    try:
        response = ask(model, stream=stream)
    except ModelError as failed:
        return failed
    raise AssertionError(f"{model} answered {response}")


def a_plain_and_a_streamed_answer() -> str:
    texts = [ask("mock", stream=stream).message.text for stream in (False, True)]
    assert texts == ["Hello from the mock model."] * 2
    return texts[0]


def a_tool_call() -> str:
    (call,) = ask("mock-tools", stream=False, tools=(WEATHER,)).message.tool_calls
    assert (call.name, call.parse()) == ("get_weather", {"city": "Paris"})
    return call.arguments


def errors_have_their_kind() -> str:
    kinds = {"mock-ratelimit": "rate_limit", "mock-context": "context_length", "mock-500": "server"}
    for model, kind in kinds.items():
        for stream in (False, True):
            found = error(model, stream=stream)
            assert found.kind == kind, (model, stream, found.kind, str(found))
    return ", ".join(kinds.values())


def a_stream_that_fails_is_an_error() -> str:
    return error("mock-stream-error", stream=True).kind


def a_slow_answer_comes() -> str:
    return ask("mock-slow", stream=True).message.text


def a_dead_upstream_is_an_error() -> str:
    return error("dead", stream=False).kind


def a_wrong_key_is_refused() -> str:
    wrong = openai_chat(Endpoint(sys.argv[1], "sk-wrong-key-here", max_retries=0))
    try:
        wrong.complete(Request(ModelRef("mock"), (user("Hello."),)))
    except ModelError as failed:
        # Without a database behind it, the proxy looks the key up nowhere and answers 400.
        assert failed.kind in ("auth", "bad_request") and "sk-wrong-key-here" not in str(failed), str(failed)
        return str(failed)
    raise AssertionError("it was let in")


if __name__ == "__main__":
    run_checks(
        "LiteLLM",
        [
            a_plain_and_a_streamed_answer,
            a_tool_call,
            errors_have_their_kind,
            a_stream_that_fails_is_an_error,
            a_slow_answer_comes,
            a_dead_upstream_is_an_error,
            a_wrong_key_is_refused,
        ],
    )
