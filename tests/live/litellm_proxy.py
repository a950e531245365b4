"""A LiteLLM proxy with mock models, its errors and its cut streams, through our chat client.

python -m tests.live.litellm_proxy BASE_URL KEY
"""

from __future__ import annotations

import sys

from steerkit import (
    Endpoint,
    Event,
    ModelError,
    ModelRef,
    Request,
    Response,
    Run,
    Runner,
    Spec,
    Tool,
    ToolCallEvent,
    user,
)
from steerkit.models import openai_chat
from steerkit.patterns import ReAct
from steerkit.testing import Gateway, Reply, call, say
from tests.live.checks import run_checks

WEATHER = Tool(
    "get_weather",
    "The weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}},
    lambda city: f"{city}: rain",
)


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
    (asked,) = ask("mock-tools", stream=False, tools=(WEATHER,)).message.tool_calls
    assert (asked.name, asked.parse()) == ("get_weather", {"city": "Paris"})
    return asked.arguments


def errors_have_their_kind() -> str:
    kinds = {
        "mock-ratelimit": "rate_limit",
        "mock-context": "context_length",
        "mock-500": "server",
        "mock-timeout": "timeout",
    }
    for model, kind in kinds.items():
        for stream in (False, True):
            found = error(model, stream=stream)
            assert found.kind == kind, (model, stream, found.kind, str(found))
    return ", ".join(kinds.values())


def a_stream_that_fails_is_an_error() -> str:
    return error("mock-stream-error", stream=True).kind


def a_stream_that_its_upstream_cuts_is_an_error() -> str:
    with upstream([say("Hello, world, and all who live in it.").cut(after=16)]):
        failed = error("local", stream=True)
    assert failed.partial == "Hello, world, an", failed.partial
    return f"{failed.kind}: {failed}"


def a_steered_run() -> str:
    spec = Spec("local", "react", max_steps=4, tools=[WEATHER])
    with upstream([call("get_weather", city="Oslo"), say("Rain, and PELICAN.")]) as gateway:
        endpoint = Endpoint(sys.argv[1], sys.argv[2], max_retries=0, read_timeout=20)
        result = Runner(openai_chat, [ReAct()]).run(spec, [user("The weather in Oslo?")], endpoint, steer_at_the_call)
        *_, tool, steer = gateway.requests[-1].body["messages"]
    assert (tool["role"], steer["role"]) == ("tool", "user") and "PELICAN" in steer["content"], (tool, steer)
    return result.output


def steer_at_the_call(run: Run, event: Event) -> None:
    if isinstance(event, ToolCallEvent):
        run.steer("Say PELICAN too.")


def upstream(script: list[Reply]) -> Gateway:
    """Where the proxy's model "local" is."""
    return Gateway(script, key="none", port=18080)


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
            a_stream_that_its_upstream_cuts_is_an_error,
            a_steered_run,
            a_slow_answer_comes,
            a_dead_upstream_is_an_error,
            a_wrong_key_is_refused,
        ],
    )
