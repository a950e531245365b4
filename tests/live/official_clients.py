"""The official clients of OpenAI and Anthropic read what our Gateway answers: so the fake is faithful.

python -m tests.live.official_clients      in an environment with openai, anthropic and attrs
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai

from steerkit.testing import Gateway, call, fail, say
from tests.live.checks import run_checks

ASKED: Any = [{"role": "user", "content": "What is a vault?"}]
PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "search", "description": "", "parameters": PARAMETERS}}
RESPONSES_TOOL: Any = {"type": "function", "name": "search", "parameters": PARAMETERS, "strict": False}
CLAUDE_TOOL: Any = {"name": "search", "input_schema": PARAMETERS}
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
        else:
            raise AssertionError("no error")
        orphan: Any = [*ASKED, {"role": "tool", "tool_call_id": "x", "content": "?"}]
        try:
            of_openai(gateway).chat.completions.create(model="m", messages=orphan)
        except openai.BadRequestError as error:
            return str(error.status_code)
    raise AssertionError("no error")


def chat_completions_with_a_steer() -> str:
    with Gateway([BOTH, say("A strong room.")]) as gateway:
        client = of_openai(gateway)
        asked = client.chat.completions.create(model="m", messages=ASKED, tools=[CHAT_TOOL]).choices[0].message
        assert asked.tool_calls
        result: Any = {"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": "12 matches"}
        messages: Any = [*ASKED, asked, result, {"role": "user", "content": "look in vault.py"}]
        answer = client.chat.completions.create(model="m", messages=messages, tools=[CHAT_TOOL])
    assert answer.choices[0].message.content == "A strong room."
    return f"finish {answer.choices[0].finish_reason}"


def chat_completions_cut() -> str:
    with Gateway([say("Hello, world.").cut(after=8)]) as gateway:
        pieces = of_openai(gateway).chat.completions.create(model="m", messages=ASKED, stream=True)
        return cut_off(piece.choices[0].delta.content or "" for piece in pieces)


def responses_plain() -> str:
    with Gateway([BOTH]) as gateway:
        answer = of_openai(gateway).responses.create(model="m", input=ASKED, tools=[RESPONSES_TOOL])
    assert answer.output_text == "Let me look."
    (asked,) = [item for item in answer.output if item.type == "function_call"]
    assert json.loads(asked.arguments) == {"query": 'a "vault"'}
    return answer.status or ""


def responses_streamed() -> str:
    with Gateway([BOTH]) as gateway, of_openai(gateway).responses.stream(model="m", input=ASKED) as stream:
        answer = stream.get_final_response()
    assert answer.output_text == "Let me look."
    return answer.status or ""


def responses_with_a_steer() -> str:
    with Gateway([BOTH, say("A strong room.")]) as gateway:
        client = of_openai(gateway)
        asked = client.responses.create(model="m", input=ASKED, tools=[RESPONSES_TOOL]).output
        (made,) = [item for item in asked if item.type == "function_call"]
        result = {"type": "function_call_output", "call_id": made.call_id, "output": "12 matches"}
        items: Any = [*ASKED, *asked, result, {"role": "user", "content": "look in vault.py"}]
        answer = client.responses.create(model="m", input=items, tools=[RESPONSES_TOOL])
    assert answer.output_text == "A strong room."
    return answer.status or ""


def responses_errors() -> str:
    with Gateway([fail(401, "who are you?")]) as gateway:
        try:
            of_openai(gateway).responses.create(model="m", input=ASKED)
        except openai.AuthenticationError as error:
            assert "who are you?" in str(error)
            return str(error.status_code)
    raise AssertionError("no error")


def responses_cut() -> str:
    with Gateway([say("Hello, world.").cut(after=8)]) as gateway:
        events = of_openai(gateway).responses.create(model="m", input=ASKED, stream=True)
        return cut_off(event.delta for event in events if event.type == "response.output_text.delta")


def messages_plain() -> str:
    with Gateway([BOTH.using(12, 3)]) as gateway:
        answer = of_anthropic(gateway).messages.create(model="m", max_tokens=99, messages=ASKED, tools=[CLAUDE_TOOL])
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


def messages_with_a_steer() -> str:
    with Gateway([BOTH, say("A strong room.")]) as gateway:
        client = of_anthropic(gateway)
        asked = client.messages.create(model="m", max_tokens=99, messages=ASKED, tools=[CLAUDE_TOOL]).content
        (made,) = [block for block in asked if block.type == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": made.id, "content": "12 matches"}
        steered = {"role": "user", "content": [result, {"type": "text", "text": "look in vault.py"}]}
        messages: Any = [*ASKED, {"role": "assistant", "content": asked}, steered]
        answer = client.messages.create(model="m", max_tokens=99, messages=messages, tools=[CLAUDE_TOOL])
    assert answer.content[0].type == "text" and answer.content[0].text == "A strong room."
    return str(answer.stop_reason)


def messages_cut() -> str:
    with Gateway([say("Hello, world.").cut(after=8)]) as gateway:
        events = of_anthropic(gateway).messages.create(model="m", max_tokens=99, messages=ASKED, stream=True)
        return cut_off(
            event.delta.text
            for event in events
            if event.type == "content_block_delta" and event.delta.type == "text_delta"
        )


def cut_off(pieces: Iterator[str]) -> str:
    """Read what comes before the cut; the error that ends it."""
    text = ""
    try:
        for piece in pieces:
            text += piece
    except Exception as error:
        assert text == "Hello, w", text
        return type(error).__name__
    raise AssertionError("the client takes what was cut for whole")


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
            chat_completions_with_a_steer,
            chat_completions_errors,
            chat_completions_cut,
            responses_plain,
            responses_streamed,
            responses_with_a_steer,
            responses_errors,
            responses_cut,
            messages_plain,
            messages_streamed,
            messages_with_a_steer,
            messages_errors,
            messages_cut,
        ],
    )
