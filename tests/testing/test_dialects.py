"""Every format gives a client the whole answer, plain and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit.core.cancel import Cancellation
from steerkit.core.model import Finish
from steerkit.testing import Answer, Gateway, call, fail, say
from steerkit.testing.dialects import chat, messages, responses
from steerkit.testing.dialects.dialect import Dialect
from steerkit.testing.script import pieces
from tests.testing.asking import CHAT, MESSAGES, PATHS, RESPONSES, body_for, events, post

Read = tuple[str, list[tuple[str, str, str]], str, tuple[int, int, int]]

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
CALLS = st.lists(st.dictionaries(st.sampled_from(["query", "path"]), WORDS), max_size=3)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    answer = say(draw(WORDS)).using(draw(st.integers(50, 90)), 7, cached=draw(st.integers(0, 50)))
    for number, arguments in enumerate(draw(CALLS)):
        answer += call("search", **arguments).with_id(f"id_{number}")
    return answer


def expected(answer: Answer) -> Read:
    calls = [(one.id, one.name, one.arguments) for one in answer.calls]
    usage = answer.tokens
    return answer.text, calls, answer.reason, (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens)


def stream_of(dialect: Dialect, answer: Answer, **body: Any) -> list[dict[str, Any]]:
    sent = dialect.stream(answer, pieces(answer, Cancellation()), {"model": "m", **body}, 1)
    lines = [line for event in sent for line in event.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


def chat_usage(usage: dict[str, Any]) -> tuple[int, int, int]:
    return usage["prompt_tokens"], usage["completion_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def messages_usage(usage: dict[str, Any]) -> tuple[int, int, int]:
    cached = usage["cache_read_input_tokens"]
    return usage["input_tokens"] + cached, usage["output_tokens"], cached


def responses_usage(usage: dict[str, Any]) -> tuple[int, int, int]:
    return usage["input_tokens"], usage["output_tokens"], usage["input_tokens_details"]["cached_tokens"]


def read_chat_stream(chunks: list[dict[str, Any]]) -> Read:
    text, calls, finish = "", [], ""
    for chunk in chunks[:-1]:
        [choice] = chunk["choices"]
        text += choice["delta"].get("content") or ""
        finish = choice["finish_reason"] or finish
        for piece in choice["delta"].get("tool_calls", []):
            if "id" in piece:
                calls.append([piece["id"], piece["function"]["name"], ""])
            calls[piece["index"]][2] += piece["function"]["arguments"]
    return text, [(a, b, c) for a, b, c in calls], finish, chat_usage(chunks[-1]["usage"])


def read_messages_stream(sent: list[dict[str, Any]]) -> Read:
    text, calls, finish, usage = "", [], "", {}
    for event in sent:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            calls.append([event["content_block"]["id"], event["content_block"]["name"], ""])
        elif event["type"] == "content_block_delta":
            text += event["delta"].get("text", "")
            if "partial_json" in event["delta"]:
                calls[-1][2] += event["delta"]["partial_json"]
        elif event["type"] == "message_delta":
            finish, usage = event["delta"]["stop_reason"], event["usage"]
    named = {"end_turn": "stop", "tool_use": "tool_calls"}[finish]
    return text, [(a, b, c) for a, b, c in calls], named, messages_usage(usage)


def read_responses_stream(sent: list[dict[str, Any]]) -> Read:
    text, calls = "", []
    for event in sent:
        if event["type"] == "response.output_text.delta":
            text += event["delta"]
        elif event["type"] == "response.output_item.added" and event["item"]["type"] == "function_call":
            calls.append([event["item"]["call_id"], event["item"]["name"], ""])
        elif event["type"] == "response.function_call_arguments.delta":
            calls[-1][2] += event["delta"]
    usage = responses_usage(sent[-1]["response"]["usage"])
    return text, [(a, b, c) for a, b, c in calls], "tool_calls" if calls else "stop", usage


@given(answers())
def test_a_chat_stream_adds_up_to_the_answer(answer: Answer) -> None:
    chunks = stream_of(chat, answer, stream_options={"include_usage": True})

    assert read_chat_stream(chunks) == expected(answer)


@given(answers())
def test_a_messages_stream_adds_up_to_the_answer(answer: Answer) -> None:
    assert read_messages_stream(stream_of(messages, answer)) == expected(answer)


@given(answers())
def test_a_responses_stream_adds_up_to_the_answer(answer: Answer) -> None:
    assert read_responses_stream(stream_of(responses, answer)) == expected(answer)


@given(answers())
def test_a_plain_chat_answer_is_the_answer(answer: Answer) -> None:
    body = chat.plain(answer, "m", 1)
    [choice] = body["choices"]
    calls = [
        (one["id"], one["function"]["name"], one["function"]["arguments"])
        for one in choice["message"].get("tool_calls", [])
    ]

    read = (choice["message"]["content"] or "", calls, choice["finish_reason"], chat_usage(body["usage"]))
    assert read == expected(answer)


@given(answers())
def test_a_plain_messages_answer_is_the_answer(answer: Answer) -> None:
    body = messages.plain(answer, "m", 1)
    text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
    inputs = [block["input"] for block in body["content"] if block["type"] == "tool_use"]

    assert (text, inputs) == (answer.text, [one.parse() for one in answer.calls])
    assert messages_usage(body["usage"]) == expected(answer)[3]


@given(answers())
def test_a_responses_stream_ends_with_the_plain_answer(answer: Answer) -> None:
    assert stream_of(responses, answer)[-1]["response"] == responses.plain(answer, "m", 1)


@given(answers())
def test_a_plain_responses_answer_is_the_answer(answer: Answer) -> None:
    body = responses.plain(answer, "m", 1)
    text = "".join(item["content"][0]["text"] for item in body["output"] if item["type"] == "message")
    calls = [
        (item["call_id"], item["name"], item["arguments"]) for item in body["output"] if item["type"] == "function_call"
    ]

    assert (text, calls, responses_usage(body["usage"])) == (answer.text, expected(answer)[1], expected(answer)[3])


def test_arguments_are_cut_where_no_json_token_ends() -> None:
    sent = stream_of(messages, call("search", query="steer").with_id("a"))
    parts = [event["delta"]["partial_json"] for event in sent if event["type"] == "content_block_delta"]

    assert parts[:2] == ['{"q', "uer"]


def test_arguments_that_are_no_json_are_streamed_as_they_are() -> None:
    sent = stream_of(messages, call("search", '{"query": ').with_id("a"))

    assert read_messages_stream(sent)[1] == [("a", "search", '{"query": ')]


def test_a_plain_answer_of_messages_cannot_hold_arguments_that_are_no_json() -> None:
    with Gateway([call("search", '{"query": ')]) as gateway:
        assert "ask for a stream" in post(gateway, MESSAGES).json()["error"]["message"]


@pytest.mark.parametrize("dialect", [chat, messages, responses])
def test_a_call_without_arguments_is_announced_all_the_same(dialect: Dialect) -> None:
    sent = stream_of(dialect, call("search", "").with_id("a"))

    assert '"name": "search"' in json.dumps(sent[:-1])


def test_a_chat_stream_has_usage_only_when_it_is_asked_for() -> None:
    assert not any("usage" in chunk for chunk in stream_of(chat, say("x")))


def test_a_chat_stream_ends_with_its_mark() -> None:
    with Gateway([say("x")]) as gateway:
        assert post(gateway, CHAT, body_for(CHAT, stream=True)).text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
def test_events_carry_their_type_in_their_name_too(path: str) -> None:
    with Gateway([say("x") + call("search")]) as gateway:
        answer = post(gateway, path, body_for(path, stream=True))

    names = [line[7:] for line in answer.text.split("\n") if line.startswith("event: ")]
    assert names == [event["type"] for event in events(answer)]


@pytest.mark.parametrize(
    ("finish", "in_chat", "in_messages", "in_responses"),
    [
        ("length", "length", "max_tokens", ("incomplete", {"reason": "max_output_tokens"})),
        ("content_filter", "content_filter", "refusal", ("incomplete", {"reason": "content_filter"})),
        ("stop", "stop", "end_turn", ("completed", None)),
    ],
)
def test_the_reason_of_an_end_has_the_name_that_the_format_gives_it(
    finish: Finish, in_chat: str, in_messages: str, in_responses: object
) -> None:
    answer = say("x").finishing(finish)
    whole = responses.plain(answer, "m", 1)

    assert chat.plain(answer, "m", 1)["choices"][0]["finish_reason"] == in_chat
    assert messages.plain(answer, "m", 1)["stop_reason"] == in_messages
    assert (whole["status"], whole["incomplete_details"]) == in_responses


def test_a_responses_stream_that_is_cut_off_at_the_limit_says_so_in_its_last_event() -> None:
    assert stream_of(responses, say("x").finishing("length"))[-1]["type"] == "response.incomplete"


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        (CHAT, 429, "rate_limit_exceeded"),
        (CHAT, 503, "server_error"),
        (MESSAGES, 429, "rate_limit_error"),
        (MESSAGES, 529, "overloaded_error"),
        (MESSAGES, 500, "api_error"),
        (RESPONSES, 400, "invalid_request_error"),
    ],
)
def test_a_failure_has_the_error_type_that_the_format_gives_it(path: str, status: int, kind: str) -> None:
    with Gateway([fail(status)]) as gateway:
        assert post(gateway, path).json()["error"]["type"] == kind


@pytest.mark.parametrize("path", PATHS)
def test_the_ids_of_two_answers_differ(path: str) -> None:
    with Gateway([say("x"), say("x")]) as gateway:
        assert post(gateway, path).json()["id"] != post(gateway, path).json()["id"]
