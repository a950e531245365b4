"""Order: the next request carries what waits in the order in which it was said; `idle` waits for the end."""

from __future__ import annotations

import threading

import pytest

from steerkit import Event, Run, ToolCallEvent, Turn, TurnEvent, tool
from steerkit.testing import ScriptedModel, call, fail, say
from tests.conftest import PATIENCE, Held, ask_until_answered, said, start, texts
from tests.steering.steered import asked, label, steering_at


@tool
def look() -> str:
    """Look."""
    return "seen"


def _retrying(turn: Turn) -> str:
    while True:
        reply = ask_until_answered(turn).message
        turn.messages.append(reply)
        if not reply.tool_calls:
            return reply.text
        turn.messages.extend([turn.answer(call) for call in reply.tool_calls])


def test_an_idle_steer_waits_while_a_later_steer_goes_ahead() -> None:  # B52, B58, B59
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, TurnEvent) and event.turn == 1:
            run.steer("follow-up", when="idle")
            run.steer("S")

    model = ScriptedModel([call("look"), call("look"), say("x"), say("y")])
    start(model, tools=[look], steer_continuations=1, on_event=on_event).wait()
    assert [said(request.messages) for request in model.requests] == [["S"], ["S"], ["S"], ["S", "follow-up"]]
    assert texts(asked(model, 3))[-1] == "follow-up"  # a plain message: no label


def test_an_idle_steer_is_refused_at_once_where_no_extra_turn_can_come() -> None:  # B59
    gate = threading.Event()
    run = start(ScriptedModel([say("x").after(gate)]))
    with pytest.raises(ValueError, match="set steer_continuations"):
        run.steer("follow-up", when="idle")
    assert run.pending_steers == ()
    gate.set()
    run.wait()


def test_an_idle_steer_beyond_the_allowance_is_handed_back() -> None:  # B59
    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, TurnEvent):
            run.steer(f"after {event.turn}", when="idle")

    result = start(ScriptedModel([say("x"), say("y")]), steer_continuations=1, on_event=on_event).wait()
    assert (result.turns, [steer.text for steer in result.unapplied_steers]) == (2, ["after 2"])


def test_steers_of_a_failed_request_go_out_again_ahead_of_what_was_said_meanwhile() -> None:  # B53, B55
    held = Held(fail(503))
    model = ScriptedModel([held, say("x")])
    run = start(model, _retrying, on_event=steering_at(TurnEvent, "1", "2", "3"))
    held.wait()
    run.steer("4")
    held.go.set()
    run.wait()
    assert said(asked(model, 1)) == ["1", "2", "3", "4"]


def test_steers_of_two_threads_keep_the_order_of_acceptance_over_a_failed_request() -> None:  # B53
    held, later = Held(fail(503)), Held(fail(503))
    model = ScriptedModel([held, later, say("x")])
    run = start(model, _retrying, on_event=steering_at(TurnEvent, "first"))
    words = {"X": [f"X{number}" for number in range(100)], "Y": [f"Y{number}" for number in range(26)]}

    def send(name: str, half: slice) -> None:
        for word in words[name][half]:
            run.steer(word)

    def both(half: slice) -> None:
        threads = [threading.Thread(target=send, args=(name, half)) for name in words]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)

    held.wait()
    both(slice(None, 13))
    held.go.set()
    later.wait()
    both(slice(13, None))
    accepted = [steer.text for steer in run.pending_steers]
    later.go.set()
    run.wait()
    carried = said(asked(model, 2))
    assert carried == accepted
    for name, expected in words.items():
        assert [word for word in carried if word.startswith(name)] == expected


def test_all_that_waits_goes_out_together_each_in_a_message_of_its_own() -> None:  # B55
    model = ScriptedModel([call("look"), say("x")])
    start(model, tools=[look], on_event=steering_at(ToolCallEvent, "1", "2", "3")).wait()
    assert texts(asked(model, 1))[-3:] == [label("1"), label("2"), label("3")]


def test_everything_pending_of_both_kinds_can_be_withdrawn_in_order() -> None:  # B56
    held = Held(say("x"))
    model = ScriptedModel([held])
    run = start(model, steer_continuations=1)
    held.wait()
    run.steer("1")
    run.steer("2", when="idle")
    run.steer("3")
    withdrawn = [steer.text for steer in run.pending_steers if run.withdraw(steer)]
    assert (withdrawn, run.pending_steers) == (["1", "2", "3"], ())
    held.go.set()
    result = run.wait()
    assert (len(model.requests), result.unapplied_steers) == (1, ())


def test_a_withdrawn_steer_is_in_no_request_and_its_twin_is() -> None:  # B56
    held = Held(call("look"))
    model = ScriptedModel([held, say("x")])
    run = start(model, tools=[look])
    held.wait()
    first, second = run.steer("S"), run.steer("S")
    assert run.withdraw(first)
    held.go.set()
    run.wait()
    assert [message.meta.get("steer_id") for message in asked(model, 1)][-1] == second.id
    assert said(asked(model, 1)) == ["S"]
