"""A pattern that shortens its history, or asks something beside the conversation."""

from __future__ import annotations

from steerkit import SteerEvent, StepEvent, Turn, TurnEvent, tool, tool_result, user
from steerkit.core.pairing import check_pairs
from steerkit.testing import ScriptedModel, call, say
from tests.conftest import Held, said, start, texts
from tests.steering.steered import asked, label, steering_at


@tool
def look() -> str:
    """Look."""
    return "seen"


def _act(turn: Turn) -> None:
    reply = turn.ask().message
    turn.messages.append(reply)
    turn.messages.extend([turn.answer(call) for call in reply.tool_calls])


def test_a_request_beside_the_conversation_has_no_steer_and_the_next_one_has_it() -> None:  # B106
    def run(turn: Turn) -> str:
        turn.ask(messages=[user("Sum this up.")], carry_steers=False)
        return turn.ask().message.text

    summing = Held(say("A summary."))
    model = ScriptedModel([summing, say("x")])
    handle = start(model, run)
    summing.wait()
    handle.steer("S")
    summing.go.set()
    handle.wait()
    assert [said(request.messages) for request in model.requests] == [[], ["S"]]


def test_a_steer_that_was_applied_is_not_carried_by_a_request_beside_the_conversation() -> None:  # B106
    def run(turn: Turn) -> str:
        turn.ask()
        turn.ask(messages=[user("Sum this up.")], carry_steers=False)
        return turn.ask().message.text

    model = ScriptedModel([say("x"), say("A summary."), say("y")])
    handle = start(model, run, on_event=steering_at(TurnEvent, "S"))
    handle.wait()
    assert [said(request.messages) for request in model.requests] == [["S"], [], ["S"]]


def test_requests_are_numbered_as_the_model_sees_them_also_those_beside_the_conversation() -> None:  # B106
    def run(turn: Turn) -> str:
        turn.ask(messages=[user("Sum this up.")], carry_steers=False)
        return turn.ask().message.text

    handle = start(ScriptedModel([say("A summary."), say("x")]), run, on_event=steering_at(TurnEvent, "S"))
    handle.wait()
    assert [event.request for event in handle.events() if isinstance(event, SteerEvent)] == [1]


def test_in_a_history_that_was_shortened_an_old_steer_is_neither_last_nor_inside_a_call() -> None:  # B107
    def run(turn: Turn) -> str:
        for _ in range(5):
            _act(turn)
        turn.messages[:] = [user("Summary."), *turn.messages[-2:]]
        for _ in range(2):
            _act(turn)
        return "x"

    model = ScriptedModel([call("look")] * 7)
    handle = start(model, run, tools=[look], on_event=steering_at(StepEvent, "S", number=3))
    result = handle.wait()
    assert len(asked(model, 4)) == 10 and len(asked(model, 5)) == 4
    for messages in (*(request.messages for request in model.requests[5:]), result.messages):
        check_pairs(messages)
        assert said(messages) == ["S"]
        assert texts(messages)[-1] != label("S")


def test_a_steer_behind_a_message_that_was_kept_stays_behind_it() -> None:  # B107
    def run(turn: Turn) -> str:
        for _ in range(5):
            _act(turn)
        kept = turn.messages[5:]
        turn.messages[:] = [user("Summary."), *kept]
        return turn.ask().message.text

    model = ScriptedModel([*[call("look")] * 5, say("x")])
    start(model, run, tools=[look], on_event=steering_at(StepEvent, "S", number=4)).wait()
    before = asked(model, 3)[-2]
    after = asked(model, 5)
    assert after[after.index(before) + 1].text == label("S")


def test_a_steer_that_comes_while_the_history_is_shortened_is_the_newest_message_once() -> None:  # B107
    def run(turn: Turn) -> str:
        for _ in range(3):
            _act(turn)
        summary = turn.ask(messages=[user("Sum this up.")], carry_steers=False).message.text
        turn.messages[:] = [user(summary), *turn.messages[-2:]]
        _act(turn)
        return turn.ask().message.text

    model = ScriptedModel([*[call("look")] * 3, say("Summary."), call("look"), say("x")])
    start(model, run, tools=[look], on_event=steering_at(StepEvent, "S", number=4)).wait()
    assert texts(asked(model, 4)) == ["Summary.", "", "seen", label("S")]
    assert texts(asked(model, 5)) == ["Summary.", "", "seen", label("S"), "", "seen"]


def test_a_steer_behind_a_result_that_was_shortened_stays_outside_the_call() -> None:  # B107
    def run(turn: Turn) -> str:
        _act(turn)
        turn.ask()
        turn.messages[-1] = tool_result(turn.messages[-1].tool_call_id or "", "(shortened)")
        return turn.ask().message.text

    model = ScriptedModel([call("look") + call("look"), say("x"), say("y")])
    start(model, run, tools=[look], on_event=steering_at(StepEvent, "S", number=2)).wait()
    assert texts(asked(model, 1))[2:] == ["seen", "seen", label("S")]
    assert texts(asked(model, 2))[2:] == ["seen", "(shortened)", label("S")]


def test_a_steer_is_not_the_last_word_of_a_history_that_was_put_in_another_order() -> None:  # B107, B44
    def run(turn: Turn) -> str:
        turn.messages.append(turn.ask().message)
        first, answer = turn.messages
        turn.messages[:] = [user("Summary."), answer, user("Once more:"), first]
        return turn.ask().message.text

    model = ScriptedModel([say("x"), say("y")])
    start(model, run, on_event=steering_at(TurnEvent, "S")).wait()
    assert texts(asked(model, 0)) == ["Q", label("S")]
    assert texts(asked(model, 1)) == ["Summary.", "x", "Once more:", label("S"), "Q"]
