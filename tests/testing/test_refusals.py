"""The Gateway refuses what real providers refuse, with their status and words, and keeps its script for later."""

from __future__ import annotations

from typing import Any

import pytest

from steerkit.testing import Gateway, say
from tests.testing.asking import CHAT, MESSAGES, PATHS, RESPONSES, SCHEMA, TOOLS, body_for, post

USER = {"role": "user", "content": "Why?"}
STEER = {"role": "user", "content": "Look in vault.py."}
LONG = "x" * 41


def ask(*messages: Any, **fields: Any) -> dict[str, Any]:
    """A chat body with these messages behind the first one."""
    return body_for(CHAT, messages=[USER, *messages], tools=TOOLS[CHAT], **fields)


def chat_call(call_id: Any = "a", name: Any = "search", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat_calls(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [chat_call(call_id) for call_id in ids]}


def result(call_id: Any = "a", content: Any = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def chat_tool(**function: Any) -> dict[str, Any]:
    return body_for(CHAT, tools=[{"type": "function", "function": function}])


PARTS = [{"type": "text", "text": "Why?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]

CHAT_ACCEPTED = {
    "a steer behind the results": ask(chat_calls("a", "b"), result("b"), result("a"), STEER),
    "parts of a user message": body_for(CHAT, messages=[{"role": "user", "content": PARTS}]),
    "system and developer": body_for(CHAT, messages=[{"role": "system", "content": "x"}, USER]),
    "reasoning that comes back": ask({"role": "assistant", "content": "x", "reasoning_content": ""}, USER),
    "a tool without a schema": chat_tool(name="search"),
    "tools that are not to be called": ask(tool_choice="none"),
    "one id in two turns": ask(chat_calls("a"), result(), chat_calls("a"), result()),
}

CHAT_REFUSED = {
    "no model": (body_for(CHAT, model=None), "Missing required parameter: 'model'"),
    "blank model": (body_for(CHAT, model=""), "model parameter"),
    "no messages": (body_for(CHAT, messages=None), "Missing required parameter: 'messages'"),
    "empty messages": (body_for(CHAT, messages=[]), "Invalid 'messages': empty array"),
    "messages no list": (body_for(CHAT, messages="x"), "Invalid type for 'messages'"),
    "message no object": (body_for(CHAT, messages=["x"]), "expected an object"),
    "stream no boolean": (body_for(CHAT, stream="yes"), "Invalid type for 'stream'"),
    "usage asked of no stream": (body_for(CHAT, stream_options={"include_usage": True}), "'stream_options'"),
    "no object": ([], "no object"),
    "unknown role": (ask({"role": "bot", "content": "x"}), "Invalid value: 'bot'"),
    "role no string": (ask({"role": ["user"], "content": "x"}), "Invalid value"),
    "a local note": (ask({**USER, "meta": {}}), "Unknown parameter: 'messages[1].meta'"),
    "user without content": (ask({"role": "user"}), "Invalid type for 'messages[1].content'"),
    "empty parts": (ask({"role": "user", "content": []}), "Invalid 'messages[1].content': empty array"),
    "unknown part": (ask({"role": "user", "content": [{"type": "x"}]}), "Invalid value: 'x'"),
    "part without text": (ask({"role": "user", "content": [{"type": "text"}]}), "content[0].text"),
    "image without url": (ask({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}), "image_url.url"),
    "image of no object": (ask({"role": "user", "content": [{"type": "image_url"}]}), "image_url"),
    "image of the system": (ask({"role": "system", "content": PARTS}), "Image URLs are only allowed"),
    "neither content nor calls": (ask({"role": "assistant", "content": ""}, USER), "neither"),
    "content no text": (ask({"role": "assistant", "content": 5}, USER), "Invalid type for 'messages[1].content'"),
    "calls of a user": (ask({**USER, "tool_calls": [chat_call()]}), "Unknown parameter"),
    "empty calls": (ask({"role": "assistant", "content": "x", "tool_calls": []}), "tool_calls': empty array"),
    "call of no function": (ask({"role": "assistant", "tool_calls": [{"id": "a"}]}, result()), "'function'"),
    "call without id": (ask({"role": "assistant", "tool_calls": [chat_call(None)]}, result()), "tool_calls[0].id"),
    "call with a number for an id": (
        ask({"role": "assistant", "tool_calls": [chat_call(5)]}, result(5)),
        "expected a string, but got a number",
    ),
    "call with empty id": (ask({"role": "assistant", "tool_calls": [chat_call("")]}, result("")), "empty string"),
    "id too long": (ask(chat_calls(LONG), result(LONG)), "maximum length 40"),
    "name no string": (ask({"role": "assistant", "tool_calls": [chat_call(name=None)]}, result()), "function.name"),
    "arguments an object": (
        ask({"role": "assistant", "tool_calls": [chat_call(arguments={})]}, result()),
        "function.arguments",
    ),
    "arguments no json": (
        ask({"role": "assistant", "tool_calls": [chat_call(arguments="{")]}, result()),
        "invalid tool call arguments",
    ),
    "arguments no json object": (
        ask({"role": "assistant", "tool_calls": [chat_call(arguments="[]")]}, result()),
        "invalid tool call arguments",
    ),
    "doubled id": (ask(chat_calls("a", "a"), result()), "Duplicate tool call id"),
    "missing result": (ask(chat_calls("a", "b"), result("b"), USER), "did not have response messages: a"),
    "missing result at the end": (ask(chat_calls("a")), "did not have response messages: a"),
    "message between": (ask(chat_calls("a"), STEER, result()), "did not have response messages: a"),
    "message between results": (ask(chat_calls("a", "b"), result("a"), STEER, result("b")), "messages: b"),
    "result without call": (ask(result()), "no call 'a' waits"),
    "result of another call": (ask(chat_calls("a"), result("b")), "no call 'b' waits"),
    "doubled result": (ask(chat_calls("a"), result(), result()), "no call 'a' waits"),
    "result without id": (ask(chat_calls("a"), {"role": "tool", "content": "x"}), "tool_call_id"),
    "result in parts": (ask(chat_calls("a"), result(content=PARTS[:1])), "expected a string, but got an array"),
    "result null": (ask(chat_calls("a"), result(content=None)), "expected a string, but got null"),
    "image in a result": (ask(chat_calls("a"), result(content=PARTS)), "this message with role 'tool'"),
    "empty tools": (body_for(CHAT, tools=[]), "Invalid 'tools': empty array"),
    "too many tools": (body_for(CHAT, tools=TOOLS[CHAT] * 129), "maximum length 128"),
    "choice without tools": (body_for(CHAT, tool_choice="none"), "'tool_choice' is only allowed when"),
    "parallel without tools": (body_for(CHAT, parallel_tool_calls=True), "'parallel_tool_calls' is only allowed"),
    "tool of another type": (body_for(CHAT, tools=[{"type": "x"}]), "tools[0].type"),
    "tool without name": (chat_tool(parameters=SCHEMA), "tools[0].function.name"),
    "tool with a blank in its name": (chat_tool(name="a b"), "does not match pattern"),
    "tool with a long name": (chat_tool(name="a" * 65), "does not match pattern"),
    "schema no object": (chat_tool(name="x", parameters={"type": "array"}), "schema must be a JSON Schema"),
    "schema without a type": (chat_tool(name="x", parameters={}), "schema must be a JSON Schema"),
    "schema no dict": (chat_tool(name="x", parameters="object"), "schema must be a JSON Schema"),
    "properties no dict": (chat_tool(name="x", parameters={**SCHEMA, "properties": []}), "schema must be"),
}

USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "search", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "found"}
TEXT = {"type": "text", "text": "Look in vault.py."}
MARK = {"cache_control": {"type": "ephemeral"}}


def blocks(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def say_to(*messages: Any, **fields: Any) -> dict[str, Any]:
    """A messages body with these messages behind the first one."""
    return body_for(MESSAGES, messages=[USER, *messages], **{"tools": TOOLS[MESSAGES], **fields})


def tool_of(**tool: Any) -> dict[str, Any]:
    return body_for(MESSAGES, tools=[tool])


MESSAGES_ACCEPTED = {
    "a steer behind the results": say_to(USE, blocks("user", RESULT, TEXT)),
    "a steer as a message of its own": say_to(USE, blocks("user", RESULT), STEER),
    "a steer as a system message": say_to(USE, blocks("user", RESULT), {"role": "system", "content": "He said x."}),
    "thinking that comes back": say_to(
        blocks("assistant", {"type": "thinking", "thinking": "", "signature": "s"}), USER
    ),
    "an image in a result": say_to(
        USE, blocks("user", {**RESULT, "content": [TEXT, {"type": "image", "source": {"type": "base64"}}]})
    ),
    "four cache marks": say_to(
        USE, blocks("user", {**RESULT, **MARK}, {**TEXT, **MARK}), system=[{**TEXT, **MARK}] * 2
    ),
}

MESSAGES_REFUSED = {
    "no model": (body_for(MESSAGES, model=None), "model: Field required"),
    "blank model": (body_for(MESSAGES, model=""), "at least 1 character"),
    "no max_tokens": (body_for(MESSAGES, max_tokens=None), "max_tokens: Field required"),
    "max_tokens no number": (body_for(MESSAGES, max_tokens="5"), "valid integer"),
    "max_tokens zero": (body_for(MESSAGES, max_tokens=0), "greater than or equal to 1"),
    "no messages": (body_for(MESSAGES, messages=None), "messages: Field required"),
    "empty messages": (body_for(MESSAGES, messages=[]), "at least one message"),
    "messages no list": (body_for(MESSAGES, messages="x"), "messages: Input should be a valid list"),
    "message no object": (body_for(MESSAGES, messages=["x"]), "valid dictionary"),
    "no object": ([], "expected an object"),
    "unknown role": (say_to({"role": "tool", "content": "x"}), 'Unexpected role "tool"'),
    "a local note": (say_to({**USER, "meta": {}}), "messages.1.meta: Extra inputs"),
    "assistant first": (body_for(MESSAGES, messages=[USE, USER]), "first message must use"),
    "assistant last": (say_to(blocks("assistant", TEXT)), "must end with a user message"),
    "content null": (say_to({"role": "user", "content": None}), "valid string or list"),
    "empty content": (say_to({"role": "user", "content": ""}), "non-empty content"),
    "empty blocks": (say_to(blocks("user")), "non-empty content"),
    "empty text": (say_to(blocks("user", {"type": "text", "text": ""})), "text content blocks must be non-empty"),
    "blank text": (say_to({"role": "user", "content": " \n"}), "non-whitespace"),
    "text no string": (say_to(blocks("user", {"type": "text"})), "text.text"),
    "unknown block": (say_to(blocks("user", {"type": "x"})), "Input tag 'x'"),
    "block of another role": (say_to(blocks("user", USE["content"][0])), "Input tag 'tool_use'"),
    "block no object": (say_to(blocks("user", "x")), "Input tag None"),
    "image without source": (say_to(blocks("user", {"type": "image"})), "image.source"),
    "thinking without signature": (say_to(blocks("assistant", {"type": "thinking"}), USER), "signature"),
    "use with a bad id": (say_to(blocks("assistant", {**USE["content"][0], "id": "a.b"}), USER), "tool_use.id"),  # type: ignore[dict-item]
    "use without a name": (say_to(blocks("assistant", {"type": "tool_use", "id": "a", "input": {}}), USER), "use.name"),
    "input a text": (
        say_to(blocks("assistant", {"type": "tool_use", "id": "a", "name": "x", "input": "{}"}), USER),
        "tool_use.input",
    ),
    "result with a bad id": (say_to(USE, blocks("user", {**RESULT, "tool_use_id": ""})), "tool_result.tool_use_id"),
    "result of no text": (say_to(USE, blocks("user", {**RESULT, "content": 5})), "tool_result.content"),
    "empty text in a result": (
        say_to(USE, blocks("user", {**RESULT, "content": [{"type": "text", "text": ""}]})),
        "text content blocks must be non-empty",
    ),
    "missing result": (say_to(USE, STEER), "messages.1: `tool_use` ids were found without"),
    "message between": (say_to(USE, STEER, blocks("user", RESULT)), "`tool_use` ids were found without"),
    "text before the result": (say_to(USE, blocks("user", TEXT, RESULT)), "`tool_use` ids were found without"),
    "result without use": (say_to(blocks("user", RESULT)), "messages.1.content.0: unexpected `tool_use_id`"),
    "result behind text": (
        say_to(USE, blocks("user", RESULT, TEXT, RESULT)),
        "messages.2.content.2: unexpected `tool_use_id`",
    ),
    "doubled result": (say_to(USE, blocks("user", RESULT, RESULT)), "a single result"),
    "doubled id": (say_to(USE, blocks("user", RESULT), USE, blocks("user", RESULT)), "ids must be unique"),
    "blocks of tools without tools": (say_to(USE, blocks("user", RESULT), tools=None), "must define `tools`"),
    "choice without tools": (body_for(MESSAGES, tool_choice={"type": "auto"}), "tool_choice may only"),
    "tools no list": (body_for(MESSAGES, tools={}), "tools: Input should be a valid list"),
    "tool no object": (body_for(MESSAGES, tools=["x"]), "tools.0.custom: Input"),
    "tool with a bad name": (tool_of(name="a b", input_schema=SCHEMA), "tools.0.custom.name"),
    "tool without schema": (tool_of(name="a"), "input_schema: Field required"),
    "schema no object": (tool_of(name="a", input_schema={"type": "array"}), "Input should be 'object'"),
    "tool of another format": (tool_of(name="a", input_schema=SCHEMA, function={}), "function: Extra inputs"),
    "system a number": (body_for(MESSAGES, system=5), "system: Input"),
    "empty system block": (body_for(MESSAGES, system=[{"type": "text", "text": ""}]), "non-empty"),
    "system first": (body_for(MESSAGES, messages=[{"role": "system", "content": "x"}, USER]), "cannot be the first"),
    "two systems": (
        say_to({"role": "system", "content": "x"}, {"role": "system", "content": "x"}),
        "consecutive system",
    ),
    "system behind an assistant": (
        say_to(blocks("assistant", TEXT), {"role": "system", "content": "x"}),
        "must follow a user message",
    ),
    "system before a user": (say_to({"role": "system", "content": "x"}, USER), "must be the last message or"),
    "system before the result": (
        say_to(USE, {"role": "system", "content": "x"}, blocks("user", RESULT)),
        "must follow a user message",
    ),
    "five cache marks": (say_to(blocks("user", *[{**TEXT, **MARK}] * 5)), "Found 5"),
    "a mark on top of four": (say_to(blocks("user", *[{**TEXT, **MARK}] * 4), **MARK), "Found 5"),
}

CALL = {"type": "function_call", "call_id": "a", "name": "search", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "found"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}


def items(*more: Any, **fields: Any) -> dict[str, Any]:
    """A responses body with these items behind the first one."""
    return body_for(RESPONSES, input=[USER, *more], tools=TOOLS[RESPONSES], **fields)


def message(role: str, *content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(content)}


RESPONSES_ACCEPTED = {
    "a text": body_for(RESPONSES, input="Why?"),
    "a steer behind the outputs": items(CALL, {**CALL, "call_id": "b"}, {**OUTPUT, "call_id": "b"}, OUTPUT, STEER),
    "reasoning before its call": items(REASONING, CALL, OUTPUT),
    "reasoning before its text": items(REASONING, message("assistant", {"type": "output_text", "text": "x"}), USER),
    "an image in an output": items(CALL, {**OUTPUT, "output": [{"type": "input_image", "image_url": "data:"}]}),
}

RESPONSES_REFUSED = {
    "no model": (body_for(RESPONSES, model=None), "Missing required parameter: 'model'"),
    "no input": (body_for(RESPONSES, input=None), "Missing required parameter: 'input'"),
    "empty input": (body_for(RESPONSES, input=[]), "Invalid 'input': empty array"),
    "messages": (body_for(RESPONSES, messages=[USER]), "has moved to 'input'"),
    "max_tokens": (body_for(RESPONSES, max_tokens=5), "has moved to 'max_output_tokens'"),
    "item no object": (items("x"), "expected an object"),
    "unknown item": (items({"type": "tool"}), "Invalid value: 'tool'"),
    "unknown role": (items({"role": "tool", "content": "x"}), "Invalid value: 'tool'"),
    "a local note": (items({**USER, "meta": {}}), "Unknown parameter: 'input[1].meta'"),
    "content null": (items({"role": "user", "content": None}), "Invalid type for 'input[1].content'"),
    "empty answer": (items({"role": "assistant", "content": ""}), "empty string"),
    "part of another role": (items(message("user", {"type": "output_text", "text": "x"})), "'output_text'"),
    "input as an answer": (items(message("assistant", {"type": "input_text", "text": "x"})), "'input_text'"),
    "part without text": (items(message("user", {"type": "input_text"})), "content[0].text"),
    "image without url": (items(message("user", {"type": "input_image"})), "content[0].image_url"),
    "call without id": (items({**CALL, "call_id": None}, OUTPUT), "input[1].call_id"),
    "id too long": (items({**CALL, "call_id": LONG}, OUTPUT), "maximum length 40"),
    "call without a name": (items({**CALL, "name": None}, OUTPUT), "input[1].name"),
    "arguments an object": (items({**CALL, "arguments": {}}, OUTPUT), "input[1].arguments"),
    "output without id": (items(CALL, {**OUTPUT, "call_id": None}), "input[2].call_id"),
    "output null": (items(CALL, {**OUTPUT, "output": None}), "input[2].output"),
    "output of unknown parts": (items(CALL, {**OUTPUT, "output": [{"type": "text"}]}), "Invalid value: 'text'"),
    "missing output": (items(CALL), "No tool output found for function call a"),
    "message between": (items(CALL, STEER, OUTPUT), "No tool output found for function call a"),
    "output without call": (items(OUTPUT), "No tool call found for function call output with call_id a"),
    "doubled output": (items(CALL, OUTPUT, OUTPUT), "No tool call found"),
    "doubled id": (items(CALL, OUTPUT, CALL, OUTPUT), "Duplicate call_id"),
    "reasoning alone": (items(REASONING), "without its required following item"),
    "reasoning before a user": (items(REASONING, USER), "without its required following item"),
    "reasoning without summary": (items({"type": "reasoning"}, CALL, OUTPUT), "summary"),
    "empty tools": (body_for(RESPONSES, tools=[]), "Invalid 'tools': empty array"),
    "choice without tools": (body_for(RESPONSES, tool_choice="none"), "'tool_choice' is only allowed when"),
    "nested tool": (body_for(RESPONSES, tools=TOOLS[CHAT]), "tools[0].name"),
    "schema no object": (
        body_for(RESPONSES, tools=[{"type": "function", "name": "x", "parameters": {"type": "string"}}]),
        "schema must be a JSON Schema",
    ),
}

ACCEPTED = [
    pytest.param(path, body, id=f"{path[1:]}: {name}")
    for path, cases in ((CHAT, CHAT_ACCEPTED), (MESSAGES, MESSAGES_ACCEPTED), (RESPONSES, RESPONSES_ACCEPTED))
    for name, body in cases.items()
]
REFUSED = [
    pytest.param(path, body, words, id=f"{path[1:]}: {name}")
    for path, cases in ((CHAT, CHAT_REFUSED), (MESSAGES, MESSAGES_REFUSED), (RESPONSES, RESPONSES_REFUSED))
    for name, (body, words) in cases.items()
]


@pytest.mark.parametrize(("path", "body"), ACCEPTED)
def test_what_providers_accept_is_accepted(path: str, body: Any) -> None:
    with Gateway([say("ok")]) as gateway:
        answer = post(gateway, path, body)

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("path", "body", "words"), REFUSED)
def test_what_providers_refuse_is_refused_in_their_words_and_uses_up_no_reply(path: str, body: Any, words: str) -> None:
    with Gateway([say("ok")]) as gateway:
        refusal = post(gateway, path, body)
        assert refusal.status_code == 400, refusal.text
        assert words in refusal.json()["error"]["message"]

        assert post(gateway, path).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_is_no_json_is_refused(path: str) -> None:
    with Gateway([say("ok")]) as gateway:
        assert post(gateway, path, b"{").status_code == 400


@pytest.mark.parametrize("path", PATHS)
def test_a_wrong_key_is_refused(path: str) -> None:
    with Gateway([say("ok")]) as gateway:
        refusal = post(gateway, path, key="other")

    assert (refusal.status_code, refusal.json()["error"]["message"]) == (401, "Incorrect API key provided.")


@pytest.mark.parametrize("path", PATHS)
def test_a_request_without_a_key_is_refused(path: str) -> None:
    with Gateway([say("ok")]) as gateway:
        refusal = post(gateway, path, headers={"authorization": "Basic eDp5"})

    assert refusal.status_code == 401
    assert "didn't provide an API key" in refusal.json()["error"]["message"]


def test_a_gateway_may_have_a_key_of_its_own() -> None:
    with Gateway([say("ok")], key="other") as gateway:
        assert gateway.endpoint.api_key == "other"
        assert post(gateway, CHAT, key="other").status_code == 200


def test_messages_take_the_key_in_a_header_of_their_own() -> None:
    with Gateway([say("ok")]) as gateway:
        assert post(gateway, MESSAGES, headers={"x-api-key": "test-key", "authorization": ""}).status_code == 200


@pytest.mark.parametrize("path", ["/completions", "/chat/completions/", "/messages/count_tokens"])
def test_an_unknown_path_is_refused(path: str) -> None:
    with Gateway([say("ok")]) as gateway:
        assert post(gateway, path, {}).status_code == 404


def test_messages_want_a_version() -> None:
    with Gateway([say("ok")]) as gateway:
        refusal = post(gateway, MESSAGES, headers={"anthropic-version": None})

    assert refusal.json()["error"]["message"] == "anthropic-version: header is required"


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
@pytest.mark.parametrize(("version", "status"), [("2023-06-01", 200), ("2026-10-21", 400)])
def test_the_newer_version_of_messages_takes_no_sampling_parameters(name: str, version: str, status: int) -> None:
    with Gateway([say("ok")]) as gateway:
        answer = post(gateway, MESSAGES, body_for(MESSAGES, **{name: 1}), headers={"anthropic-version": version})

    assert answer.status_code == status


def test_refused_requests_are_recorded_too() -> None:
    with Gateway([say("ok")]) as gateway:
        post(gateway, CHAT, key="other")

        assert len(gateway.requests) == 1


RAW_STEER = ask(chat_calls("a"), result(), STEER)
BRIDGED_STEER = ask(chat_calls("a"), result(), {"role": "assistant", "content": "Noted."}, STEER)
TWO_USERS = ask(STEER)
SYSTEM_FIRST = body_for(CHAT, messages=[{"role": "system", "content": "x"}, USER])


def test_mistral_refuses_a_user_message_behind_a_result_in_a_shape_of_its_own() -> None:
    with Gateway([say("ok")], strict="mistral") as gateway:
        refusal = post(gateway, CHAT, RAW_STEER)

    assert (refusal.status_code, refusal.json()["code"]) == (400, "3230")
    assert refusal.json()["message"] == "Unexpected role 'user' after role 'tool'"


def test_a_strict_template_refuses_two_user_messages_as_an_error_of_the_server() -> None:
    with Gateway([say("ok")], strict="alternate") as gateway:
        refusal = post(gateway, CHAT, RAW_STEER)

    assert (refusal.status_code, refusal.json()["error"]["type"]) == (500, "server_error")
    assert "Jinja Exception" in refusal.json()["error"]["message"]


@pytest.mark.parametrize(
    ("strict", "body", "accepted"),
    [
        ("mistral", BRIDGED_STEER, True),
        ("mistral", TWO_USERS, True),
        ("mistral", ask(chat_calls("a", "b"), result("a"), result("b")), True),
        ("alternate", BRIDGED_STEER, True),
        ("alternate", SYSTEM_FIRST, True),
        ("alternate", ask(chat_calls("a"), result()), True),
        ("alternate", TWO_USERS, False),
        (None, RAW_STEER, True),
    ],
)
def test_a_strict_gateway_refuses_only_what_it_is_strict_about(strict: Any, body: Any, accepted: bool) -> None:
    with Gateway([say("ok")], strict=strict) as gateway:
        assert post(gateway, CHAT, body).ok == accepted
