"""Placement modes: what each makes of a conversation, and that what was sent once is sent again the same."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit.core.message import Image, Message, Text, ToolCall, assistant, tool_result, user
from steerkit.core.model import Endpoint, ModelRef, Request
from steerkit.models.anthropic_messages_wire import AnthropicMessagesWire
from steerkit.models.openai_chat_wire import ChatWire
from steerkit.models.openai_responses_wire import OpenAIResponsesWire
from steerkit.models.shaping import BRIDGE, is_steer, shape, short_id
from steerkit.models.wire import Mode, Settings, Wire

MODES: tuple[Mode, ...] = ("raw", "bridge", "fold", "join", "system")
PICTURE = Image(b"\x89PNG", "image/png")

# Wires to compare, each with the field of its body that holds the conversation.
WIRES: dict[str, tuple[Callable[[], Wire], str]] = {
    "anthropic_messages": (AnthropicMessagesWire, "messages"),
    "openai_chat": (ChatWire, "messages"),
    "openai_responses": (OpenAIResponsesWire, "input"),
}


def steer(*content: str | Image) -> Message:
    return Message("user", content, meta={"steer_id": "s", "steer_content": ()})


def call(number: int = 1) -> Message:
    return assistant(tool_calls=[ToolCall(f"call_{number}", "look", "{}")])


def result(content: object = "4 C", number: int = 1) -> Message:
    return tool_result(f"call_{number}", content)  # type: ignore[arg-type]


def told(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def test_raw_leaves_the_conversation_as_it_is() -> None:
    messages = [user("go"), call(), result(), steer("faster")]
    assert shape(messages, "raw") == messages


def test_bridge_puts_a_fixed_text_between_results_and_steer() -> None:
    shaped = shape([user("go"), call(), result(), steer("faster")], "bridge")
    assert told(shaped[2:]) == [("tool", "4 C"), ("assistant", "Noted."), ("user", "faster")]


def test_bridge_is_used_for_a_user_message_that_is_no_steer() -> None:
    assert shape([user("go"), call(), result(), user("next")], "bridge")[3] is BRIDGE


@pytest.mark.parametrize("mode", ["bridge", "join"])
def test_strict_modes_join_user_messages_in_a_row_with_a_blank_line(mode: Mode) -> None:
    assert told(shape([user("go"), steer("faster"), steer("now")], mode)) == [("user", "go\n\nfaster\n\nnow")]


@pytest.mark.parametrize("mode", ["raw", "fold"])
def test_other_modes_keep_user_messages_in_a_row_apart(mode: Mode) -> None:
    assert len(shape([user("go"), user("more")], mode)) == 2


def test_bridge_serves_two_steers_at_one_point_with_one_text() -> None:
    shaped = shape([user("go"), call(), result(), steer("a"), steer("b")], "bridge")
    assert told(shaped[3:]) == [("assistant", "Noted."), ("user", "a\n\nb")]


def test_fold_makes_steers_the_end_of_the_last_result() -> None:
    shaped = shape([user("go"), call(), result(), steer("a"), steer("b")], "fold")
    assert told(shaped[2:]) == [("tool", "4 C\n\na\n\nb")]


def test_fold_leaves_a_user_message_that_is_no_steer_behind_the_result() -> None:
    assert told(shape([user("go"), call(), result(), user("next")], "fold"))[3] == ("user", "next")


def test_fold_into_an_empty_result_says_that_there_was_no_output() -> None:
    assert told(shape([user("go"), call(), result(()), steer("a")], "fold"))[2] == ("tool", "(no output)\n\na")


def test_fold_keeps_the_id_of_the_result() -> None:
    assert shape([user("go"), call(), result(), steer("a")], "fold")[2].tool_call_id == "call_1"


def test_system_makes_steers_at_one_point_one_system_message() -> None:
    shaped = shape([user("go"), call(), result(), steer("a"), steer("b")], "system")
    assert told(shaped[3:]) == [("system", "a\n\nb")]


def test_system_leaves_a_steer_a_user_message_where_no_user_turn_precedes_it() -> None:
    shaped = shape([steer("first"), assistant("ok"), steer("second")], "system")
    assert [message.role for message in shaped] == ["user", "assistant", "user"]


def test_system_does_not_touch_a_system_message_of_the_conversation() -> None:
    own = Message("system", "Be brief.")
    assert shape([own, own, user("go")], "system")[:2] == [own, own]


def test_system_puts_the_image_of_a_steer_before_the_system_message() -> None:
    shaped = shape([user("go"), call(), result(), steer("a"), steer("see", PICTURE)], "system")
    assert told(shaped[3:]) == [("user", ""), ("system", "a\n\nsee")]


def test_a_steer_of_an_image_alone_makes_no_empty_system_message() -> None:
    shaped = shape([user("go"), call(), result(), steer(PICTURE)], "system")
    assert [message.role for message in shaped[3:]] == ["user"]


def test_a_user_message_that_stands_alone_is_left_as_it_is() -> None:
    alone = user("go")
    assert shape([alone], "bridge")[0] is alone


@pytest.mark.parametrize("mode", MODES)
def test_an_assistant_message_that_says_nothing_is_left_out(mode: Mode) -> None:
    assert len(shape([user("go"), assistant(" "), user("well?")], mode)) < 3
    assert all(message.role == "user" for message in shape([user("go"), assistant(), user("well?")], mode))


def test_an_image_of_a_result_follows_behind_all_results_and_before_the_steer() -> None:
    calls = assistant(tool_calls=[ToolCall("call_1", "look"), ToolCall("call_2", "look")])
    shaped = shape([user("go"), calls, result(["cat", PICTURE]), result("dog", 2), steer("a")], "raw")
    assert told(shaped[2:]) == [
        ("tool", "cat\n\n(image attached below)"),
        ("tool", "dog"),
        ("user", ""),
        ("user", "a"),
    ]
    assert shaped[4].content == (PICTURE,)


def test_one_bridge_serves_the_image_of_a_result_and_the_steer_behind_it() -> None:
    shaped = shape([user("go"), call(), result(PICTURE), steer("a")], "bridge")
    assert told(shaped[2:]) == [("tool", "(image attached below)"), ("assistant", "Noted."), ("user", "a")]
    assert shaped[-1].content == (PICTURE, Text("a"))


def test_the_image_of_a_folded_steer_follows_behind_the_results() -> None:
    shaped = shape([user("go"), call(), result(), steer("see", PICTURE)], "fold")
    assert told(shaped[2:]) == [("tool", "4 C\n\nsee\n\n(image attached below)"), ("user", "")]


def test_images_stay_in_results_where_the_wire_takes_them_there() -> None:
    messages = [user("go"), call(), result(PICTURE)]
    assert shape(messages, "raw", images_in_results=True) == messages


@pytest.mark.parametrize("mode", MODES)
def test_the_stored_conversation_does_not_change(mode: Mode) -> None:
    messages = [user("go"), call(), result([PICTURE]), steer("a"), steer("b", PICTURE), assistant()]
    before = [repr(message) for message in messages]
    shape(messages, mode)
    assert [repr(message) for message in messages] == before


@pytest.mark.parametrize("mode", MODES)
def test_what_is_made_of_messages_is_made_once(mode: Mode) -> None:
    messages = [user("go"), steer("x"), call(), result([PICTURE]), steer("a"), steer("b", PICTURE)]
    first, second = shape(messages, mode), shape(messages, mode)
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_a_steer_is_told_by_its_id_and_not_by_its_text() -> None:
    assert is_steer(steer("a")) and not is_steer(user("a"))


def test_a_short_id_has_9_letters_and_digits_and_is_stable() -> None:
    assert short_id("call_abc") == short_id("call_abc") != short_id("call_abd")
    assert len(short_id("call_abc")) == 9 and short_id("call_abc").isalnum()


def test_an_id_that_is_short_already_stays() -> None:
    assert short_id("a1b2c3d4e") == "a1b2c3d4e"


@given(st.lists(st.sampled_from(["user", "steer", "group", "pictures", "text", "blank"]), max_size=12))
def test_bridged_roles_alternate_once_calls_and_results_are_left_out(kinds: list[str]) -> None:
    made = {
        "user": [user("u")],
        "steer": [steer("s", PICTURE)],
        "group": [call(), result()],
        "pictures": [call(), result(PICTURE), steer("s")],
        "text": [assistant("t"), user("u")],
        "blank": [assistant()],
    }
    shaped = shape([message for kind in ["user", *kinds] for message in made[kind]], "bridge")
    plain = [message.role for message in shaped if message.role != "tool" and not message.tool_calls]
    assert all(one != other for one, other in itertools.pairwise(plain) if one == "user")


def ten_steps() -> list[list[Message]]:
    """The conversations of ten requests of one run; four steers arrive, two of them at one point."""
    steers = {2: [steer("one")], 5: [steer("two"), steer("three", PICTURE)], 8: [steer("four")]}
    conversation: list[Message] = [user("go"), user("on")]
    requests = [list(conversation)]
    for step in range(1, 11):
        conversation += [call(step), result(f"r{step}" if step % 4 else ["seen", PICTURE], step), *steers.get(step, [])]
        requests.append(list(conversation))
    return requests


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WIRES)
def test_what_was_sent_once_is_sent_again_the_same(name: str, mode: Mode) -> None:
    make, where = WIRES[name]
    wire, endpoint = make(), Endpoint("http://localhost/v1", placement=mode)
    sent: list[object] = []
    for messages in ten_steps():
        request = Request(ModelRef("m"), tuple(messages), system="Be brief.")
        items = json.loads(wire.encode(request, endpoint, wire.settings(endpoint, "m"), stream=True))[where]
        assert items[: len(sent)] == sent
        assert len(items) > len(sent)
        sent = items
    assert all(json.dumps(sent).count(said) == 1 for said in ("one", "two", "three", "four"))


@pytest.mark.parametrize("mode", MODES)
def test_the_bytes_of_a_chat_request_begin_with_those_of_the_one_before(mode: Mode) -> None:
    wire, endpoint, before = ChatWire(), Endpoint("http://localhost/v1"), b""
    for messages in ten_steps():
        body = wire.encode(Request(ModelRef("m"), tuple(messages)), endpoint, Settings(mode), stream=True)
        assert body.startswith(before)
        before = body.removesuffix(b"]}")
