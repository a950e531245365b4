"""Messages to JSON and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit import Image, Message, Text, ToolCall, dump_messages, load_messages, tool_result, user
from steerkit.core.codec import FORMAT
from steerkit.core.message import Echo
from steerkit.core.steer_queue import SteerQueue
from steerkit.middleware.steering import steer_message

TEXT = st.text().map(Text)
PARTS = st.lists(TEXT | st.builds(Image, st.binary(min_size=1), st.sampled_from(["image/png", "image/jpeg"])))
CALLS = st.lists(st.builds(ToolCall, st.text(), st.text(), st.text()))
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["system", "user"]), PARTS)
    | st.builds(
        lambda parts, calls, echo: Message("assistant", parts, calls, echo=echo),
        PARTS,
        CALLS,
        st.none() | st.builds(Echo, st.text(), st.text()),
    )
    | st.builds(tool_result, st.text(), PARTS)
)


@given(MESSAGES)
def test_what_is_dumped_can_be_loaded_from_json(messages: list[Message]) -> None:
    assert list(load_messages(json.loads(json.dumps(dump_messages(messages))))) == messages


def test_a_steer_is_still_a_steer_after_a_round_trip() -> None:
    content = (Text("a"), Image(b"x", "image/png"))
    message = steer_message(SteerQueue().put(content), "Label:")
    (loaded,) = load_messages(json.loads(json.dumps(dump_messages([message]))))
    assert loaded == message
    assert loaded.meta["steer_content"] == content


def test_what_is_empty_is_left_out() -> None:
    (data,) = dump_messages([user("a")])["messages"]
    assert data == {"role": "user", "content": [{"type": "text", "text": "a"}]}


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"format": FORMAT + 1, "messages": []},
        {"format": FORMAT},
        {"format": FORMAT, "messages": None},
        {"format": FORMAT, "messages": {"role": "user"}},
        {"format": FORMAT, "messages": ["user"]},
        {"format": FORMAT, "messages": [{"content": []}]},
        {"format": FORMAT, "messages": [{"role": "user"}]},
        {"format": FORMAT, "messages": [{"role": "robot", "content": []}]},
        {"format": FORMAT, "messages": [{"role": "user", "content": "a"}]},
        {"format": FORMAT, "messages": [{"role": "user", "content": [{"type": "sound"}]}]},
        {
            "format": FORMAT,
            "messages": [{"role": "user", "content": [{"type": "image", "data": "QQ%==", "media_type": "image/png"}]}],
        },
        {"format": FORMAT, "messages": [{"role": "assistant", "content": [], "tool_calls": [{}]}]},
        {"format": FORMAT, "messages": [{"role": "assistant", "content": [], "echo": {"who": "x"}}]},
        {"format": FORMAT, "messages": [{"role": "user", "content": [], "meta": {"steer_content": "a"}}]},
        {"format": FORMAT, "messages": [{"role": "user", "content": [], "meta": []}]},
    ],
)
def test_what_is_no_conversation_is_refused_by_a_value_error(data: Any) -> None:
    with pytest.raises(ValueError):
        load_messages(data)
