"""Every tool call is answered at once, by exactly one result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit import Message, ToolCall, assistant, tool_result, user
from steerkit.core.pairing import Group, check_pairs, close_open_calls, group_at

Q = user("Q")


def calling(*ids: str) -> Message:
    return assistant("", [ToolCall(call_id, "look") for call_id in ids])


def answers(*ids: str) -> list[Message]:
    return [tool_result(call_id, "seen") for call_id in ids]


def test_a_group_is_found_from_each_of_its_messages() -> None:
    messages = [Q, calling("a", "b"), *answers("a", "b"), Q]
    assert [group_at(messages, index) for index in range(5)] == [None, *[Group(1, 4, ())] * 3, None]


def test_a_group_knows_the_calls_that_nobody_answered() -> None:
    assert group_at([calling("a", "b", "c"), *answers("b")], 0) == Group(0, 2, ("a", "c"))


def test_results_without_a_call_are_no_group() -> None:
    assert group_at(answers("a"), 0) is None
    assert group_at([assistant("hi"), *answers("a")], 1) is None


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([Q, *answers("a")], r"messages\[1\] answers tool call 'a', but no call"),
        ([Q, calling("a", "b"), *answers("a")], r"messages\[1\] has tool calls without results.*'b'"),
        ([calling("a"), Q, *answers("a")], r"messages\[0\] has tool calls without results.*'a'"),
        ([calling("a"), *answers("a", "b")], "do not match its tool calls one to one"),
        ([calling("a"), *answers("a", "a")], "do not match its tool calls one to one"),
    ],
)
def test_what_every_provider_refuses_is_refused(messages: list[Message], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_pairs(messages)


def test_results_may_come_in_any_order() -> None:
    check_pairs([Q, calling("a", "b"), *answers("b", "a"), Q])


def test_open_calls_are_answered_with_the_reason_straight_behind_what_is_there() -> None:
    messages = [Q, calling("a", "b"), *answers("a"), Q, calling("c")]
    closed = close_open_calls(messages, "Too late.")
    assert closed == (*messages[:3], tool_result("b", "Too late."), Q, calling("c"), tool_result("c", "Too late."))


ANYTHING = st.sampled_from([Q, assistant("hi"), calling("a"), calling("b", "c"), calling("a", "b")])


@given(st.lists(st.tuples(ANYTHING, st.integers(0, 2))))
def test_a_conversation_with_closed_calls_can_be_handed_on(steps: list[tuple[Message, int]]) -> None:
    messages: list[Message] = []
    for message, answered in steps:
        messages += [message, *answers(*[call.id for call in message.tool_calls][:answered])]
    closed = close_open_calls(messages, "Ended.")
    check_pairs(closed)
    assert [message for message in closed if message.text != "Ended."] == messages
