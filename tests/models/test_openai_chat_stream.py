"""The chat completions format: what is read, and what of it goes back."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit.core.errors import ModelError
from steerkit.core.message import Echo, ToolCall, assistant, user
from steerkit.core.model import Endpoint, Usage
from steerkit.models.sse import ServerEvent
from tests.models.chat_format import (
    DEEPSEEK,
    GEMINI,
    LOCAL,
    OPENAI,
    WIRE,
    asked,
    called,
    echo_of,
    event,
    piece,
    read,
    sent,
)

# ---- what is read


def test_on_a_cut_stream_no_call_is_handed_out() -> None:
    with pytest.raises(ModelError) as caught:
        read(piece("{}", index=0, id="c", name="look"), finish=None, done=False)
    assert (caught.value.kind, caught.value.partial, caught.value.retryable) == ("truncated", "", True)


def test_a_cut_stream_gives_its_text_and_is_not_to_be_sent_again() -> None:
    with pytest.raises(ModelError) as caught:
        read({"content": "Hel"}, {"content": "lo"}, finish=None, done=False)
    assert (caught.value.kind, caught.value.partial, caught.value.retryable) == ("truncated", "Hello", False)


def test_an_event_that_was_cut_is_a_cut_stream() -> None:
    reader = WIRE.reader(asked(), LOCAL)
    reader.feed(event({"choices": [{"delta": {"content": "Hel"}}]}))
    with pytest.raises(ModelError) as caught:
        reader.feed(ServerEvent("", '{"choices":[{"ind'))
    assert (caught.value.kind, caught.value.partial) == ("truncated", "Hel")


def test_an_event_that_was_cut_behind_the_finish_does_no_harm() -> None:
    reader = WIRE.reader(asked(), LOCAL)
    reader.feed(event({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}))
    assert reader.feed(ServerEvent("", '{"usage')) == "" and reader.response().message.text == "Hi"


def test_an_end_mark_behind_nothing_is_a_cut_stream() -> None:
    with pytest.raises(ModelError):
        read({"role": "assistant", "content": ""}, finish=None)


def test_a_finish_without_an_end_mark_is_whole() -> None:
    assert read({"content": "Hi"}, done=False).message.text == "Hi"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("eos", "stop"),
        ("new_one", "stop"),
    ],
)
def test_a_finish_reason_that_nobody_knows_is_a_stop(said: str, meant: str) -> None:
    assert read({"content": "Hi"}, finish=said).finish == meant


@pytest.mark.parametrize("said", ["stop", "tool_calls", "function_call", "eos"])
def test_calls_make_the_finish_tool_calls(said: str) -> None:
    assert read(piece("{}", index=0, id="c", name="look"), finish=said).finish == "tool_calls"


def test_a_finish_of_tool_calls_without_calls_is_a_stop() -> None:
    assert read({"content": "Hi"}, finish="tool_calls").finish == "stop"


@pytest.mark.parametrize("said", ["error", "insufficient_system_resource", "abort"])
def test_a_finish_with_which_the_server_gives_up_is_an_error(said: str) -> None:
    with pytest.raises(ModelError) as caught:
        read({"content": "Hi"}, finish=said)
    assert caught.value.kind == "server" and caught.value.partial == "Hi"


@pytest.mark.parametrize(
    "chunk",
    [
        {"error": {"message": "oops"}},
        {"error": "oops"},
        [{"error": {"message": "oops"}}],
        {"object": "error", "message": "oops"},
        {"detail": "oops"},
        {"choices": [{"index": 0, "delta": {}, "error": {"message": "oops"}}]},
    ],
)
def test_an_error_in_the_stream_is_raised_with_its_words_and_the_text_so_far(chunk: Any) -> None:
    reader = WIRE.reader(asked(), LOCAL)
    reader.feed(event({"choices": [{"delta": {"content": "Hel"}}]}))
    with pytest.raises(ModelError, match="oops") as caught:
        reader.feed(event(chunk))
    assert caught.value.partial == "Hel" and not caught.value.retryable


def test_an_event_named_error_is_an_error() -> None:
    with pytest.raises(ModelError, match="Compute error"):
        WIRE.reader(asked(), LOCAL).feed(event({"message": "Compute error."}, "error"))


@pytest.mark.parametrize("chunk", [{"choices": 5}, {"choices": [5]}, {"choices": [{"delta": "x"}]}, {"x_groq": 1}])
def test_an_answer_of_another_form_is_a_model_error(chunk: Any) -> None:
    with pytest.raises(ModelError, match="not the form"):
        WIRE.reader(asked(), LOCAL).feed(event(chunk))


FIELDS = (
    *("choices", "delta", "message", "content", "tool_calls", "function", "name", "arguments", "usage", "index"),
    *("finish_reason", "id", "reasoning", "reasoning_details", "extra_content", "text", "type", "thinking"),
    *("function_call", "refusal", "prompt_tokens", "prompt_tokens_details", "error"),
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=4))
def test_whatever_a_stream_holds_is_read_or_is_a_model_error(chunks: list[Any]) -> None:
    reader = WIRE.reader(asked(), LOCAL)
    try:
        shown = "".join(reader.feed(event(chunk)) for chunk in chunks)
        response = reader.response()
    except ModelError:
        return
    assert response.message.text == shown
    sent(user("go"), response.message)


@given(JSON)
def test_whatever_a_plain_answer_holds_is_read_or_is_a_model_error(answer: Any) -> None:
    message: Any = {"choices": [{"message": answer}]}
    for whole in (answer, message):
        with contextlib.suppress(ModelError):
            WIRE.decode(whole, asked(), LOCAL)


def test_an_answer_without_choices_is_an_error() -> None:
    with pytest.raises(ModelError):
        WIRE.decode({"choices": []}, asked(), LOCAL)


def test_text_cut_inside_a_surrogate_pair_is_shown_whole() -> None:
    reader = WIRE.reader(asked(), LOCAL)
    shown = [
        reader.feed(ServerEvent("", f'{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}'))
        for text in ("a\\ud83d", "\\ude00", "b", "\\ud83d", "c")
    ]
    reader.feed(ServerEvent("", "[DONE]"))
    assert shown == ["a", "😀", "b", "", "\ufffdc"]
    assert reader.response().message.text == "a😀b\ufffdc"


def test_usage_is_the_last_one_said() -> None:
    reader = WIRE.reader(asked(), LOCAL)
    reader.feed(event({"choices": [{"delta": {"content": "a"}}], "usage": {"prompt_tokens": 0}}))
    reader.feed(event({"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 7}}]}))
    reader.feed(
        event({"choices": [], "usage": None, "x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}})
    )
    reader.feed(event({"choices": [], "usage": None}))
    assert reader.response().usage == Usage(9, 2)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}},
        {"prompt_cache_hit_tokens": 4, "cache_creation_input_tokens": 3},
        {"cached_tokens": 4, "prompt_tokens_details": None, "cache_creation_input_tokens": 3},
    ],
)
def test_cached_tokens_are_found_where_each_provider_puts_them(usage: dict[str, Any]) -> None:
    answer = {
        "choices": [{"message": {"content": "a"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, **usage},
    }
    assert WIRE.decode(answer, asked(), LOCAL).usage == Usage(9, 2, 4, 3)


def test_a_further_choice_is_not_mixed_into_the_answer() -> None:
    choices = [{"index": 0, "message": {"content": "a"}}, {"index": 1, "message": {"content": "b"}}]
    assert WIRE.decode({"choices": choices}, asked(), LOCAL).message.text == "a"


def test_usage_inside_the_choice_is_read() -> None:
    choice = {"message": {"content": "a"}, "usage": {"prompt_tokens": 7}}
    assert WIRE.decode({"choices": [choice]}, asked(), LOCAL).usage == Usage(7)


def test_an_error_beside_choices_is_an_error() -> None:
    with pytest.raises(ModelError, match="oops"):
        WIRE.decode({"choices": [{"message": {"content": "a"}}], "error": {"message": "oops"}}, asked(), LOCAL)


def test_a_raw_line_feed_inside_a_text_is_read() -> None:
    reader = WIRE.reader(asked(), LOCAL)
    assert reader.feed(ServerEvent("", '{"choices":[{"delta":{"content":"a\nb"}}]}')) == "a\nb"


def test_not_a_number_in_what_is_echoed_does_not_stop_the_next_request() -> None:
    blocks = [{"type": "reasoning.text", "index": 0, "score": float("nan")}]
    message = read({"reasoning_details": blocks, "content": "a"}).message
    assert sent(user("go"), message)[1]["reasoning_details"][0]["score"] is None


# ---- echo


def test_reasoning_goes_back_to_the_model_that_made_it() -> None:
    response = read(
        {"reasoning_content": "Let "}, {"reasoning_content": "me."}, piece("{}", index=0, id="c", name="look")
    )
    assert response.reasoning == "Let me."
    assert sent(user("go"), response.message)[1]["reasoning_content"] == "Let me."


@pytest.mark.parametrize("endpoint", [OPENAI, Endpoint("http://localhost:8081/v1")])
def test_reasoning_does_not_go_to_another_endpoint(endpoint: Endpoint) -> None:
    message = read({"reasoning_content": "hm", "content": "a"}).message
    assert sent(user("go"), message, endpoint=endpoint)[1] == {"role": "assistant", "content": "a"}


def test_empty_reasoning_goes_back_too() -> None:
    message = read({"reasoning_content": ""}, {"content": "a"}).message
    assert sent(user("go"), message)[1]["reasoning_content"] == ""


def test_null_reasoning_does_not_go_back() -> None:
    assert read({"reasoning_content": None, "reasoning": None, "content": "a"}).message.echo is None


def test_reasoning_details_are_merged_by_index_and_go_back_alone() -> None:
    response = read(
        {"reasoning": "Th", "reasoning_details": [{"type": "reasoning.text", "text": "Th", "index": 0}]},
        {"reasoning": "ink", "reasoning_details": [{"type": "reasoning.text", "text": "ink", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": "sig", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "xx", "index": 0}]},
        {"content": "a"},
    )
    assert response.reasoning == "Think"
    assert echo_of(response) == {
        "reasoning_details": [
            {"type": "reasoning.text", "text": "Think", "index": 0, "signature": "sig"},
            {"type": "reasoning.encrypted", "data": "xx", "index": 0},
        ]
    }


def test_what_is_no_block_is_left_out() -> None:
    assert read({"reasoning_details": ["x"], "content": "a"}).message.echo is None


def test_blocks_without_an_index_end_with_their_signature() -> None:
    response = read(
        {"thinking_blocks": [{"type": "thinking", "thinking": "a"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "b", "signature": "1"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "c"}]},
        {"content": "x"},
    )
    assert [block["thinking"] for block in echo_of(response)["thinking_blocks"]] == ["ab", "c"]


def test_encrypted_blocks_without_an_index_stay_apart() -> None:
    blocks = [{"type": "reasoning.encrypted", "data": "a"}, {"type": "reasoning.encrypted", "data": "b"}]
    assert echo_of(read({"reasoning_details": blocks, "content": "x"}))["reasoning_details"] == blocks


def test_blocks_of_one_index_with_other_ids_stay_apart() -> None:
    blocks = [{"type": "reasoning.summary", "index": 0, "id": name, "summary": name} for name in "ab"]
    assert echo_of(read({"reasoning_details": blocks, "content": "x"}))["reasoning_details"] == blocks


def test_a_later_null_does_not_take_a_field_of_a_block_away() -> None:
    blocks = [{"type": "reasoning.text", "index": 0, "signature": signature} for signature in ("sig", None, "")]
    (whole,) = echo_of(read({"reasoning_details": blocks, "content": "x"}))["reasoning_details"]
    assert whole["signature"] == "sig"


def test_a_signature_goes_back_on_the_call_that_it_came_with() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    request, reader = asked(), WIRE.reader(asked(), GEMINI)
    for number, extra in enumerate(({}, {"extra_content": signature})):
        reader.feed(event({"choices": [{"delta": piece("{}", index=number, id=f"c{number}", name="look", **extra)}]}))
    reader.feed(ServerEvent("", "[DONE]"))
    sent_calls = sent(*request.messages, reader.response().message, endpoint=GEMINI)[1]["tool_calls"]
    assert [call.get("extra_content") for call in sent_calls] == [None, signature]


def test_gemini_gets_a_signature_on_the_first_call_of_another_model() -> None:
    message = assistant(tool_calls=[ToolCall("1", "look"), ToolCall("2", "look")])
    first, second = sent(user("go"), message, endpoint=GEMINI, model="gemini-3-pro")[1]["tool_calls"]
    assert first["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"
    assert "extra_content" not in second


def test_a_signature_of_gemini_itself_is_not_replaced() -> None:
    echo = Echo("openai_chat generativelanguage.googleapis.com gemini-3", '{"tool_calls": [{"extra_content": 1}]}')
    messages = sent(user("go"), called(echo=echo), endpoint=GEMINI, model="gemini-3")
    assert messages[1]["tool_calls"][0]["extra_content"] == 1


def test_reasoning_of_deepseek_itself_is_not_replaced() -> None:
    echo = Echo("openai_chat api.deepseek.com m", '{"reasoning_content": "hm"}')
    assert sent(user("go"), called(echo=echo), endpoint=DEEPSEEK)[1]["reasoning_content"] == "hm"


def test_deepseek_gets_reasoning_with_the_calls_of_another_model() -> None:
    assert sent(user("go"), called(), endpoint=DEEPSEEK)[1]["reasoning_content"] == ""
