"""The Messages wire: what a request becomes, what is made of an answer, and what a refusal changes."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from steerkit.core.errors import ModelError
from steerkit.core.message import Image, Message, ToolCall, assistant, tool_result, user
from steerkit.core.model import Endpoint, ModelRef, Request, Response, Usage
from steerkit.core.tool import Tool
from steerkit.models.anthropic_messages import anthropic_messages
from steerkit.models.anthropic_messages_wire import AnthropicMessagesWire
from steerkit.models.sse import Decoder
from steerkit.models.wire import Settings

WIRE = AnthropicMessagesWire()
ENDPOINT = Endpoint("https://models.test", "key")
LOOK = Tool("look", "Look it up.", {"type": "object", "properties": {"at": {"type": "string"}}}, lambda at: at)
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "x"}}


def call(call_id: str = "toolu_1", arguments: str = '{"at":"x"}') -> Message:
    return assistant(tool_calls=[ToolCall(call_id, "look", arguments)])


def steer(text: str, *parts: Image) -> Message:
    return evolve(user(text, *parts), meta={"steer_id": text})


def asked(*messages: Message, model: str = "claude-sonnet-4-5", **fields: Any) -> Request:
    return Request(ModelRef(model), messages, **{"tools": (LOOK,), **fields})


def body(request: Request, mode: Settings | str = "join", *, endpoint: Endpoint = ENDPOINT) -> dict[str, Any]:
    chosen = mode if isinstance(mode, Settings) else Settings(mode)  # type: ignore[arg-type]
    made = json.loads(WIRE.encode(request, endpoint, chosen, stream=False))
    assert isinstance(made, dict)
    return made


def sent(request: Request, mode: Settings | str = "join") -> list[dict[str, Any]]:
    return list(body(request, mode)["messages"])


def answered(request: Request, *content: dict[str, Any], stop: str = "end_turn") -> Response:
    return WIRE.decode({"content": list(content), "stop_reason": stop}, request, ENDPOINT)


def thought(request: Request) -> Message:
    return answered(request, THINKING, USE, stop="tool_use").message


def stream(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def read(data: bytes, request: Request | None = None) -> tuple[Response, str]:
    reader, decoder, shown = WIRE.reader(request or asked(user("q")), ENDPOINT), Decoder(), ""
    for event in decoder.feed(data) + decoder.close():
        shown += reader.feed(event)
        if reader.done:
            break
    return reader.response(), shown


START = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 4}}}
STOP = {"type": "message_stop"}


def begin(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **what: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": what}


def end(reason: str, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


ANSWER = stream(
    START,
    {"type": "ping"},
    begin(0, {"type": "thinking", "thinking": "", "signature": ""}),
    delta(0, type="thinking_delta", thinking="Hm"),
    delta(0, type="signature_delta", signature="c2ln"),
    begin(1, {"type": "text", "text": ""}),
    delta(1, type="text_delta", text="Größe "),
    delta(1, type="text_delta", text="\u2028 ok"),
    begin(2, {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}),
    delta(2, type="input_json_delta", partial_json='{"at"'),
    delta(2, type="input_json_delta", partial_json=':"x"}'),
    end("tool_use", output_tokens=9),
    STOP,
)


# ---- placement


def test_a_steer_stands_behind_all_results_in_their_user_message() -> None:
    two = assistant(tool_calls=[ToolCall("a", "look"), ToolCall("b", "look")])
    messages = sent(asked(user("q"), two, tool_result("a", "1"), tool_result("b", "2"), steer("wait")))
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block.get("tool_use_id") or block["text"] for block in messages[2]["content"]] == ["a", "b", "wait"]


def test_results_stand_first_even_when_a_user_message_precedes_them() -> None:
    kinds = [
        block["type"] for block in sent(asked(user("q"), call(), user("s"), tool_result("toolu_1", "1")))[2]["content"]
    ]
    assert kinds == ["tool_result", "text"]


def test_a_newer_model_reads_a_steer_as_a_system_message() -> None:
    messages = sent(asked(user("q"), call(), tool_result("toolu_1", "1"), steer("one"), steer("two")), "system")
    assert messages[3] == {"role": "system", "content": "one\n\ntwo"}
    assert len(messages) == 4


def test_a_system_message_never_stands_before_a_user_message() -> None:
    messages = sent(asked(user("q"), call(), tool_result("toolu_1", "1"), steer("one"), user("two")), "system")
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "text", "text"]


def test_what_was_sent_is_sent_again_with_the_same_bytes() -> None:
    history = (user("q"), call(), tool_result("toolu_1", "1"), steer("one"))
    for mode in ("join", "system"):
        first = WIRE.encode(asked(*history), ENDPOINT, Settings(mode), stream=True)
        longer = asked(*history, call("toolu_2"), tool_result("toolu_2", "2"), steer("two"))
        assert WIRE.encode(longer, ENDPOINT, Settings(mode), stream=True).startswith(first.removesuffix(b"]}"))


@pytest.mark.parametrize(
    ("model", "mode"),
    [
        ("claude-opus-4-8", "system"),
        ("claude-opus-4-10-20261001", "system"),
        ("anthropic/claude-sonnet-5-2", "system"),
        ("claude-fable-5-1", "system"),
        ("claude-opus-4-7", "join"),
        ("claude-sonnet-4-20250514", "join"),
        ("claude-3-5-haiku-20241022", "join"),
        ("kimi-k2", "join"),
    ],
)
def test_the_mode_follows_the_model(model: str, mode: str) -> None:
    assert WIRE.settings(ENDPOINT, model).mode == mode


def test_the_mode_that_the_user_chose_stands() -> None:
    assert WIRE.settings(evolve(ENDPOINT, placement="join"), "claude-opus-5").mode == "join"


def test_a_system_message_of_the_conversation_is_user_text_where_it_cannot_stand_as_one() -> None:
    request = asked(user("q"), Message("system", "Be brief."))
    assert [message["role"] for message in sent(request, "join")] == ["user"]
    behind_answer = asked(user("q"), assistant("a"), Message("system", "Be brief."))
    assert [message["role"] for message in sent(behind_answer, "system")] == ["user", "assistant", "user"]


def test_raw_leaves_a_steer_in_a_message_of_its_own() -> None:
    messages = sent(asked(user("q"), call(), tool_result("toolu_1", "1"), steer("one")), "raw")
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user"]


# ---- the rest of a request


def test_a_limit_of_tokens_is_always_sent_and_sampling_only_when_it_was_set() -> None:
    assert body(asked(user("q")))["max_tokens"] == 8192
    assert not {"temperature", "top_p", "top_k"} & body(asked(user("q"))).keys()
    made = body(Request(ModelRef("m", max_tokens=5, temperature=0.0, extra={"top_k": 3}), (user("q"),)))
    assert (made["max_tokens"], made["temperature"], made["top_k"]) == (5, 0.0, 3)


def test_system_messages_at_the_head_join_the_system_field() -> None:
    made = body(asked(Message("system", "B"), user("q"), system="A"))
    assert made["system"] == "A\n\nB"
    assert [message["role"] for message in made["messages"]] == ["user"]


def test_a_blank_system_is_not_sent() -> None:
    assert "system" not in body(asked(user("q"), system=" "))


def test_a_history_with_calls_keeps_definitions_when_no_tools_are_offered() -> None:
    made = body(asked(user("q"), call(), tool_result("toolu_1", "1"), tools=()))
    assert made["tools"] == [{"name": "look", "input_schema": {"type": "object"}}]
    assert made["tool_choice"] == {"type": "none"}


def test_no_tools_and_no_calls_mean_no_tool_fields() -> None:
    assert not {"tools", "tool_choice"} & body(asked(user("q"), tools=())).keys()


def test_tool_choice_none_keeps_the_tools() -> None:
    made = body(asked(user("q"), tool_choice="none"))
    assert made["tool_choice"] == {"type": "none"}
    assert made["tools"][0]["name"] == "look"


def test_an_empty_result_says_so_and_blank_texts_are_left_out() -> None:
    messages = sent(asked(user("q", " \n"), assistant(" "), call(), tool_result("toolu_1", "")))
    assert messages[0]["content"] == [{"type": "text", "text": "q"}]
    assert messages[2]["content"][0]["content"] == "(no output)"
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


def test_images_stand_in_user_messages_and_in_results() -> None:
    image = Image(b"\x89", "image/png")
    messages = sent(asked(user("see", image), call(), tool_result("toolu_1", image)))
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iQ=="}}
    assert messages[0]["content"][1] == block
    assert messages[2]["content"][0]["content"] == [block]


@pytest.mark.parametrize("arguments", ['{"at": "x', "[1]", "NaN", '{"at": NaN}', "[" * 100_000])
def test_arguments_that_are_no_json_object_are_replayed_as_an_empty_one(arguments: str) -> None:
    messages = sent(asked(user("q"), call(arguments=arguments), tool_result("toolu_1", "bad")))
    assert messages[1]["content"][0]["input"] == {}


def test_an_id_of_another_provider_is_made_legal_on_both_sides() -> None:
    messages = sent(asked(user("q"), call("functions.look:0"), tool_result("functions.look:0", "1")))
    assert messages[1]["content"][0]["id"] == messages[2]["content"][0]["tool_use_id"]
    assert messages[1]["content"][0]["id"].replace("_", "").isalnum()


def test_a_message_is_encoded_once() -> None:
    message = user("q")
    WIRE.encode(asked(message), ENDPOINT, Settings("join"), stream=True)
    (key,) = [key for key, value in message.memo.items() if value == b'{"type":"text","text":"q"}']
    message.memo[key] = b'"kept"'
    assert sent(asked(message))[0]["content"] == ["kept"]


def test_the_key_goes_out_in_its_header_only() -> None:
    assert WIRE.headers(ENDPOINT) == {"x-api-key": "key", "anthropic-version": "2023-06-01"}
    assert "x-api-key" not in WIRE.headers(Endpoint("https://models.test"))


@pytest.mark.parametrize("behind", ["", "/v1"])
def test_a_base_url_may_end_in_the_version(behind: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # it does not listen, so the request is refused
        base_url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        client = anthropic_messages(Endpoint(base_url + behind, max_retries=0))
        with pytest.raises(ModelError, match=f"{base_url}/v1/messages: "):
            client.complete(asked(user("q")))


# ---- thinking


def test_thinking_goes_back_unmodified_to_the_model_that_made_it() -> None:
    question = asked(user("q"), model="claude-opus-5-5")
    told = thought(question)
    assert sent(evolve(question, messages=(user("q"), told)))[1]["content"] == [THINKING, USE]


def test_thinking_is_not_sent_to_another_model_or_endpoint() -> None:
    told = thought(asked(user("q")))
    assert sent(asked(user("q"), told, model="claude-opus-4-5"))[1]["content"] == [USE]
    elsewhere = body(asked(user("q"), told), endpoint=Endpoint("https://other.test"))
    assert elsewhere["messages"][1]["content"] == [USE]


@pytest.mark.parametrize(
    "change",
    [{"system": "Other."}, {"tools": ()}, {"messages": (user("another q"),)}],
    ids=["system", "tools", "messages"],
)
def test_thinking_is_dropped_when_what_stood_before_it_has_changed(change: dict[str, Any]) -> None:
    question = asked(user("q"), model="claude-opus-5-5")
    told = thought(question)
    changed = evolve(question, **change)
    assert sent(evolve(changed, messages=(*changed.messages, told)))[1]["content"] == [USE]


def test_thinking_made_behind_the_change_is_kept() -> None:
    question = asked(user("q"), model="claude-opus-5-5")
    old = thought(question)
    changed = evolve(question, system="Other.", messages=(user("q"), old, tool_result("toolu_1", "1")))
    new = answered(changed, THINKING, {**USE, "id": "toolu_2"}).message
    messages = sent(evolve(changed, messages=(*changed.messages, new)))
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use"]
    assert [block["type"] for block in messages[3]["content"]] == ["thinking", "tool_use"]


def test_a_model_that_does_not_bind_its_thinking_gets_it_back_behind_any_system() -> None:
    told = thought(asked(user("q")))
    assert sent(asked(user("q"), told, system="Other."))[1]["content"] == [THINKING, USE]


def test_blocks_come_back_in_the_order_of_the_model_without_blank_texts() -> None:
    text = {"type": "text", "text": "Looking."}
    told = answered(asked(user("q")), THINKING, {"type": "text", "text": "\n"}, USE, text).message
    assert sent(asked(user("q"), told))[1]["content"] == [THINKING, USE, text]
    told = answered(asked(user("q")), USE, text).message
    assert sent(asked(user("q"), told))[1]["content"] == [USE, text]


def test_an_illegal_id_is_mended_beside_thinking_too() -> None:
    told = answered(asked(user("q")), THINKING, {**USE, "id": "look:0"}).message
    messages = sent(asked(user("q"), told, tool_result("look:0", "1")))
    assert messages[1]["content"][1]["id"] == messages[2]["content"][0]["tool_use_id"] != "look:0"


def test_an_answer_that_a_pattern_has_changed_is_sent_as_changed() -> None:
    told = evolve(thought(asked(user("q"))), tool_calls=(), content="Instead.")
    assert sent(asked(user("q"), told))[1]["content"] == [{"type": "text", "text": "Instead."}]


# ---- cures


def refusal(said: str, kind: Any = "bad_request") -> ModelError:
    return ModelError(said, kind=kind, status=400)


BOUND = refusal("messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to another.")


def test_refused_thinking_is_stripped_up_to_there_and_later_thinking_is_kept() -> None:
    question = asked(user("q"), model="claude-opus-5-5")
    request = evolve(question, messages=(user("q"), thought(question), tool_result("toolu_1", "1")))
    cured = WIRE.cure(BOUND, request, ENDPOINT, Settings("join"))
    assert cured is not None
    assert sent(request, cured)[1]["content"] == [USE]
    new = answered(request, THINKING, {**USE, "id": "toolu_2"}).message
    later = sent(evolve(request, messages=(*request.messages, new)), cured)
    assert later[1]["content"] == [USE]
    assert later[3]["content"][0] == THINKING


def test_a_cure_that_changes_nothing_is_none() -> None:
    request = asked(user("q"), thought(asked(user("q"))))
    cured = WIRE.cure(BOUND, request, ENDPOINT, Settings("join"))
    assert cured is not None
    assert WIRE.cure(BOUND, request, ENDPOINT, cured) is None
    assert WIRE.cure(BOUND, asked(user("q")), ENDPOINT, Settings("join")) is None


@pytest.mark.parametrize(
    "error",
    [
        refusal("wrong order", "placement"),
        refusal("role 'system' is not supported on this model"),
        refusal("messages.3.role: Input should be 'user' or 'assistant'"),
    ],
)
def test_a_refused_system_message_becomes_user_text(error: ModelError) -> None:
    request = asked(user("q"), call(), tool_result("toolu_1", "1"), steer("one"))
    assert WIRE.cure(error, request, ENDPOINT, Settings("system")) == Settings("join")
    assert WIRE.cure(error, request, evolve(ENDPOINT, placement="system"), Settings("system")) is None
    assert WIRE.cure(error, request, ENDPOINT, Settings("join")) is None


def test_a_server_without_the_cache_marker_is_asked_again_without_it() -> None:
    cured = WIRE.cure(
        refusal("cache_control: Extra inputs are not permitted"), asked(user("q")), ENDPOINT, Settings("join")
    )
    assert cured is not None
    assert "cache_control" in body(asked(user("q")))
    assert "cache_control" not in body(asked(user("q")), cured)


def test_an_error_that_no_rendering_mends_has_no_cure() -> None:
    overloaded = ModelError("role 'system'", kind="overloaded", status=529)
    request = asked(user("q"), call(), tool_result("toolu_1", "1"), steer("one"))
    assert WIRE.cure(overloaded, request, ENDPOINT, Settings("system")) is None


# ---- answers


def test_a_streamed_answer_is_put_together() -> None:
    response, shown = read(ANSWER)
    assert shown == response.message.text == "Größe \u2028 ok"
    assert response.message.tool_calls == (ToolCall("toolu_1", "look", '{"at":"x"}'),)
    assert response.finish == "tool_calls"
    assert response.usage == Usage(7, 9, 4)
    assert response.reasoning == "Hm"


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("something_new", "stop"),
    ],
)
def test_a_stop_reason_becomes_a_finish(stop: str, finish: str) -> None:
    assert answered(asked(user("q")), {"type": "text", "text": "a"}, stop=stop).finish == finish


def test_blocks_that_are_no_objects_are_passed_over() -> None:
    response = WIRE.decode({"content": [None, {"type": 1}, THINKING, USE]}, asked(user("q")), ENDPOINT)
    assert sent(asked(user("q"), response.message))[1]["content"] == [THINKING, USE]


def test_a_count_that_is_null_replaces_none() -> None:
    response, _ = read(stream(START, {**end("end_turn"), "usage": {"input_tokens": None, "output_tokens": 5}}, STOP))
    assert response.usage == Usage(7, 5, 4)


def test_a_piece_that_is_no_text_is_passed_over() -> None:
    odd = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 5}}
    response, _ = read(stream(START, odd, delta(0, type="text_delta", text="a"), end("end_turn"), STOP))
    assert response.message.text == "a"


def test_an_input_that_no_request_can_carry_is_an_empty_one() -> None:
    message = answered(asked(user("q")), THINKING, {**USE, "input": {"at": float("nan")}}).message
    assert message.tool_calls[0].arguments == "{}"
    assert sent(asked(user("q"), message))[1]["content"] == [{**USE, "input": {}}]


def test_an_id_that_the_conversation_has_already_is_replaced() -> None:
    request = asked(user("q"), call(), tool_result("toolu_1", "1"))
    (second,) = answered(request, USE).message.tool_calls
    assert second.id not in ("", "toolu_1")


def test_a_stream_without_its_end_mark_is_truncated() -> None:
    with pytest.raises(ModelError, match="broke off") as caught:
        read(stream(START, begin(0, {"type": "text", "text": ""}), delta(0, type="text_delta", text="Hel")))
    assert (caught.value.kind, caught.value.partial, caught.value.retryable) == ("truncated", "Hel", False)


def test_an_event_that_is_cut_is_no_hole_in_the_text() -> None:
    with pytest.raises(ModelError, match="broke off"):
        read(stream(START) + b'data: {"type":"content_block_del\n\n' + stream(end("end_turn"), STOP))


def test_an_error_event_keeps_the_text_so_far() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ModelError, match="Overloaded") as caught:
        read(stream(START, begin(0, {"type": "text", "text": ""}), delta(0, type="text_delta", text="Hel"), error))
    assert (caught.value.kind, caught.value.partial) == ("overloaded", "Hel")


@pytest.mark.parametrize("reply", [None, [], {}, {"content": None}, {"error": {"message": "no"}}, "text"])
def test_a_reply_that_is_no_answer_is_a_model_error(reply: Any) -> None:
    with pytest.raises(ModelError):
        WIRE.decode(reply, asked(user("q")), ENDPOINT)


def test_an_error_in_the_body_of_a_reply_keeps_its_kind() -> None:
    reply = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ModelError, match="Overloaded") as caught:
        WIRE.decode(reply, asked(user("q")), ENDPOINT)
    assert caught.value.kind == "overloaded"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.just("text"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def mutated(value: Any, path: list[int], new: Any) -> Any:
    """`value` with the part that `path` leads to replaced by `new`."""
    if not path or not isinstance(value, (dict, list)) or not value:
        return new
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    copy = value.copy()
    copy[key] = mutated(value[key], path[1:], new)
    return copy


EVENTS = [json.loads(line[6:]) for line in ANSWER.split(b"\n") if line.startswith(b"data: ")]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=5), JSON, st.integers(0, len(ANSWER)))
def test_any_cut_or_change_of_a_stream_is_an_answer_or_a_model_error(path: list[int], new: Any, cut: int) -> None:
    events = [event if isinstance(event, dict) else {"type": str(event)} for event in mutated(EVENTS, path, new) or []]
    for data in (ANSWER[:cut], stream(*({"type": "ping", **event} for event in events))):
        try:
            response, _ = read(data)
        except ModelError:
            continue
        body(asked(user("q"), response.message))
