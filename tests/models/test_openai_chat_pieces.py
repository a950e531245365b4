"""The chat completions format: tool calls that come in pieces."""

from __future__ import annotations

import pytest
from attrs import evolve

from steerkit.core.message import tool_result, user
from tests.models.chat_format import (
    LOCAL,
    LOOK,
    WIRE,
    asked,
    called,
    calls,
    piece,
    read,
)

# ---- tool calls in pieces


def test_a_new_id_at_a_used_index_is_a_new_call() -> None:
    one, two = piece('{"at":1}', index=0, id="1", name="look"), piece('{"at":2}', index=0, id="2", name="look")
    assert calls(read(one, two)) == [("look", '{"at":1}'), ("look", '{"at":2}')]


def test_another_id_in_every_piece_of_one_call_is_one_call() -> None:
    one, two = piece('{"at":', index=0, id="1", name="look"), piece("1}", index=0, id="2")
    assert calls(read(one, two)) == [("look", '{"at":1}')]


def test_without_index_and_id_a_name_is_a_new_call_and_the_rest_belongs_to_the_last() -> None:
    pieces = piece("", name="look"), piece('{"at":1}'), piece("", name="look"), piece('{"at":2}')
    assert calls(read(*pieces)) == [("look", '{"at":1}'), ("look", '{"at":2}')]


def test_without_index_a_piece_with_a_known_id_belongs_to_its_call() -> None:
    pieces = (
        piece('{"a', id="1", name="look"),
        piece('{"b', id="2", name="look"),
        piece('":1}', id="1"),
        piece('":2}', id="2"),
    )
    assert calls(read(*pieces)) == [("look", '{"a":1}'), ("look", '{"b":2}')]


def test_without_index_and_id_the_name_repeated_in_a_cut_call_is_no_new_call() -> None:
    pieces = piece('{"at":', name="look"), piece("1}", name="look")
    assert calls(read(*pieces)) == [("look", '{"at":1}')]


def test_a_second_whole_object_at_one_index_is_a_new_call() -> None:
    pieces = piece('{"at":1}', index=0, name="look"), piece('{"at":2}', index=0, name="look")
    assert calls(read(*pieces)) == [("look", '{"at":1}'), ("look", '{"at":2}')]


def test_a_braced_piece_inside_an_object_is_no_new_call() -> None:
    pieces = piece('{"a":{"b":1}', index=0, name="look"), piece('{"', index=0, name="look")
    assert len(calls(read(*pieces))) == 1


def test_a_name_in_pieces_is_joined() -> None:
    assert calls(read(piece("", index=0, id="1", name="lo"), piece("{}", index=0, name="ok"))) == [("look", "{}")]


def test_a_repeated_name_is_not_joined() -> None:
    assert calls(read(piece("", index=0, id="1", name="look"), piece("{}", index=0, name="look"))) == [("look", "{}")]


def test_a_repeated_name_that_no_tool_has_is_not_joined() -> None:
    assert calls(read(piece("", index=0, id="1", name="new"), piece("{}", index=0, name="new"))) == [("new", "{}")]


def test_a_growing_name_is_replaced() -> None:
    assert calls(read(piece("", index=0, id="1", name="lo"), piece("{}", index=0, name="look"))) == [("look", "{}")]


def test_a_name_made_of_the_same_piece_twice_is_joined_when_there_is_such_a_tool() -> None:
    request = asked(tools=(evolve(LOOK, name="go"), evolve(LOOK, name="gogo")))
    pieces = piece("", index=0, id="1", name="go"), piece("{}", index=0, name="go")
    assert calls(read(*pieces, request=request)) == [("gogo", "{}")]


def test_arguments_that_are_an_object_are_kept_as_json() -> None:
    assert calls(read(piece({"at": "é"}, index=0, id="1", name="look"))) == [("look", '{"at": "é"}')]


@pytest.mark.parametrize("nothing", ["", None, " \n"])
def test_no_arguments_are_an_empty_object(nothing: str | None) -> None:
    assert calls(read(piece(nothing, index=0, id="1", name="look"))) == [("look", "{}")]


def test_each_call_of_a_plain_answer_is_a_call_of_its_own_whatever_its_id() -> None:
    same = {"id": "1", "function": {"name": "look", "arguments": ""}}
    answer = {"choices": [{"message": {"tool_calls": [dict(same), dict(same)]}}]}
    assert calls(WIRE.decode(answer, asked(), LOCAL)) == [("look", "{}"), ("look", "{}")]


def test_arguments_that_are_no_json_are_kept_as_written() -> None:
    assert calls(read(piece(" {at: Oslo} ", index=0, id="1", name="look"))) == [("look", " {at: Oslo} ")]


def test_the_old_function_call_is_a_tool_call() -> None:
    assert calls(read({"function_call": {"name": "look", "arguments": "{}"}}, finish="function_call"))[0][0] == "look"


def test_missing_and_repeated_ids_are_replaced_by_9_letters_and_digits() -> None:
    pieces = (piece("{}", index=number, id=call_id, name="look") for number, call_id in enumerate(["x", "x", "", None]))
    ids = [call.id for call in read(*pieces).message.tool_calls]
    assert ids[0] == "x" and len(set(ids)) == 4
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids[1:])


def test_an_id_of_an_earlier_answer_is_replaced() -> None:
    request = asked(user("go"), called(call_id="call_0"), tool_result("call_0", "x"))
    assert read(piece("{}", index=0, id="call_0", name="look"), request=request).message.tool_calls[0].id != "call_0"
