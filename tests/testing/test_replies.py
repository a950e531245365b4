from __future__ import annotations

import threading

import pytest

from steerkit.core.message import ToolCall
from steerkit.core.model import Usage
from steerkit.testing import Answer, call, cut, fail, raw, say


def test_replies_add_up_to_one_answer() -> None:
    answer = say("Let me ") + say("look.") + call("search", query="x") + call("read", path="y")

    assert answer.text == "Let me look."
    assert answer.calls == (ToolCall("", "search", '{"query": "x"}'), ToolCall("", "read", '{"path": "y"}'))


def test_a_reply_adds_only_to_a_reply() -> None:
    with pytest.raises(TypeError):
        say("a") + "b"  # type: ignore[operator]


def test_a_tool_may_have_arguments_named_like_those_of_call() -> None:
    assert call("run", tool="x", arguments="y", arguments_text="z", after=1).calls[0].parse() == {
        "tool": "x",
        "arguments": "y",
        "arguments_text": "z",
        "after": 1,
    }


def test_arguments_may_be_given_verbatim() -> None:
    assert call("search", '{"query": ').calls[0].arguments == '{"query": '


def test_an_option_leaves_the_reply_that_it_is_called_on_alone() -> None:
    plain = say("x")
    plain.finishing("length")

    assert plain.reason == "stop"


def test_an_answer_with_calls_ends_for_them() -> None:
    assert call("search").reason == "tool_calls"


def test_an_answer_without_a_usage_has_one_all_the_same() -> None:
    assert say("x").tokens.output_tokens > 0


def test_a_given_usage_is_kept() -> None:
    assert say("x").using(7, 3, cached=2).tokens == Usage(7, 3, 2)


def test_options_survive_addition() -> None:
    first, second = threading.Event(), threading.Event()
    answer = say("a").after(first).using(1, 2) + call("b").after(second).finishing("length").cut(3)

    expected = Answer(text="a", calls=answer.calls, gate=second, usage=Usage(1, 2), finish="length", cut_after=3)
    assert answer == expected


def test_an_id_names_the_last_call() -> None:
    assert [one.id for one in (call("a") + call("b").with_id("x")).calls] == ["", "x"]


def test_an_id_without_a_call_is_refused() -> None:
    with pytest.raises(ValueError, match="has none"):
        say("x").with_id("y")


def test_every_kind_of_reply_can_be_held_back() -> None:
    gate = threading.Event()

    assert {reply.after(gate).gate for reply in (say("x"), fail(500), cut(), raw("{}"))} == {gate}


def test_holding_back_keeps_the_headers_of_a_failure() -> None:
    assert fail(429, headers={"retry-after": "1"}).after(threading.Event()).headers == (("retry-after", "1"),)
