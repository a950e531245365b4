"""The Responses wire: what a request becomes, what is made of an answer, and what a refusal changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from steerkit.core.errors import ModelError
from steerkit.core.message import Image, Message, ToolCall, assistant, tool_result, user
from steerkit.core.model import Endpoint, ModelRef, Request, Response, Usage
from steerkit.core.tool import Tool
from steerkit.models.openai_responses_wire import OpenAIResponsesWire
from steerkit.models.sse import Decoder
from steerkit.models.wire import Settings

WIRE = OpenAIResponsesWire()
ENDPOINT = Endpoint("https://models.test/v1", "key")
RAW = Settings("raw")
LOOK = Tool("look", "Look it up.", {"type": "object", "properties": {"at": {"type": "string"}}}, lambda at: at)
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": '{"at": "x"}'}
PLAIN_CALL = {key: value for key, value in CALL.items() if key != "id"}


def call(call_id: str = "call_1", arguments: str = '{"at": "x"}') -> Message:
    return assistant(tool_calls=[ToolCall(call_id, "look", arguments)])


def steer(text: str) -> Message:
    return evolve(user(text), meta={"steer_id": text})


def asked(*messages: Message, model: str = "gpt-5.6", **fields: Any) -> Request:
    return Request(ModelRef(model), messages, **{"tools": (LOOK,), **fields})


def body(request: Request, chosen: Settings = RAW, endpoint: Endpoint = ENDPOINT) -> dict[str, Any]:
    made = json.loads(WIRE.encode(request, endpoint, chosen, stream=False))
    assert isinstance(made, dict)
    return made


def sent(request: Request, chosen: Settings = RAW) -> list[dict[str, Any]]:
    return list(body(request, chosen)["input"])


def said(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **fields}


def answered(request: Request, *output: dict[str, Any], **fields: Any) -> Response:
    return WIRE.decode({"status": "completed", "output": list(output), **fields}, request, ENDPOINT)


def stream(*events: dict[str, Any]) -> bytes:
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)


def read(data: bytes, request: Request | None = None) -> tuple[Response, str]:
    reader, decoder, shown = WIRE.reader(request or asked(user("q")), ENDPOINT), Decoder(), ""
    for event in decoder.feed(data) + decoder.close():
        shown += reader.feed(event)
        if reader.done:
            break
    return reader.response(), shown


def delta(what: str, index: int, text: str) -> dict[str, Any]:
    return {"type": f"response.{what}.delta", "output_index": index, "delta": text}


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def ended(how: str = "completed", *output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{how}", "response": {"status": how, "output": list(output), **fields}}


USAGE = {"input_tokens": 20, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 6}
PIECES = (
    {"type": "response.created", "response": {"status": "in_progress"}},
    added(0, {"type": "reasoning", "id": "rs_1", "summary": []}),
    delta("reasoning_summary_text", 0, "Hm"),
    done(0, {**REASONING, "summary": [{"type": "summary_text", "text": "Hm"}]}),
    added(1, {"type": "message", "id": "m", "role": "assistant", "content": []}),
    delta("output_text", 1, "Größe "),
    delta("output_text", 1, "\u2028 ok"),
    added(2, {**CALL, "arguments": ""}),
    delta("function_call_arguments", 2, '{"at":'),
    delta("function_call_arguments", 2, ' "x"}'),
)
ANSWER = stream(*PIECES, ended(usage=USAGE))


# ---- requests


def test_a_steer_stands_behind_all_results_of_its_group() -> None:
    two = assistant(tool_calls=[ToolCall("a", "look"), ToolCall("b", "look")])
    items = sent(asked(user("q"), two, tool_result("a", "1"), tool_result("b", "2"), steer("wait")))
    assert [item["type"] for item in items] == [
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
    ]
    assert items[-1] == {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "wait"}]}


def test_a_result_answers_the_call_id() -> None:
    told = answered(asked(user("q")), CALL).message
    items = sent(asked(user("q"), told, tool_result(told.tool_calls[0].id, "")))
    assert items[1] == PLAIN_CALL
    assert items[2] == {"type": "function_call_output", "call_id": "call_1", "output": "(no output)"}


def test_nothing_is_stored_and_encrypted_reasoning_is_asked_for() -> None:
    made = body(asked(user("q")))
    assert made["store"] is False
    assert made["include"] == ["reasoning.encrypted_content"]


def test_system_texts_are_the_instructions() -> None:
    made = body(asked(Message("system", "B"), user("q"), system="A"))
    assert made["instructions"] == "A\n\nB"
    assert [item["role"] for item in made["input"]] == ["user"]


def test_tools_are_flat_and_not_strict() -> None:
    (tool,) = body(asked(user("q")))["tools"]
    assert (tool["type"], tool["name"], tool["strict"]) == ("function", "look", False)
    assert tool["parameters"]["properties"] == {"at": {"type": "string"}}


def test_tool_choice_goes_with_tools_only() -> None:
    assert body(asked(user("q"), tool_choice="none"))["tool_choice"] == "none"
    assert not {"tools", "tool_choice"} & body(asked(user("q"), tool_choice="none", tools=())).keys()


def test_limits_and_sampling_are_sent_only_when_they_were_set() -> None:
    assert not {"max_output_tokens", "temperature"} & body(asked(user("q"))).keys()
    made = body(Request(ModelRef("m", max_tokens=5, temperature=0.5, extra={"store": True}), (user("q"),)))
    assert (made["max_output_tokens"], made["temperature"], made["store"]) == (5, 0.5, True)


def test_images_stand_in_user_messages_and_in_results() -> None:
    image = Image(b"\x89", "image/png")
    items = sent(asked(user("see", image), call(), tool_result("call_1", image)))
    block = {"type": "input_image", "image_url": "data:image/png;base64,iQ=="}
    assert items[0]["content"][1] == block
    assert items[2]["output"] == [block]


@pytest.mark.parametrize("arguments", ['{"at": "x', "[1]", '{"at": NaN}', "[" * 100_000])
def test_arguments_that_are_no_json_object_are_replayed_as_an_empty_one(arguments: str) -> None:
    assert sent(asked(user("q"), call(arguments=arguments)))[1]["arguments"] == "{}"
    echoed = answered(asked(user("q")), REASONING, {**CALL, "arguments": arguments}).message
    assert echoed.tool_calls[0].arguments == arguments
    assert sent(asked(user("q"), echoed))[2]["arguments"] == "{}"


def test_what_was_sent_is_sent_again_with_the_same_bytes() -> None:
    history = (user("q"), call(), tool_result("call_1", "1"), steer("one"))
    first = WIRE.encode(asked(*history), ENDPOINT, RAW, stream=True)
    longer = asked(*history, call("call_2"), tool_result("call_2", "2"), steer("two"))
    assert WIRE.encode(longer, ENDPOINT, RAW, stream=True).startswith(first.removesuffix(b"]}"))


def test_a_message_is_encoded_once() -> None:
    message = user("q")
    sent(asked(message))
    (key,) = message.memo
    message.memo[key] = b'"kept"'
    assert body(asked(message))["input"] == ["kept"]


def test_blank_messages_and_texts_are_left_out() -> None:
    assert sent(asked(user(""), user("q", ""))) == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]}
    ]


def test_a_long_id_is_shortened_on_both_sides() -> None:
    items = sent(asked(user("q"), call("x" * 65), tool_result("x" * 65, "1")))
    assert items[1]["call_id"] == items[2]["call_id"]
    assert len(items[1]["call_id"]) <= 64


# ---- reasoning


def test_reasoning_goes_back_in_front_of_its_call_to_the_model_that_made_it() -> None:
    told = answered(asked(user("q")), REASONING, CALL).message
    assert sent(asked(user("q"), told))[1:] == [REASONING, CALL]


def test_reasoning_is_not_sent_to_another_model_or_endpoint() -> None:
    told = answered(asked(user("q")), REASONING, CALL).message
    assert sent(asked(user("q"), told, model="gpt-5.5"))[1:] == [PLAIN_CALL]
    assert body(asked(user("q"), told), endpoint=Endpoint("https://other.test/v1"))["input"][1:] == [PLAIN_CALL]


def test_reasoning_that_only_the_provider_holds_is_not_sent() -> None:
    told = answered(asked(user("q")), {"type": "reasoning", "id": "rs_1", "summary": []}, CALL).message
    assert sent(asked(user("q"), told))[1:] == [CALL]


def test_the_phase_of_a_message_comes_back() -> None:
    told = answered(asked(user("q")), said("Looking.", phase="commentary")).message
    assert sent(asked(user("q"), told))[1] == said("Looking.", phase="commentary")


def test_an_answer_that_a_pattern_has_changed_is_sent_as_changed() -> None:
    told = evolve(answered(asked(user("q")), REASONING, CALL).message, tool_calls=(), content="Instead.")
    assert sent(asked(user("q"), told))[1:] == [said("Instead.")]


# ---- cures


def refusal(words: str, kind: Any = "bad_request", param: str | None = None) -> ModelError:
    return ModelError(words, kind=kind, status=400, param=param)


UNREADABLE = refusal("The encrypted content gAAA... could not be verified.")


def test_refused_reasoning_is_left_out_up_to_there_and_later_reasoning_is_kept() -> None:
    request = asked(user("q"), answered(asked(user("q")), REASONING, CALL).message, tool_result("call_1", "1"))
    cured = WIRE.cure(UNREADABLE, request, ENDPOINT, RAW)
    assert cured is not None
    assert sent(request, cured)[1] == PLAIN_CALL
    new = {**REASONING, "encrypted_content": "gBBB"}
    later = answered(request, new, {**CALL, "call_id": "call_2"}).message
    assert sent(evolve(request, messages=(*request.messages, later)), cured)[3] == new


def test_a_cure_that_changes_nothing_is_none() -> None:
    request = asked(user("q"), answered(asked(user("q")), REASONING, CALL).message)
    cured = WIRE.cure(UNREADABLE, request, ENDPOINT, RAW)
    assert cured is not None
    assert WIRE.cure(UNREADABLE, request, ENDPOINT, cured) is None


def test_a_model_without_reasoning_is_asked_again_without_it() -> None:
    error = refusal("Encrypted content is not supported with this model.", param="include")
    cured = WIRE.cure(error, asked(user("q")), ENDPOINT, RAW)
    assert cured is not None
    assert "include" not in body(asked(user("q")), cured)


def test_an_error_that_no_rendering_mends_has_no_cure() -> None:
    overloaded = ModelError("Encrypted content could not be verified.", kind="overloaded", status=529)
    request = asked(user("q"), answered(asked(user("q")), REASONING, CALL).message)
    assert WIRE.cure(overloaded, request, ENDPOINT, RAW) is None


def test_a_refused_placement_is_bridged_unless_the_user_chose_it() -> None:
    request = asked(user("q"), call(), tool_result("call_1", "1"), steer("one"))
    error = refusal("Unexpected role 'user' after role 'tool'", "placement")
    cured = WIRE.cure(error, request, ENDPOINT, RAW)
    assert cured == Settings("bridge")
    assert [item.get("role") for item in sent(request, cured)] == ["user", None, None, "assistant", "user"]
    assert WIRE.cure(error, request, evolve(ENDPOINT, placement="raw"), RAW) is None


# ---- answers


def test_a_streamed_answer_is_put_together() -> None:
    response, shown = read(ANSWER)
    assert shown == response.message.text == "Größe \u2028 ok"
    assert response.message.tool_calls == (ToolCall("call_1", "look", '{"at": "x"}'),)
    assert response.finish == "tool_calls"
    assert response.usage == Usage(20, 6, 8)
    assert response.reasoning == "Hm"


def test_the_list_of_the_last_event_counts_when_it_is_whole() -> None:
    response, shown = read(stream(delta("output_text", 0, "Hello"), ended("completed", said("Hello"), CALL)))
    assert shown == response.message.text == "Hello"
    assert response.finish == "tool_calls"


def test_an_item_that_came_whole_needs_no_pieces() -> None:
    response, _ = read(stream(done(0, said("Hello")), done(1, CALL), ended()))
    assert response.message.text == "Hello"
    assert response.message.tool_calls[0].arguments == CALL["arguments"]


def test_items_that_are_no_objects_are_passed_over() -> None:
    response = WIRE.decode({"output": [None, {"type": 1}, REASONING, said("Hello")]}, asked(user("q")), ENDPOINT)
    assert sent(asked(user("q"), response.message))[1:] == [REASONING, said("Hello")]


def test_arguments_that_came_as_an_object_are_kept_as_json() -> None:
    response = answered(asked(user("q")), {**CALL, "arguments": {"at": "x"}})
    assert response.message.tool_calls[0].arguments == '{"at":"x"}'


def test_reasoning_that_no_request_can_carry_is_not_kept() -> None:
    assert answered(asked(user("q")), {**REASONING, "odd": float("nan")}, CALL).message.echo is None


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("something_new", "length")],
)
def test_an_incomplete_answer_says_why(reason: str, finish: str) -> None:
    end = ended("incomplete", incomplete_details={"reason": reason})
    response, _ = read(stream(added(0, {**CALL, "arguments": ""}), delta("function_call_arguments", 0, '{"at'), end))
    assert response.finish == finish
    assert response.message.tool_calls[0].arguments == '{"at'


def test_a_refusal_is_no_text() -> None:
    part = {"type": "refusal", "refusal": "I can't."}
    response, shown = read(stream(delta("refusal", 0, "I can't."), ended()))
    assert (shown, response.message.text, response.refusal) == ("", "", "I can't.")
    assert answered(asked(user("q")), {"type": "message", "content": [part]}).refusal == "I can't."


def test_a_stream_without_its_end_is_truncated() -> None:
    with pytest.raises(ModelError, match="broke off") as caught:
        read(stream(delta("output_text", 0, "Hel")) + b"data: [DONE]\n\n")
    assert (caught.value.kind, caught.value.partial, caught.value.retryable) == ("truncated", "Hel", False)


def test_an_event_that_is_cut_is_no_hole_in_the_text() -> None:
    with pytest.raises(ModelError, match="broke off"):
        read(b'data: {"type":"response.outp\n\n' + stream(ended("completed", said("lo"))))


@pytest.mark.parametrize(
    "event",
    [
        ended("failed", error={"code": "rate_limit_exceeded", "message": "Slow down."}),
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "param": None},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow down."}},
        {"error": {"code": "rate_limit_exceeded", "message": "Slow down."}},
    ],
)
def test_a_failed_answer_is_a_model_error_with_the_text_so_far(event: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="Slow down") as caught:
        read(stream(delta("output_text", 0, "Hel"), event))
    assert (caught.value.kind, caught.value.partial) == ("rate_limit", "Hel")


def test_an_id_that_the_conversation_has_already_is_replaced() -> None:
    (second,) = answered(asked(user("q"), call(), tool_result("call_1", "1")), CALL).message.tool_calls
    assert second.id not in ("", "call_1")


@pytest.mark.parametrize("reply", [None, [], {}, {"output": None}, {"error": {"message": "no"}}, {"status": "failed"}])
def test_a_reply_that_is_no_answer_is_a_model_error(reply: Any) -> None:
    with pytest.raises(ModelError):
        WIRE.decode(reply, asked(user("q")), ENDPOINT)


def test_an_error_in_the_body_of_a_reply_keeps_its_kind() -> None:
    with pytest.raises(ModelError, match="Slow down") as caught:
        answered(asked(user("q")), error={"code": "rate_limit_exceeded", "message": "Slow down."})
    assert caught.value.kind == "rate_limit"


KEYS = st.sampled_from(["type", "text", "content", "arguments", "call_id", "encrypted_content"])
JSON = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(st.characters()) | st.sampled_from(["message", "reasoning"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=4,
)
WHOLE = [*PIECES, ended("completed", REASONING, said("Hi"), CALL, usage=USAGE)]


def mutated(value: Any, path: list[int], new: Any) -> Any:
    """`value` with the part that `path` leads to replaced by `new`."""
    if not path or not isinstance(value, (dict, list)) or not value:
        return new
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    copy = value.copy()
    copy[key] = mutated(value[key], path[1:], new)
    return copy


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), JSON, st.integers(0, len(ANSWER)))
def test_any_cut_or_change_of_a_stream_is_an_answer_or_a_model_error(path: list[int], new: Any, cut: int) -> None:
    events = [event for event in mutated(WHOLE, path, new) if isinstance(event, dict)]
    for data in (ANSWER[:cut], stream(*events)):
        try:
            response, _ = read(data)
        except ModelError:
            continue
        body(asked(user("q"), response.message))
