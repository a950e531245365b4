"""The transcript: a steer is part of the conversation that is kept, and stays where it was."""

from __future__ import annotations

import json

from steerkit import ToolCallEvent, dump_messages, load_messages, tool
from steerkit.testing import ScriptedModel, call, say
from tests.conftest import said, start, texts
from tests.steering.steered import asked, label, steering_at


@tool
def look() -> str:
    """Look."""
    return "seen"


def test_a_kept_conversation_has_the_steer_in_its_place_when_it_goes_on() -> None:  # B97
    model = ScriptedModel([call("look"), say("x"), say("y")])
    first = start(model, tools=[look], on_event=steering_at(ToolCallEvent, "S")).wait()
    loaded = load_messages(json.loads(json.dumps(dump_messages(first.messages))))
    assert loaded == first.messages
    start(model, messages=[*loaded, *loaded[:1]], tools=[look]).wait()
    assert asked(model, 2)[: len(asked(model, 1))] == asked(model, 1)
    assert [message.role for message in asked(model, 2)][3] == "user"
    assert said(asked(model, 2)) == ["S"]


def test_a_conversation_that_goes_on_has_no_steer_labelled_twice() -> None:  # B97
    model = ScriptedModel([call("look"), say("x"), say("y")])
    first = start(model, tools=[look], on_event=steering_at(ToolCallEvent, "S")).wait()
    second = start(model, messages=[*first.messages, first.messages[0]], tools=[look]).wait()
    assert texts(second.messages).count(label("S")) == 1


def test_the_result_has_the_steer_behind_the_results_that_were_there_when_it_was_carried() -> None:  # B98
    model = ScriptedModel([call("look"), call("look"), say("x")])
    result = start(model, tools=[look], on_event=steering_at(ToolCallEvent, "S")).wait()
    assert texts(result.messages) == ["Q", "", "seen", label("S"), "", "seen", "x"]


def test_the_result_is_the_last_request_and_its_answer() -> None:  # B98
    model = ScriptedModel([call("look"), call("look"), say("x")])
    result = start(model, tools=[look], on_event=steering_at(ToolCallEvent, "S", "T")).wait()
    assert result.messages[:-1] == asked(model, 2)
