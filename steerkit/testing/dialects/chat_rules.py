"""What chat completions refuse: OpenAI's words, and those of stricter servers of the same format."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from steerkit.testing.dialects.dialect import Body, Refused, is_json_object, require
from steerkit.testing.dialects.openai import check_call_id, check_filled, check_model, check_string, check_tools

_ROLES = ("system", "assistant", "user", "tool", "developer")

# The format's own fields, and those in which servers want their reasoning back. Anything else is a local note that
# was sent by mistake.
_FIELDS = {"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "annotations", "audio"} | {
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "extra_content",
}


def check(body: Any, _headers: Mapping[str, str], strict: str | None) -> None:
    """Raises: Refused."""
    check_model(body)
    require(
        "messages" in body,
        "Missing required parameter: 'messages'.",
        param="messages",
        code="missing_required_parameter",
    )
    check_filled("messages", body["messages"])
    require(
        body.get("stream_options") is None or body.get("stream"),
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        param="stream_options",
    )
    check_tools(body, nested=True)
    for index, message in enumerate(body["messages"]):
        _check_message(message, f"messages[{index}]")
    _check_pairs(body["messages"])
    if strict == "mistral":
        _check_mistral(body["messages"])
    if strict == "alternate":
        _check_alternation(body["messages"])


def _check_message(message: Any, path: str) -> None:
    require(isinstance(message, dict), f"Invalid type for '{path}': expected an object.", param=path)
    role = message.get("role")
    supported = ", ".join(map(repr, _ROLES))
    require(
        role in _ROLES,
        f"Invalid value: {role!r}. Supported values are: {supported}.",
        param=f"{path}.role",
        code="invalid_value",
    )
    for name in message:
        require(
            name in _FIELDS, f"Unknown parameter: '{path}.{name}'.", param=f"{path}.{name}", code="unknown_parameter"
        )
    if role == "assistant":
        _check_assistant(message, path)
    else:
        require("tool_calls" not in message, f"Unknown parameter: '{path}.tool_calls'.", param=f"{path}.tool_calls")
        _check_content(message.get("content"), role, f"{path}.content")
    if role == "tool":
        require(
            "tool_call_id" in message,
            f"Missing required parameter: '{path}.tool_call_id'.",
            param=f"{path}.tool_call_id",
        )


def _check_content(content: Any, role: str, path: str) -> None:
    if isinstance(content, list):
        check_filled(path, content)
        for index, part in enumerate(content):
            _check_part(part, role, f"{path}[{index}]")
        # OpenAI takes text parts here, but Ollama loses the id of the call with them: a string suits all.
        require(
            role != "tool",
            f"Invalid type for '{path}': expected a string, but got an array instead.",
            param=path,
            code="invalid_type",
        )
        return
    check_string(path, content)


def _check_part(part: Any, role: str, path: str) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "image_url":
        require(
            role == "user",
            "Image URLs are only allowed for messages with role 'user', but this message with role "
            f"'{role}' contains an image URL.",
            param=path,
        )
        url = part.get("image_url")
        require(
            isinstance(url, dict) and isinstance(url.get("url"), str),
            f"Missing required parameter: '{path}.image_url.url'.",
        )
        return
    require(kind == "text", f"Invalid value: {kind!r}. Supported values are: 'text' and 'image_url'.", param=path)
    check_string(f"{path}.text", part.get("text"))


def _check_assistant(message: Body, path: str) -> None:
    calls = message.get("tool_calls")
    if calls is None:
        require(
            message.get("content"),
            "Invalid value for 'content': an assistant message has content or tool_calls, and this one has neither.",
            param=f"{path}.content",
        )
    else:
        check_filled(f"{path}.tool_calls", calls)
        for index, call in enumerate(calls):
            _check_call(call, f"{path}.tool_calls[{index}]")
    if message.get("content") is not None:
        _check_content(message["content"], "assistant", f"{path}.content")


def _check_call(call: Any, path: str) -> None:
    require(
        isinstance(call, dict) and call.get("type") == "function" and isinstance(call.get("function"), dict),
        f"Invalid value for '{path}': expected a call of type 'function'.",
        param=path,
    )
    check_call_id(f"{path}.id", call.get("id"))
    check_string(f"{path}.function.name", call["function"].get("name"))
    check_string(f"{path}.function.arguments", call["function"].get("arguments"))
    # OpenAI lets it pass; Ollama and every chat template that reads the arguments do not.
    require(is_json_object(call["function"]["arguments"]), "invalid tool call arguments", param=path)


def _check_pairs(messages: list[Body]) -> None:
    open_calls: list[str] = []
    answered: list[str] = []
    for index, message in enumerate([*messages, {"role": "end"}]):
        path = f"messages[{index}]"
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            require(
                call_id in open_calls and call_id not in answered,
                "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                f"'tool_calls', and no call {call_id!r} waits for one.",
                param=f"{path}.role",
            )
            answered.append(call_id)
            continue
        missing = [call_id for call_id in open_calls if call_id not in answered]
        require(
            not missing,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}",
            param=path,
        )
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
        answered = []
        require(len(set(open_calls)) == len(open_calls), f"Duplicate tool call id in '{path}.tool_calls'.", param=path)


def _check_mistral(messages: list[Body]) -> None:
    for before, message in itertools.pairwise(messages):
        if before["role"] == "tool" and message["role"] not in ("tool", "assistant"):
            text = f"Unexpected role '{message['role']}' after role 'tool'"
            raise Refused(
                text,
                body={
                    "object": "error",
                    "message": text,
                    "type": "invalid_request_message_order",
                    "param": None,
                    "code": "3230",
                },
            )


def _check_alternation(messages: list[Body]) -> None:
    # What the templates compare: results and the messages that call do not count.
    roles = [message["role"] for message in messages if message["role"] != "tool" and not message.get("tool_calls")]
    if roles and roles[0] in ("system", "developer"):
        del roles[0]
    if any(role != ("user", "assistant")[index % 2] for index, role in enumerate(roles)):
        text = (
            "Error rendering the chat template: Jinja Exception: After the optional system message, conversation roles "
            "must alternate user/assistant/user/assistant/..."
        )
        raise Refused(text, status=500, body={"error": {"code": 500, "message": text, "type": "server_error"}})
