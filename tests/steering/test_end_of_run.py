"""The end of a turn, and the gap between two requests: where steers get lost in agents."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from steerkit import (
    AnswerCutOff,
    EndEvent,
    ModelError,
    Run,
    RunFinished,
    Steer,
    SteerEvent,
    SteerkitError,
    StepEvent,
    TextEvent,
    ToolResultEvent,
    Turn,
    TurnEvent,
    UsageEvent,
    tool,
)
from steerkit.testing import Answer, ScriptedModel, call, fail, say
from tests.conftest import PATIENCE, Held, ask_until_answered, said, start, texts
from tests.steering.steered import asked, label, steering_at


@tool
def look() -> str:
    """Look."""
    return "seen"


def test_a_steer_between_the_last_result_and_the_next_request_is_in_that_request_once() -> None:  # B1
    model = ScriptedModel([call("look") + call("look"), say("x")])
    result = start(model, tools=[look], on_event=steering_at(ToolResultEvent, "S", number=2)).wait()
    assert texts(asked(model, 1)).count(label("S")) == 1
    assert texts(result.messages).count(label("S")) == 1
    assert result.unapplied_steers == ()


def test_a_steer_as_a_request_is_about_to_be_made_is_in_that_request() -> None:  # B1
    model = ScriptedModel([call("look"), say("x")])
    start(model, tools=[look], on_event=steering_at(StepEvent, "S", number=2)).wait()
    assert said(asked(model, 1)) == ["S"]


def test_a_steer_in_the_last_request_is_answered_by_an_extra_turn_if_one_is_left() -> None:  # B2, B13
    last = Held(say("x"))
    model = ScriptedModel([last, say("y")])
    run = start(model, steer_continuations=1)
    last.wait()
    steer = run.steer("S")
    last.go.set()
    result = run.wait()
    assert (texts(asked(model, 1))[-1], steer.state, result.unapplied_steers) == ("S", "continued", ())


def test_a_steer_in_the_last_request_is_handed_back_if_no_turn_is_left() -> None:  # B2, B5
    last = Held(say("x"))
    model = ScriptedModel([last])
    run = start(model)
    last.wait()
    steer = run.steer("S")
    last.go.set()
    assert run.wait().unapplied_steers == (steer,)
    assert run.pending_steers == ()


@pytest.mark.parametrize("continuations", [0, 1])
def test_steers_that_race_with_the_end_have_exactly_one_fate_each(continuations: int) -> None:  # B2, B7
    seed = random.Random(continuations)
    for _ in range(250):
        model = ScriptedModel(lambda request: say("x" * seed.randrange(1, 30)))
        run = start(model, steer_continuations=continuations)
        steers: list[Steer] = []
        refused = 0
        while not refused and len(steers) < 900:
            try:
                steers.append(run.steer("S"))
            except RunFinished:
                refused += 1
        result = run.wait()
        # Nothing is pending, and what the result hands back is what the receipts say.
        assert {steer.state for steer in steers} <= {"applied", "continued", "unapplied"}
        assert result.unapplied_steers == tuple(steer for steer in steers if steer.state == "unapplied")
        ids = [message.meta["steer_id"] for message in result.messages if "steer_id" in message.meta]
        assert ids == [steer.id for steer in steers if steer.state != "unapplied"]


def test_a_steer_before_the_first_request_is_in_it_behind_the_callers_messages() -> None:  # B4
    model = ScriptedModel([say("done")])
    result = start(model, on_event=steering_at(TurnEvent, "S")).wait()
    assert texts(asked(model, 0)) == ["Q", label("S")]
    assert result.unapplied_steers == ()


def test_a_steer_does_not_wait_for_the_model_request_in_flight() -> None:  # B7
    last = Held(say("x"))
    run = start(ScriptedModel([last]))
    last.wait()
    steer = run.steer("S")  # it would hang here: the model answers after this
    assert (steer.state, run.pending_steers) == ("pending", (steer,))
    last.go.set()
    run.wait()


@pytest.mark.parametrize("kind", [TextEvent, UsageEvent])
def test_a_steer_from_a_handler_of_the_last_reply_makes_no_further_request(kind: type[TextEvent]) -> None:  # B8
    model = ScriptedModel([say("x")])
    result = start(model, on_event=steering_at(kind, "S")).wait()
    assert len(model.requests) == 1
    assert [steer.text for steer in result.unapplied_steers] == ["S"]


def test_a_steer_after_the_end_is_refused_with_its_content() -> None:  # B10, B11
    run = start(ScriptedModel([say("x")]))
    run.wait()
    with pytest.raises(RunFinished) as refused:
        run.steer("S")
    assert refused.value.text == "S"


def test_a_steer_from_a_handler_of_the_end_is_refused() -> None:  # B8, B11
    refused: list[str] = []

    def on_event(run: Run, event: object) -> None:
        if isinstance(event, EndEvent):
            with pytest.raises(RunFinished) as error:
                run.steer("S")
            refused.append(error.value.text)

    run = start(ScriptedModel([say("x")]), on_event=on_event)
    assert run.wait().unapplied_steers == ()
    assert refused == ["S"]


def test_a_steer_while_the_text_streams_is_carried_by_the_next_request() -> None:  # B13
    gate = threading.Event()
    model = ScriptedModel([(say("Let me look.") + call("look")).pausing(gate, 4), say("x")])
    run = start(model, tools=[look])
    next(event for event in run.events() if isinstance(event, TextEvent))
    run.steer("S")
    gate.set()
    run.wait()
    assert said(asked(model, 1)) == ["S"]


def test_requests_are_the_same_with_and_without_streaming() -> None:  # B14
    requests = []
    for stream in (True, False):
        model = ScriptedModel([call("look"), call("look"), say("x")])
        start(model, tools=[look], stream=stream, on_event=steering_at(ToolResultEvent, "S")).wait()
        requests.append([texts(request.messages) for request in model.requests])
    assert requests[0] == requests[1]
    assert label("S") in requests[0][1]


def test_a_steer_left_from_one_run_is_in_no_request_of_the_next() -> None:  # B14, B22
    model = ScriptedModel([say("x"), call("look"), say("y")])
    first = start(model, on_event=steering_at(UsageEvent, "S")).wait()
    assert [steer.text for steer in first.unapplied_steers] == ["S"]
    start(model, messages=first.messages, tools=[look]).wait()
    assert not any("S" in text for request in model.requests for text in texts(request.messages))


def test_of_many_steers_sent_across_the_end_none_is_lost_and_none_changes_place() -> None:  # B16
    everything = [f"S{number}" for number in range(50)]
    for _ in range(20):
        held = Held(call("look"))
        model = ScriptedModel([held, say("x")])
        run = start(model, tools=[look])
        held.wait()
        refused: list[str] = []

        def send(run: Run = run, held: Held = held, refused: list[str] = refused) -> None:
            for number, text in enumerate(everything):
                if number == 10:
                    held.go.set()
                try:
                    run.steer(text)
                except RunFinished as error:
                    refused.append(error.text)

        sender = threading.Thread(target=send)
        sender.start()
        result = run.wait()
        sender.join(PATIENCE)
        assert said(result.messages) + [steer.text for steer in result.unapplied_steers] + refused == everything
        assert said(result.messages)[:10] == everything[:10]


def test_a_steer_in_a_request_that_is_answered_by_a_call_is_in_the_next_one() -> None:  # B17
    first = Held(call("look"))
    model = ScriptedModel([first, say("x")])
    run = start(model, tools=[look])
    first.wait()
    run.steer("S")
    first.go.set()
    run.wait()
    assert texts(asked(model, 1))[2:] == ["seen", label("S")]


def test_a_steer_whose_request_fails_is_handed_back_and_was_never_applied() -> None:  # B19
    model = ScriptedModel([fail(500)])
    run = start(model, on_event=steering_at(TurnEvent, "S"))
    with pytest.raises(ModelError) as failed:
        run.wait()
    assert said(asked(model, 0)) == ["S"]
    assert failed.value.result is not None
    assert [(steer.text, steer.state) for steer in failed.value.result.unapplied_steers] == [("S", "unapplied")]
    assert not any(isinstance(event, SteerEvent) for event in run.events())


def test_a_steer_whose_answer_broke_off_after_its_first_words_is_applied() -> None:  # B19
    model = ScriptedModel([say("Half an answer").cut(4)])
    run = start(model, on_event=steering_at(TurnEvent, "S"))
    with pytest.raises(ModelError) as failed:
        run.wait()
    assert failed.value.result is not None
    assert failed.value.result.unapplied_steers == ()
    assert said(failed.value.result.messages) == ["S"]


def _raise(error: BaseException) -> Callable[[Turn], str]:
    def run(turn: Turn) -> str:
        turn.ask()
        raise error

    return run


WAYS_OUT: dict[str, tuple[Answer | BaseException, Callable[[Turn], str] | None]] = {
    "answer": (say("x"), None),
    "answer in a retrying pattern": (say("x"), lambda turn: ask_until_answered(turn).message.text),
    "model error": (RuntimeError("the client is broken"), None),
    "length": (say("x").finishing("length"), None),
    "content filter": (say("x").finishing("content_filter"), None),
    "step limit": (call("look"), None),
    "pattern raises": (say("x"), _raise(ValueError("bug"))),
    "pattern raises BaseException": (say("x"), _raise(SystemExit(3))),
    "pattern raises KeyboardInterrupt": (say("x"), _raise(KeyboardInterrupt())),
    "pattern returns no text": (say("x"), lambda turn: turn.ask()),  # type: ignore[dict-item, return-value]
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_every_way_out_hands_back_what_was_pending_and_closes_the_run(way: str) -> None:  # B20
    reply, pattern = WAYS_OUT[way]
    last = Held(reply if isinstance(reply, Answer) else say(""))

    def step(request: object) -> Answer:
        if isinstance(reply, BaseException):
            last.asked.set()
            assert last.go.wait(PATIENCE)
            raise reply
        last(request)  # type: ignore[arg-type]
        return reply.after(last.go)

    run = start(ScriptedModel([step]), pattern, tools=[look], max_steps=1)
    last.wait()
    steer = run.steer("S")
    last.go.set()
    try:
        result = run.wait()
    except SteerkitError as error:
        assert error.result is not None
        result = error.result
    assert result.unapplied_steers == (steer,)
    assert steer.state == "unapplied"
    with pytest.raises(RunFinished):
        run.steer("later")


@pytest.mark.parametrize("continuations", [0, 1])
def test_an_answer_that_was_cut_off_ends_the_run_and_hands_the_steer_back(continuations: int) -> None:  # B23
    model = ScriptedModel([say("Half").finishing("length"), say("never asked for")])
    run = start(model, steer_continuations=continuations, on_event=steering_at(UsageEvent, "S"))
    with pytest.raises(AnswerCutOff) as cut_off:
        run.wait()
    assert cut_off.value.result is not None
    assert [steer.text for steer in cut_off.value.result.unapplied_steers] == ["S"]
    assert cut_off.value.partial == "Half"
    assert len(model.requests) == 1
