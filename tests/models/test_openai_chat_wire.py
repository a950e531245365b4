"""The chat completions format: what is sent, and what a refusal leads to."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from steerkit.core.message import Echo, Image, ToolCall, assistant, tool_result, user
from steerkit.core.model import Endpoint, ModelRef
from steerkit.core.tool import Tool
from steerkit.models.wire import Settings
from tests.models.chat_format import (
    BRIDGE,
    LOCAL,
    LOOK,
    OPENAI,
    RAW,
    WIRE,
    asked,
    body,
    called,
    refusal,
    sent,
)

# ---- what is sent


def test_the_system_prompt_is_the_first_message() -> None:
    assert body(asked(system="Be brief."))["messages"][0] == {"role": "system", "content": "Be brief."}


def test_no_tools_means_no_tools_field_and_no_tool_choice() -> None:
    assert body(asked(tool_choice="none")).keys() == {"model", "messages"}


def test_tool_choice_is_sent_with_tools_when_it_is_not_auto() -> None:
    assert body(asked(tools=(LOOK,), tool_choice="none"))["tool_choice"] == "none"
    assert "tool_choice" not in body(asked(tools=(LOOK,)))


def test_a_tool_without_arguments_has_empty_properties() -> None:
    tool = Tool("now", "", {"type": "object"}, lambda: 0)
    assert body(asked(tools=(tool,)))["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_usage_is_asked_for_in_streams_only() -> None:
    assert body(asked(), stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body(asked())


def test_no_limit_and_no_temperature_is_sent_unless_asked_for() -> None:
    assert not {"max_tokens", "max_completion_tokens", "temperature"} & body(asked(), OPENAI).keys()


def test_openai_gets_max_completion_tokens_and_others_max_tokens() -> None:
    request = asked(model=ModelRef("m", max_tokens=5, temperature=0.0))
    assert body(request, OPENAI)["max_completion_tokens"] == 5
    assert body(request)["max_tokens"] == 5 and body(request)["temperature"] == 0.0


def test_extra_fields_of_the_model_are_sent_and_win() -> None:
    request = asked(model=ModelRef("m", temperature=1.0, extra={"temperature": 0.5, "seed": 1}))
    assert body(request)["temperature"] == 0.5 and body(request)["seed"] == 1


def test_extra_fields_do_not_double_tools_or_messages() -> None:
    request = asked(model=ModelRef("m", extra={"tools": [], "messages": []}), tools=(LOOK,))
    raw = WIRE.encode(request, LOCAL, RAW, stream=False)
    assert raw.count(b'"tools"') == raw.count(b'"messages"') == 1
    assert json.loads(raw)["messages"] == [{"role": "user", "content": "go"}]


def test_the_key_goes_where_the_provider_reads_it() -> None:
    assert WIRE.headers(LOCAL) == {"Authorization": "Bearer key"}
    assert WIRE.headers(Endpoint("https://x.openai.azure.com/openai/v1", "key")) == {"api-key": "key"}
    assert WIRE.headers(Endpoint("http://localhost/v1")) == {}


def test_a_user_message_with_text_alone_is_a_string() -> None:
    assert sent(user("a", "b")) == [{"role": "user", "content": "ab"}]


def test_an_image_of_a_user_message_is_a_data_url() -> None:
    assert sent(user("see", Image(b"\0\0\0", "image/png")))[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


def test_an_empty_text_beside_an_image_is_left_out() -> None:
    assert len(sent(user("", Image(b"\0", "image/png")))[0]["content"]) == 1


def test_an_empty_tool_result_says_so_in_a_string() -> None:
    assert sent(user("go"), called(), tool_result("call_1", ()))[2]["content"] == "(no output)"


def test_calls_without_text_have_null_content() -> None:
    assert sent(user("go"), called())[1]["content"] is None


def test_calls_without_text_have_empty_content_in_bridge_mode() -> None:
    assert sent(user("go"), called(), settings=BRIDGE)[1]["content"] == ""


@pytest.mark.parametrize(
    ("written", "replayed"),
    [
        ('{"at": "Par', "{}"),
        ("[1]", "{}"),
        ("", "{}"),
        ('{"at": NaN}', "{}"),
        ('{"at":  1}', '{"at":  1}'),
        ('{"at": "a\nb"}', '{"at":"a\\nb"}'),
        ('{"at": "\\ud800"}', '{"at":"?"}'),
    ],
)
def test_arguments_are_replayed_as_a_json_object_whatever_the_model_wrote(written: str, replayed: str) -> None:
    assert sent(user("go"), called(written))[1]["tool_calls"][0]["function"]["arguments"] == replayed


def test_a_name_that_the_model_made_up_is_replayed_as_a_legal_one() -> None:
    message = assistant(tool_calls=[ToolCall("1", "get weather!"), ToolCall("2", "")])
    assert [c["function"]["name"] for c in sent(user("go"), message)[1]["tool_calls"]] == ["get_weather_", "unknown"]


def test_mistral_gets_ids_of_9_letters_and_digits_in_call_and_result() -> None:
    messages = sent(user("go"), called(call_id="call_abc-1"), tool_result("call_abc-1", "x"), model="Mistral-Nemo")
    call_id = messages[1]["tool_calls"][0]["id"]
    assert len(call_id) == 9 and call_id.isalnum() and messages[2]["tool_call_id"] == call_id


def test_openai_gets_no_id_longer_than_40_characters() -> None:
    long = "c" * 41
    messages = sent(user("go"), called(call_id=long), tool_result(long, "x"), endpoint=OPENAI)
    assert messages[2]["tool_call_id"] == messages[1]["tool_calls"][0]["id"]
    assert len(messages[2]["tool_call_id"]) <= 40


def test_a_long_id_goes_back_to_whoever_made_it() -> None:
    long = "call_1__thought__" + "c" * 400
    assert sent(user("go"), called(call_id=long))[1]["tool_calls"][0]["id"] == long


@pytest.mark.parametrize("name", ["mistral-large-latest", "mistralai/Devstral-Small", "ministral-8b", "pixtral-12b"])
def test_mistral_models_are_bridged_wherever_they_run(name: str) -> None:
    assert WIRE.settings(LOCAL, name).mode == "bridge"


def test_the_mistral_api_is_bridged_whatever_the_model_is_called() -> None:
    assert WIRE.settings(Endpoint("https://api.mistral.ai/v1"), "mine").mode == "bridge"


def test_other_models_are_sent_the_conversation_as_it_is() -> None:
    assert WIRE.settings(LOCAL, "qwen3").mode == "raw"


def test_a_chosen_placement_is_used_whatever_the_model() -> None:
    assert WIRE.settings(evolve(LOCAL, placement="raw"), "mistral-small").mode == "raw"


def test_lone_surrogates_of_a_model_never_stop_a_request() -> None:
    message = assistant(tool_calls=[ToolCall("\ud800", "look", '{"at": "\ud800"}')])
    assert sent(user("go"), message, tool_result("\ud800", "x"))[1]["tool_calls"][0]["id"] == "?"


# ---- encoding once


def test_the_json_of_a_message_is_made_once() -> None:
    first, messages = user("go"), (user("go"), called(), tool_result("call_1", "4 C"))
    WIRE.encode(asked(first, *messages), LOCAL, RAW, stream=True)
    (kept,) = first.memo.values()
    WIRE.encode(asked(first, *messages, user("more")), LOCAL, RAW, stream=True)
    (kept_still,) = first.memo.values()
    assert kept_still is kept


@pytest.mark.parametrize("settings", [BRIDGE, Settings("raw", frozenset({"null_content"}))])
def test_the_kept_json_is_not_used_where_another_is_due(settings: Settings) -> None:
    message = called()
    assert sent(user("go"), message, settings=RAW)[1]["content"] is None
    assert sent(user("go"), message, settings=settings)[1]["content"] == ""


def test_the_kept_json_of_one_model_is_not_sent_to_another() -> None:
    message = called(echo=Echo("openai_chat localhost:8080 m", '{"reasoning_content": "hm"}'))
    assert sent(user("go"), message)[1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in sent(user("go"), message, model="other")[1]


# ---- cures


def test_a_placement_error_switches_raw_to_bridge() -> None:
    request = asked(user("go"), called(), tool_result("call_1", "x"), user("more"))
    assert WIRE.cure(refusal("no", kind="placement"), request, LOCAL, RAW) == BRIDGE


def test_a_placement_error_switches_only_once() -> None:
    assert WIRE.cure(refusal("no", kind="placement"), asked(user("a"), user("b")), LOCAL, BRIDGE) is None


def test_a_placement_that_the_user_chose_is_never_changed() -> None:
    endpoint = evolve(LOCAL, placement="raw")
    assert WIRE.cure(refusal("no", kind="placement"), asked(user("a"), user("b")), endpoint, RAW) is None


def test_a_cure_that_changes_nothing_is_not_tried() -> None:
    assert WIRE.cure(refusal("no", kind="placement"), asked(user("a")), LOCAL, RAW) is None


@pytest.mark.parametrize(
    ("text", "param", "cured"),
    [
        ("body.stream_options.include_usage: Extra inputs are not permitted", "stream_options", "stream_options"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens", "max_tokens"),
        ("property 'reasoning_content' is unsupported", None, "echo"),
        ("Extra inputs are not permitted: body.messages.1.assistant.reasoning", None, "echo"),
        ("Invalid value for 'content': expected a string, got null.", None, "null_content"),
    ],
)
def test_what_the_client_added_and_the_server_refused_is_left_out(text: str, param: str | None, cured: str) -> None:
    echo = Echo("openai_chat localhost:8080 m", '{"reasoning_content": "hm"}')
    request = asked(user("go"), called(echo=echo), tool_result("call_1", "x"), model=ModelRef("m", max_tokens=5))
    assert WIRE.cure(refusal(text, param=param), request, LOCAL, RAW) == Settings("raw", frozenset({cured}))


def test_a_refused_max_tokens_is_sent_under_its_other_name() -> None:
    request = asked(model=ModelRef("m", max_tokens=5))
    assert body(request, settings=Settings("raw", frozenset({"max_tokens"})))["max_completion_tokens"] == 5
    assert body(request, OPENAI, Settings("raw", frozenset({"max_completion_tokens"})))["max_tokens"] == 5


def test_what_was_left_out_is_not_sent() -> None:
    without = Settings("raw", frozenset({"stream_options", "echo"}))
    message = called(echo=Echo("openai_chat localhost:8080 m", '{"reasoning_content": "hm"}'))
    sent_body = body(asked(user("go"), message), settings=without, stream=True)
    assert "stream_options" not in sent_body and "reasoning_content" not in sent_body["messages"][1]


@pytest.mark.parametrize(
    ("text", "param"),
    [
        ("max_tokens must be at least 1, got -5.", "max_tokens"),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens.", "max_tokens"),
        ("Unsupported value: 'temperature' does not support 0.1 with this model.", "temperature"),
        ("The reasoning_content in the thinking mode must be passed back to the API.", None),
        ("Function tools with reasoning_effort are not supported in /v1/chat/completions.", "reasoning_effort"),
    ],
)
def test_a_refusal_of_what_the_user_asked_for_is_theirs_to_mend(text: str, param: str | None) -> None:
    echo = Echo("openai_chat localhost:8080 m", '{"reasoning_content": "hm"}')
    request = asked(user("go"), called(echo=echo), model=ModelRef("m", max_tokens=5, temperature=0.1))
    assert WIRE.cure(refusal(text, param=param), request, LOCAL, RAW) is None


def test_a_refusal_of_another_kind_is_not_cured_by_leaving_out_what_it_mentions() -> None:
    error = refusal("Too long: max_tokens beyond the context is not allowed.", kind="context_length")
    assert WIRE.cure(error, asked(model=ModelRef("m", max_tokens=5)), LOCAL, RAW) is None


def test_a_limit_that_is_refused_under_both_names_is_an_error() -> None:
    error, request = (
        refusal("Unsupported parameter: 'max_completion_tokens'."),
        asked(model=ModelRef("m", max_tokens=5)),
    )
    assert WIRE.cure(error, request, LOCAL, Settings("raw", frozenset({"max_tokens"}))) is None


def test_a_template_that_wants_short_ids_gets_them() -> None:
    text = "Error: Tool call IDs should be alphanumeric strings with length 9!"
    request = asked(user("go"), called(), tool_result("call_1", "x"))
    assert WIRE.cure(refusal(text, kind="server", status=500), request, LOCAL, RAW) == BRIDGE
