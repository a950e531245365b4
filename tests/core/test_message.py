"""Messages are values that never change, and what no request can carry is refused when it is made."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit import Image, Message, Text, ToolCall, assistant, tool_result, user
from steerkit.core.message import parts

PNG = Image(b"\x89PNG", "image/png")


def test_a_message_cannot_be_changed() -> None:
    message = user("hello")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        message.role = "assistant"  # type: ignore[misc]


def test_the_meta_of_a_message_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        user("hello").meta["steer_id"] = "x"  # type: ignore[index]


def test_the_meta_of_a_message_is_its_own() -> None:
    notes = {"steer_id": "a"}
    message = Message("user", "hello", meta=notes)
    notes["steer_id"] = "b"
    assert message.meta["steer_id"] == "a"


def test_equal_messages_are_equal_and_hash_alike() -> None:
    assert user("a", PNG) == user("a", PNG)
    assert hash(user("a", PNG)) == hash(user("a", PNG))


def test_what_a_wire_remembers_is_no_part_of_a_message() -> None:
    one, other = user("a"), user("a")
    one.memo["wire"] = "{}"
    assert one == other
    assert "wire" not in repr(one)


def test_a_str_a_part_and_a_list_are_content() -> None:
    assert user("a").content == parts(Text("a")) == parts(["a"]) == (Text("a"),)


@pytest.mark.parametrize("content", [None, 1, b"bytes", {"type": "text"}, [1], [b"x"], [None]])
def test_what_is_no_content_is_refused(content: Any) -> None:
    with pytest.raises(TypeError, match=r"Content is|A part of a message is"):
        parts(content)


def test_the_halves_of_a_surrogate_pair_are_joined() -> None:
    assert Text("\ud83d\ude00").text == "\U0001f600"


@pytest.mark.parametrize("text", ["\ud83d", "a\ude00b", "\ude00\ud83d"])
def test_a_lone_surrogate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        Text(text)


def test_text_takes_nothing_but_a_str() -> None:
    with pytest.raises(TypeError, match="Text takes a str, not int"):
        Text(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "media_type", "error"),
    [("text", "image/png", TypeError), (b"", "image/png", ValueError), (b"x", "text/plain", ValueError)],
)
def test_what_is_no_image_is_refused(data: Any, media_type: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="Image"):
        Image(data, media_type)


def test_the_repr_of_an_image_does_not_show_its_bytes() -> None:
    assert "PNG" not in repr(PNG)


def test_a_role_that_nobody_has_is_refused() -> None:
    with pytest.raises(ValueError, match="role is one of system, user, assistant, tool"):
        Message("developer", "x")  # type: ignore[arg-type]


def test_a_tool_message_says_which_call_it_answers() -> None:
    with pytest.raises(ValueError, match="tool_call_id"):
        Message("tool", "x")


def test_only_a_tool_message_answers_a_call() -> None:
    with pytest.raises(ValueError, match="tool_call_id"):
        Message("user", "x", tool_call_id="c1")


def test_only_an_assistant_calls_tools() -> None:
    with pytest.raises(ValueError, match="Only an assistant message has tool_calls"):
        Message("user", "x", [ToolCall("c1", "look")])


def test_an_assistant_message_without_text_has_no_part() -> None:
    assert assistant(tool_calls=[ToolCall("c1", "look")]).content == ()


def test_the_text_of_a_message_leaves_images_out() -> None:
    message = user("a", PNG, "b")
    assert (message.text, message.has_image) == ("ab", True)


@pytest.mark.parametrize(
    "message",
    [
        user("a", PNG),
        assistant("b", [ToolCall("c1", "look", "{}")]),
        tool_result("c1", "c"),
        Message("user", "d", meta={"steer_id": "s", "steer_content": (Text("d"),)}),
    ],
)
def test_a_copied_or_pickled_message_is_equal(message: Message) -> None:
    assert copy.deepcopy(message) == pickle.loads(pickle.dumps(message)) == message


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text()))
def test_arguments_are_read_as_the_model_wrote_them(arguments: dict[str, Any]) -> None:
    import json

    assert ToolCall("c1", "look", json.dumps(arguments)).parse() == arguments


def test_no_arguments_are_an_empty_object() -> None:
    assert ToolCall("c1", "look", " ").parse() == {}


def test_a_raw_line_break_in_an_argument_is_taken() -> None:
    assert ToolCall("c1", "look", '{"a": "x\ny"}').parse() == {"a": "x\ny"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [('{"a": ', "not valid JSON"), ("[1]", "a JSON list"), ("[" * 100_000, "not valid JSON"), ("7", "a JSON int")],
)
def test_arguments_that_are_no_object_are_refused_with_a_cure(arguments: str, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"{reason}.*Send one JSON object"):
        ToolCall("c1", "look", arguments).parse()
