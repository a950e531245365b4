"""Placement: single cases by name here; whole conversations, through the real decorator, in test_steering.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from steerkit import Message, ToolCall, assistant, tool_result, user
from steerkit.core.placement import Pin, place

A, B, C, D = (user(name) for name in "ABCD")
S, T = user("S"), user("T")
CALLS = assistant("", [ToolCall("c1", "look"), ToolCall("c2", "look")])
R1, R2 = tool_result("c1", "seen"), tool_result("c2", "seen")


def placed(messages: list[Message], *pins: tuple[Message, list[Message]]) -> list[Message]:
    return list(place(messages, [Pin(message, before) for message, before in pins])[0])


def copies(*messages: Message) -> list[Message]:
    return [Message(m.role, m.content, m.tool_calls, m.tool_call_id) for m in messages]


def test_nothing_pinned_leaves_the_conversation_as_it_is() -> None:
    assert place([A, B], []) == ((A, B), ())


def test_a_steer_stays_where_it_stood_in_a_conversation_that_grows() -> None:
    assert placed([A], (S, [A])) == [A, S]
    assert placed([A, B, C], (S, [A])) == [A, S, B, C]


def test_steers_at_one_place_keep_their_order() -> None:
    assert placed([A, B], (S, [A]), (T, [A])) == [A, S, T, B]


def test_the_index_of_each_pin_is_where_it_stands() -> None:
    messages, indexes = place([A, B, C], [Pin(T, [A, B]), Pin(S, [A])])
    assert messages == (A, S, B, T, C)
    assert [messages[index] for index in indexes] == [T, S]


def test_a_steer_follows_the_latest_message_that_is_left_of_those_before_it() -> None:
    assert placed([A, D], (S, [A, B, C])) == [A, S, D]


def test_a_steer_leads_when_nothing_is_left_of_what_stood_before_it() -> None:
    assert placed([D], (S, [A, B])) == [S, D]


def test_a_steer_follows_its_message_when_the_start_was_dropped() -> None:
    assert placed([B, C, D], (S, [A, B])) == [B, S, C, D]


def test_a_steer_stays_behind_equal_copies_of_what_stood_before_it() -> None:
    assert placed([*copies(A, B), C], (S, [A, B])) == [A, B, S, C]


def test_a_steer_stays_behind_copies_when_the_first_message_is_the_same_object() -> None:
    assert placed([A, *copies(B, C), D], (S, [A, B, C])) == [A, B, C, S, D]


def test_a_message_used_twice_does_not_pull_a_steer_towards_the_end() -> None:
    assert placed([B, C, B, D], (S, [A, B])) == [B, S, C, B, D]


def test_a_message_used_twice_does_not_pull_a_steer_towards_the_start() -> None:
    assert placed([A, B, A, C], (S, [A, B, A])) == [A, B, A, S, C]
    assert placed([*copies(B), C, B, D], (S, [B, C, A, B])) == [B, C, B, S, D]
    assert placed([A, B, D], (S, [A, B, C, A])) == [A, B, S, D]


def test_a_steer_behind_a_finished_call_stands_behind_all_its_results() -> None:
    assert placed([A, CALLS, R1, R2, B], (S, [A, CALLS, R1])) == [A, CALLS, R1, R2, S, B]


def test_a_steer_behind_an_unfinished_call_stands_before_it() -> None:
    assert placed([A, CALLS, R1], (S, [A, CALLS, R1])) == [A, S, CALLS, R1]


def test_a_steer_is_not_the_last_word_of_a_conversation_that_has_grown() -> None:
    assert placed([D, A, B], (S, [A, B])) == [D, A, S, B]


def test_a_steer_that_would_end_a_grown_conversation_stays_out_of_its_last_call() -> None:
    assert placed([D, CALLS, R1, R2], (S, [CALLS, R1, R2])) == [D, S, CALLS, R1, R2]


def test_a_steer_may_be_the_last_word_again_of_a_conversation_that_has_not_grown() -> None:
    assert placed([B], (S, [A, B])) == [B, S]


def test_a_steer_said_to_an_empty_conversation_leads() -> None:
    assert placed([A], (S, [])) == [S, A]


MESSAGES = st.lists(st.sampled_from([A, B, C, D, user("A")]), max_size=6)


@given(MESSAGES, st.lists(MESSAGES, max_size=4))
def test_whatever_the_lists_nothing_is_lost_doubled_or_reordered(
    messages: list[Message], befores: list[list[Message]]
) -> None:
    pins = [Pin(user(f"S{number}"), before) for number, before in enumerate(befores)]
    result, indexes = place(messages, pins)
    assert [result[index] for index in indexes] == [pin.message for pin in pins]
    rest = [message for index, message in enumerate(result) if index not in set(indexes)]
    assert list(map(id, rest)) == list(map(id, messages))


class Counted(Sequence[Message]):
    """Messages that count how often one of them is looked at."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self.reads = 0

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return self._messages[index]


def test_a_steer_in_a_conversation_that_only_grows_costs_no_look_at_all_that_stood_before_it() -> None:
    messages = [user(str(number)) for number in range(200)]
    befores = [Counted(messages[:number]) for number in range(1, 200)]
    place(messages, [Pin(S, before) for before in befores])
    assert {before.reads for before in befores} == {1}
