"""What the model reads of a steer, and where: a labelled user message that stays in its place."""

from __future__ import annotations

import itertools
import threading

import pytest

from steerkit import (
    Event,
    Run,
    SpecError,
    SteerEvent,
    Text,
    ToolCallEvent,
    ToolResultEvent,
    Turn,
    TurnEvent,
    assistant,
    tool,
    user,
)
from steerkit.core.spec import STEER_LABEL
from steerkit.patterns import Plan
from steerkit.testing import ScriptedModel, call, say
from tests.conftest import said, start, texts
from tests.steering.steered import asked, label, steering_at


@tool
def look() -> str:
    """Look."""
    return "seen"


def test_a_steer_is_in_a_user_message_of_its_own_and_in_no_tool_result() -> None:  # B38
    model = ScriptedModel([call("look"), say("x")])
    start(model, tools=[look], on_event=steering_at(ToolCallEvent, "S")).wait()
    assert [(message.role, message.text) for message in asked(model, 1)][2:] == [("tool", "seen"), ("user", label("S"))]


def test_without_a_steer_a_request_is_what_the_pattern_sent_and_nothing_more() -> None:  # B40
    model = ScriptedModel([say("x")])
    history = [user("Q")]
    start(model, messages=history).wait()
    assert (model.requests[0].system, list(asked(model, 0))) == (None, history)
    assert asked(model, 0)[0] is history[0]


def test_a_steer_adds_nothing_to_the_system_prompt() -> None:  # B40
    model = ScriptedModel([call("look"), say("x")])
    start(model, tools=[look], system="Be terse.", on_event=steering_at(TurnEvent, "S")).wait()
    assert [request.system for request in model.requests] == ["Be terse.", "Be terse."]


def test_the_label_is_the_callers_to_choose() -> None:  # B41
    model = ScriptedModel([say("x")])
    start(model, steer_label="Note:", on_event=steering_at(TurnEvent, "S")).wait()
    assert texts(asked(model, 0))[-1] == "Note:\nS"


def test_a_blank_label_is_refused_before_anything_starts() -> None:  # B41, B43
    with pytest.raises(SpecError, match="steer_label is blank"):
        start(ScriptedModel([]), steer_label=" ")


@pytest.mark.parametrize("word", ["untrusted", "system", "ignore", "important"])
def test_the_label_has_no_word_that_makes_a_model_suspicious(word: str) -> None:  # B41
    assert word not in STEER_LABEL.lower()


def test_the_label_says_whose_words_these_are_and_that_the_work_goes_on() -> None:  # B43
    assert "the user" in STEER_LABEL.lower()
    assert "earlier request still stands" in STEER_LABEL


def test_the_first_user_message_stays_first_in_every_request() -> None:  # B43
    model = ScriptedModel([call("look"), call("look"), say("x")])
    start(model, tools=[look], on_event=steering_at(TurnEvent, "S")).wait()
    assert {texts(request.messages)[0] for request in model.requests} == {"Q"}


def test_a_steer_that_was_answered_is_not_said_again_after_the_history_was_summed_up() -> None:  # B44
    def run(turn: Turn) -> str:
        for number in range(2):
            turn.messages.append(turn.ask().message)
            turn.messages.append(user(f"more {number}"))
        turn.messages[1:-1] = [user("Summary of the work so far.")]
        for number in range(2):
            turn.messages.append(turn.ask().message)
            turn.messages.append(user(f"even more {number}"))
        return turn.ask().message.text

    model = ScriptedModel(lambda request: say("x"))
    start(model, run, on_event=steering_at(TurnEvent, "S")).wait()
    for request in model.requests[1:]:
        assert said(request.messages) == ["S"]
        assert texts(request.messages)[-1] != label("S")
        assert request.messages[1].text == label("S")


def test_each_request_begins_with_the_whole_request_before_it() -> None:  # B47
    said_at = {1: "first", 2: "second", 4: "third"}
    count = 0

    def on_event(run: Run, event: Event) -> None:
        nonlocal count
        if isinstance(event, ToolResultEvent):
            count += 1
            if count in said_at:
                run.steer(said_at[count])

    model = ScriptedModel([call("look")] * 5 + [say("x")])
    start(model, tools=[look], on_event=on_event).wait()
    for before, after in itertools.pairwise(model.requests):
        assert after.messages[: len(before.messages)] == before.messages
        assert all(one is other for one, other in zip(before.messages, after.messages, strict=False))
    assert said(asked(model, 5)) == ["first", "second", "third"]


def test_a_steer_stays_in_its_place_when_a_plan_puts_messages_behind_it() -> None:  # B47
    model = ScriptedModel([say("1. look"), call("look"), say("x")])
    result = start(model, Plan(), tools=[look], on_event=steering_at(TurnEvent, "S")).wait()
    assert {texts(request.messages).index(label("S")) for request in model.requests} == {1}
    assert texts(result.messages)[1] == label("S")


@pytest.mark.parametrize("blank", ["", " \n\t", [], ["", " "], [Text("")]])
def test_a_blank_steer_is_refused_at_once_and_nothing_is_queued(blank: str) -> None:  # B49
    gate = threading.Event()
    run = start(ScriptedModel([say("x").after(gate)]))
    with pytest.raises(ValueError, match="blank"):
        run.steer(blank)
    assert run.pending_steers == ()
    gate.set()
    run.wait()


def test_a_zero_width_space_is_a_steer() -> None:  # B49
    model = ScriptedModel([say("x")])
    start(model, on_event=steering_at(TurnEvent, "\u200b")).wait()
    assert said(asked(model, 0)) == ["\u200b"]


@pytest.mark.parametrize("wrong", [None, b"x", 3, {"text": "S"}, [None]])
def test_a_steer_that_is_no_text_or_image_is_refused_at_once(wrong: str) -> None:  # B49
    gate = threading.Event()
    run = start(ScriptedModel([say("x").after(gate)]))
    with pytest.raises(TypeError):
        run.steer(wrong)
    assert run.pending_steers == ()
    gate.set()
    run.wait()


def test_a_lone_surrogate_is_refused_where_it_comes_in() -> None:  # B50
    gate = threading.Event()
    run = start(ScriptedModel([say("x").after(gate)]))
    with pytest.raises(ValueError, match="lone surrogate"):
        run.steer("a\ud83d")
    assert run.pending_steers == ()
    gate.set()
    run.wait()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("\ud83d\ude00", "\U0001f600"),  # a pair is one character, as a terminal may hand it over
        ("e\u0301", "e\u0301"),  # no normalisation
        ("\u202eabc", "\u202eabc"),
        ("a\x00b", "a\x00b"),
        ("  S\n", "  S\n"),
    ],
)
def test_the_text_of_a_steer_is_kept_as_it_was_said(given: str, kept: str) -> None:  # B50
    model = ScriptedModel([say("x")])
    run = start(model, on_event=steering_at(TurnEvent, given))
    run.wait()
    told = next(event for event in run.events() if isinstance(event, SteerEvent))
    assert (told.steer.text, said(asked(model, 0)), texts(asked(model, 0))[-1]) == (kept, [kept], label(kept))


def test_the_raw_words_need_no_parsing_of_the_label() -> None:  # B43
    model = ScriptedModel([say("x")])
    run = start(model, steer_label="a: b\nc:", on_event=steering_at(TurnEvent, "S: T\nU"))
    run.wait()
    message = asked(model, 0)[-1]
    told = next(event for event in run.events() if isinstance(event, SteerEvent))
    assert message.meta["steer_content"] == (Text("S: T\nU"),)
    assert message.meta["steer_id"] == told.steer.id


def test_an_assistant_message_of_the_caller_is_never_behind_its_own_steer() -> None:  # B43
    history = [user("Q"), assistant("An answer."), user("Another question.")]
    model = ScriptedModel([say("x")])
    start(model, messages=history, on_event=steering_at(TurnEvent, "S")).wait()
    assert texts(asked(model, 0)) == ["Q", "An answer.", "Another question.", label("S")]
