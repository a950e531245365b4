"""What real servers answered (llama.cpp, vLLM, llama-cpp-python, transformers serve, LiteLLM), read from a real socket.

`tests/cases/captures` has a selection. `STEERKIT_CAPTURES=DIR` names a folder of more, in the same form, to read too.
"""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from steerkit.core.errors import ModelError
from steerkit.core.message import ToolCall, assistant, tool_result, user
from steerkit.core.model import ModelRef, Request, Response, Usage
from steerkit.core.tool import Tool
from steerkit.models import openai_chat
from steerkit.testing import Gateway, Raw, raw, say

FOLDER = Path(__file__).parent.parent / "cases" / "captures"
PATHS = sorted(FOLDER.glob("*.json"))
MORE = sorted(Path(os.environ["STEERKIT_CAPTURES"]).rglob("*.json")) if "STEERKIT_CAPTURES" in os.environ else []


def test_there_are_captures() -> None:
    assert PATHS


@frozen
class Capture:
    """A request, as far as it matters for the answer, and the answer."""

    stream: bool
    tools: tuple[str, ...]
    chat: bool  # whether chat completions were asked
    status: int
    body: str
    reply: Raw
    whole: bool


def load(path: Path) -> Capture | None:
    """The capture; None for a note about several requests, or one that the server never answered."""
    data = json.loads(path.read_text("utf-8"))
    response = data.get("response")
    if not response or not response["status"]:
        return None
    asked = data["request"]["body"] if isinstance(data["request"].get("body"), dict) else {}
    tools: Any = asked.get("tools") or ()
    framing = ("connection", "transfer-encoding", "content-length", "date", "keep-alive")
    whole = response["chunked_complete"] is not False
    return Capture(
        stream=asked.get("stream") is True,
        tools=tuple(dict.fromkeys(re.sub(r"[^\w-]", "_", tool["function"]["name"]) for tool in tools)),
        chat=data["request"]["path"].endswith("/chat/completions"),
        status=response["status"],
        body=response["body"],
        reply=raw(
            response["body"],
            status=response["status"],
            headers={name: value for name, value in response["headers"] if name.lower() not in framing},
            framing="chunked" if response["chunked"] else "length",
            abort=not whole,
        ),
        whole=whole,
    )


def request_with(tools: tuple[str, ...]) -> Request:
    offered = tuple(Tool(name, "", {"type": "object"}, lambda: None) for name in tools)
    return Request(ModelRef("m"), (user("go"),), tools=offered)


def read(capture: Capture) -> Response | ModelError:
    texts: list[str] = []
    # A reset takes what was not read yet with it, so it waits until the answer has begun.
    begun = threading.Event()

    def show(text: str) -> None:
        texts.append(text)
        begun.set()

    reply = capture.reply if capture.whole else capture.reply.pausing(begun, len(capture.reply.body) - 1)
    with Gateway(lambda _: reply) as gateway:
        client = openai_chat(gateway.endpoint_with(max_retries=0))
        try:
            response = client.complete(request_with(capture.tools), show if capture.stream else None)
        except ModelError as error:
            assert error.partial == "".join(texts)
            return error
        finally:
            client.close()
    if capture.stream:
        assert response.message.text == "".join(texts)
    return response


def captured(name: str) -> Capture:
    capture = load(FOLDER / f"{name}.json")
    assert capture is not None
    return capture


def answer(name: str) -> Response:
    seen = read(captured(name))
    assert isinstance(seen, Response), seen
    return seen


def error(name: str) -> ModelError:
    seen = read(captured(name))
    assert isinstance(seen, ModelError), seen
    return seen


def chunks(capture: Capture) -> list[Any]:
    """The JSON in the body, one for each event; told by hand, so as not to test the reader with itself."""
    if not capture.body.lstrip().startswith(("data:", ":", "event:")):
        return [json.loads(capture.body)]
    lines = capture.body.splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:") and "{" in line]


@pytest.mark.parametrize("path", PATHS + MORE, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_captured_answer_is_read_whole_or_is_a_model_error(path: Path) -> None:
    capture = load(path)
    if capture is None:
        return
    seen = read(capture)
    broken = not capture.whole or not capture.body or '"error":' in capture.body
    if capture.status >= 400 or not capture.chat or broken:
        assert isinstance(seen, ModelError)
        return
    assert isinstance(seen, Response)
    said = chunks(capture)
    deltas = [
        choice.get("delta") or choice.get("message") or {}
        for chunk in said
        for choice in chunk["choices"]
        if choice["index"] == 0
    ]
    assert seen.message.text == "".join(delta.get("content") or "" for delta in deltas)
    ids = {call["id"] for delta in deltas for call in delta.get("tool_calls") or [] if call.get("id")}
    assert {call.id for call in seen.message.tool_calls} == ids
    usage = [chunk["usage"] for chunk in said if chunk.get("usage")]
    assert (seen.usage and seen.usage.input_tokens) == (usage[-1]["prompt_tokens"] if usage else None)


# ---- what these servers do that others do not


def test_llamacpp_refuses_bad_arguments_in_the_history_and_no_retry_cures_it() -> None:
    refused = error("llamacpp-qwen1.5b-call.hist_bad_args")
    assert refused.status == 500 and not refused.retryable


def test_bad_arguments_of_the_model_do_not_come_back_to_the_server() -> None:
    bad = assistant(tool_calls=[ToolCall("call_1", "get_weather", '{"city": "Par')])
    with Gateway([say("Done.")]) as gateway:
        client = openai_chat(gateway.endpoint)
        client.complete(Request(ModelRef("m"), (user("go"), bad, tool_result("call_1", "bad"))))
        client.close()
    assert gateway.requests[0].body["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    "name", ["llamacpp-qwen1.5b-call.tools_args_cut", "llamacpp-qwen0.5b-call.tools_args_cut_stream"]
)
def test_llamacpp_gives_the_call_that_the_token_limit_cut_and_it_cannot_be_run(name: str) -> None:
    response = answer(name)
    assert response.finish == "length"
    with pytest.raises(ValueError):
        response.message.tool_calls[0].parse()


def test_vllm_drops_the_call_that_the_token_limit_cut() -> None:
    response = answer("vllm-qwen0.5b.tools_args_cut_stream")
    assert (response.finish, response.message.tool_calls) == ("length", ())


@pytest.mark.parametrize("name", ["vllm-qwen0.5b.tools_named", "litellm-mock-tools.chat_plain"])
def test_a_call_under_a_finish_of_stop_is_a_finish_of_tool_calls(name: str) -> None:
    capture = captured(name)
    assert json.loads(capture.body)["choices"][0]["finish_reason"] == "stop"
    assert answer(name).finish == "tool_calls"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("llamacpp-qwen0.5b-key.auth_wrong", "auth"),  # code is the number 401
        ("vllm-key-hermes.auth_wrong", "auth"),  # the error is a string
        ("litellm-mock-ratelimit.tools_auto", "rate_limit"),  # code is the text "429"
        ("litellm-mock.err_path", "bad_request"),  # no error, a `detail`
        ("litellm-mock-context.chat_plain", "context_length"),
        ("llamacpp-qwen0.5b-call.err_overlong", "context_length"),
        ("vllm-qwen0.5b.err_overlong", "context_length"),
        ("litellm-mock-timeout.tools_auto", "timeout"),
        ("llamacpp-loading.chat_plain", "overloaded"),
        ("litellm-mock.auth_missing", "server"),  # a text that is no JSON
    ],
)
def test_an_error_is_told_whatever_the_shape_of_its_code(name: str, kind: str) -> None:
    assert error(name).kind == kind


def test_a_name_that_llama_cpp_python_repeats_in_every_piece_is_read_once() -> None:
    (call,) = answer("llamacpppython-qwen0.5b.tools_named_stream").message.tool_calls
    assert call.name == "get_time" and isinstance(call.parse(), dict)


def test_llama_cpp_python_says_no_usage_in_a_stream() -> None:
    assert answer("llamacpppython-qwen0.5b.chat_stream_usage").usage is None


def test_llama_cpp_python_is_asked_again_without_the_null_that_it_refuses() -> None:
    call = assistant(tool_calls=[ToolCall("call_1", "get_weather", "{}")])
    with Gateway([captured("llamacpppython-chatmlfc.hist_tool_result").reply, say("Done."), say("Done.")]) as gateway:
        client = openai_chat(gateway.endpoint_with(max_retries=0))
        for _ in range(2):
            client.complete(Request(ModelRef("m"), (user("go"), call, tool_result("call_1", "x"))))
        client.close()
    assert [request.body["messages"][1]["content"] for request in gateway.requests] == [None, "", ""]


def test_transformers_serve_sends_no_end_mark_and_is_whole_all_the_same() -> None:
    assert "[DONE]" not in captured("transformers-serve-smollm2.chat_stream").body
    assert answer("transformers-serve-smollm2.chat_stream").finish == "stop"


def test_the_usage_of_litellm_beside_an_empty_delta_behind_the_finish_is_read() -> None:
    response = answer("litellm-to-llamacpp.chat_stream_usage")
    assert response.finish == "stop" and isinstance(response.usage, Usage) and response.usage.input_tokens > 0


def test_a_killed_llamacpp_leaves_a_truncated_answer_with_its_text() -> None:
    killed = error("llamacpp-killed.killed_midstream")
    assert killed.kind == "truncated" and killed.partial


def test_a_killed_vllm_is_an_error_of_the_server_although_an_end_mark_follows() -> None:
    killed = error("vllm-engine-killed.killed_midstream")
    assert "[DONE]" in captured("vllm-engine-killed.killed_midstream").body
    assert killed.kind == "server" and killed.partial


def test_a_stream_that_ends_before_it_begins_is_a_truncated_answer() -> None:
    cut = error("llamacpppython-chatmlfc.tools_required_stream")
    assert cut.kind == "truncated" and cut.retryable


def test_two_choices_are_not_mixed() -> None:
    choices = json.loads(captured("llamacpp-qwen0.5b-call.chat_n2").body)["choices"]
    first = next(choice for choice in choices if choice["index"] == 0)
    assert answer("llamacpp-qwen0.5b-call.chat_n2").message.text == first["message"]["content"]
