"""The official clients of OpenAI and Anthropic read what our Gateway answers: so the fake is faithful.

python -m tests.live.official_clients      in an environment with openai, anthropic and attrs
"""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai

from steerkit.testing import Gateway, call, fail, say
from tests.live.checks import run_checks

ASKED: Any = [{"role": "user", "content": "What is a vault?"}]
PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "search", "description": "", "parameters": PARAMETERS}}
BOTH = say("Let me look.") + call("search", query='a "vault"')


def of_openai(gateway: Gateway) -> openai.OpenAI:
    return openai.OpenAI(base_url=gateway.endpoint.base_url, api_key=gateway.endpoint.api_key, max_retries=0)


def of_anthropic(gateway: Gateway) -> anthropic.Anthropic:
    url = gateway.endpoint.base_url.removesuffix("/v1")
    return anthropic.Anthropic(base_url=url, api_key=gateway.endpoint.api_key, max_retries=0)


def chat_completions_plain() -> str:
    with Gateway([BOTH.using(12, 3)]) as gateway:
        answer = of_openai(gateway).chat.completions.create(model="m", messages=ASKED, tools=[CHAT_TOOL])
    message = answer.choices[0].message
    assert message.content == "Let me look." and message.tool_calls
    assert json.loads(message.tool_calls[0].function.arguments) == {"query": 'a "vault"'}
    assert answer.usage and answer.usage.prompt_tokens == 12
    return f"finish {answer.choices[0].finish_reason}"


def chat_completions_streamed() -> str:
    with (
        Gateway([BOTH]) as gateway,
        of_openai(gateway).chat.completions.stream(
            model="m", messages=ASKED, tools=[CHAT_TOOL], stream_options={"include_usage": True}
        ) as stream,
    ):
        answer = stream.get_final_completion()
    message = answer.choices[0].message
    assert message.content == "Let me look." and message.tool_calls and answer.usage
    assert json.loads(message.tool_calls[0].function.arguments) == {"query": 'a "vault"'}
    return f"finish {answer.choices[0].finish_reason}"


def chat_completions_errors() -> str:
    with Gateway([fail(429, "slow down")]) as gateway:
        try:
            of_openai(gateway).chat.completions.create(model="m", messages=ASKED)
        except openai.RateLimitError as error:
            assert "slow down" in str(error)
        orphan: Any = [*ASKED, {"role": "tool", "tool_call_id": "x", "content": "?"}]
        try:
            of_openai(gateway).chat.completions.create(model="m", messages=orphan)
        except openai.BadRequestError as error:
            return str(error.status_code)
    raise AssertionError("no error")


def responses_plain() -> str:
    with Gateway([BOTH]) as gateway:
        tool: Any = {"type": "function", "name": "search", "parameters": PARAMETERS, "strict": False}
        answer = of_openai(gateway).responses.create(model="m", input=ASKED, tools=[tool])
    assert answer.output_text == "Let me look."
    (asked,) = [item for item in answer.output if item.type == "function_call"]
    assert json.loads(asked.arguments) == {"query": 'a "vault"'}
    return answer.status or ""


def responses_streamed() -> str:
    with Gateway([BOTH]) as gateway, of_openai(gateway).responses.stream(model="m", input=ASKED) as stream:
        answer = stream.get_final_response()
    assert answer.output_text == "Let me look."
    return answer.status or ""


def messages_plain() -> str:
    tool: Any = {"name": "search", "input_schema": PARAMETERS}
    with Gateway([BOTH.using(12, 3)]) as gateway:
        answer = of_anthropic(gateway).messages.create(model="m", max_tokens=99, messages=ASKED, tools=[tool])
    text, use = answer.content
    assert text.type == "text" and text.text == "Let me look."
    assert use.type == "tool_use" and use.input == {"query": 'a "vault"'}
    return str(answer.stop_reason)


def messages_streamed() -> str:
    with (
        Gateway([BOTH]) as gateway,
        of_anthropic(gateway).messages.stream(model="m", max_tokens=99, messages=ASKED) as stream,
    ):
        answer = stream.get_final_message()
    assert [block.type for block in answer.content] == ["text", "tool_use"]
    return str(answer.stop_reason)


def messages_errors() -> str:
    with Gateway([fail(529, "busy")]) as gateway:
        try:
            of_anthropic(gateway).messages.create(model="m", max_tokens=99, messages=ASKED)
        except anthropic.APIStatusError as error:
            assert "busy" in str(error)
            return str(error.status_code)
    raise AssertionError("no error")


if __name__ == "__main__":
    run_checks(
        f"openai {openai.__version__}, anthropic {anthropic.__version__}",
        [
            chat_completions_plain,
            chat_completions_streamed,
            chat_completions_errors,
            responses_plain,
            responses_streamed,
            messages_plain,
            messages_streamed,
            messages_errors,
        ],
    )
