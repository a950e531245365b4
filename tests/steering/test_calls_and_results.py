"""Calls, results and the steer: what every provider refuses is never made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import pytest
from attrs import evolve

from steerkit import (
    Event,
    Message,
    ModelError,
    Pattern,
    Request,
    Response,
    Run,
    Runner,
    Spec,
    SteerRefused,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    Turn,
    TurnEvent,
    UsageEvent,
    assistant,
    tool,
    tool_result,
    user,
)
from steerkit.core.message import Echo, ToolCall
from steerkit.core.pairing import check_pairs
from steerkit.patterns import Plan, ReAct, Reflection, ReWOO
from steerkit.testing import Answer, ScriptedModel, call, say
from tests.conftest import PATIENCE, said, start, texts
from tests.steering.steered import asked, label, steering_at


@tool
def look(at: str = "") -> str:
    """Look."""
    return f"seen {at}"


def _roles(messages: Iterable[Message]) -> list[str]:
    return [message.role for message in messages]


def test_a_pattern_that_fills_in_a_placeholder_never_gets_a_steer_between_call_and_result() -> None:  # B25
    def run(turn: Turn) -> str:
        while True:
            turn.messages.append(assistant("..."))
            reply = turn.ask().message
            turn.messages[-1] = reply
            if not reply.tool_calls:
                return reply.text
            turn.messages.extend([turn.answer(call) for call in reply.tool_calls])

    model = ScriptedModel([call("look"), call("look"), say("x")])
    steers = steering_at(TurnEvent, "S")
    result = start(model, run, tools=[look], on_event=steers).wait()
    for messages in (*(request.messages for request in model.requests), result.messages):
        check_pairs(messages)
        assert said(messages) == ["S"]


def test_a_steer_in_the_middle_of_a_batch_waits_for_all_its_results() -> None:  # B26
    model = ScriptedModel([call("look", at="1") + call("look", at="2") + call("look", at="3"), say("x")])
    start(model, tools=[look], on_event=steering_at(ToolCallEvent, "S", number=2)).wait()
    assert texts(asked(model, 1))[2:] == ["seen 1", "seen 2", "seen 3", label("S")]


def test_a_steer_that_no_request_carried_stands_in_no_message() -> None:  # B26
    result = start(ScriptedModel([say("x")]), on_event=steering_at(TextEvent, "S")).wait()
    assert texts(result.messages) == ["Q", "x"]
    assert [steer.text for steer in result.unapplied_steers] == ["S"]


def test_two_runs_at_once_never_hear_each_others_steers() -> None:  # B28
    def reply(request: Request) -> Answer:
        answers = sum(message.role == "assistant" for message in request.messages)
        return call("look").with_id(f"call_{answers}") if answers < 20 else say("x")

    def on_event(run: Run, event: Event) -> None:
        if isinstance(event, ToolCallEvent):
            for _ in range(5):
                run.steer(run.messages[0].text)

    model = ScriptedModel(reply)
    runner = Runner(model, [ReAct()])
    spec = Spec("scripted", "react", 30, tools=[look])
    runs = [runner.start(spec, [user(word)], model.endpoint, on_event) for word in ("apples", "pears")]
    for run, word in zip(runs, ("apples", "pears"), strict=True):
        assert said(run.wait().messages) == [word] * 100
    for request in model.requests:
        check_pairs(request.messages)
        assert set(said(request.messages)) <= {request.messages[0].text}


def test_a_receipt_says_applied_only_once_the_client_was_asked_with_the_steer() -> None:  # B32, B95
    states: list[tuple[list[str], str]] = []
    run: list[Run] = []

    def step(request: Request) -> Answer:
        states.append((said(request.messages), run[0].pending_steers[0].state))
        return say("x")

    def on_event(handle: Run, event: Event) -> None:
        if isinstance(event, TurnEvent):
            run.append(handle)
            handle.steer("S")

    start(ScriptedModel([step]), on_event=on_event).wait()
    assert states == [(["S"], "pending")]


def test_a_continuation_begins_behind_complete_calls_even_when_the_pattern_left_one_open() -> None:  # B34
    def run(turn: Turn) -> str:
        turn.messages.append(turn.ask().message)
        return "gave up"

    model = ScriptedModel([call("look"), say("x")])
    late = steering_at(UsageEvent, "again")
    start(model, run, tools=[look], steer_continuations=1, on_event=late).wait()
    assert _roles(asked(model, 1)) == ["user", "assistant", "tool", "user"]
    assert texts(asked(model, 1))[-1] == "again"


def test_provider_fields_before_a_steer_are_sent_back_unchanged() -> None:  # B35
    thinking = Message("assistant", (), [ToolCall("c", "look")], echo=Echo("chat:scripted", '{"reasoning": "hm"}'))
    history = [user("Q"), thinking, tool_result("c", "seen"), user("Go on.")]
    model = ScriptedModel([call("look"), say("x")])
    start(model, messages=history, tools=[look], on_event=steering_at(ToolCallEvent, "S")).wait()
    assert said(asked(model, 1)) == ["S"]
    assert asked(model, 1)[1] is thinking


def test_a_user_message_between_a_call_and_its_result_is_refused_as_a_conversation() -> None:  # B37
    with pytest.raises(ValueError, match="without results straight behind"):
        check_pairs([user("U"), assistant("", [ToolCall("c", "look")]), user("S"), tool_result("c", "seen")])


PLAN = call("submit_plan", steps=[{"tool": "look", "arguments": {}}, {"tool": "look", "arguments": {}}])
CRITIQUE = call("submit_critique", good=False, critique="Too long.")
SCRIPTS: list[tuple[Pattern, list[Answer]]] = [
    (ReAct(), [call("look") + call("look"), call("look"), say("x")]),
    (Plan(), [say("1. look"), call("look") + call("look"), call("look"), say("x")]),
    (ReWOO(), [PLAN, say("x")]),
    (Reflection(), [call("look") + call("look"), say("x"), CRITIQUE, say("y")]),
]


@pytest.mark.parametrize(("pattern", "script"), SCRIPTS, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("kind", [TurnEvent, StepEvent, ToolCallEvent, ToolResultEvent])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_pattern_ever_has_a_steer_between_a_call_and_its_result(
    pattern: Pattern, script: list[Answer], kind: type[Event], number: int
) -> None:  # B37
    model = ScriptedModel(script)
    steers = steering_at(kind, "S", number=number)
    result = start(model, pattern, tools=[look], on_event=steers).wait()
    for messages in (*(request.messages for request in model.requests), result.messages):
        check_pairs(messages)
        assert all("S" not in message.text for message in messages if message.role == "tool")  # B38


LISTS: dict[str, Callable[[list[Message]], list[Message]]] = {
    "without the last message": lambda messages: messages[:-1],
    "without the first messages": lambda messages: messages[-1:],
    "without the middle": lambda messages: [messages[0], *messages[-3:]] if len(messages) > 4 else messages,
    "copies": lambda messages: [Message(m.role, m.content, m.tool_calls, m.tool_call_id) for m in messages],
    "nothing of it": lambda messages: [user("Sum up."), assistant("", [ToolCall("z", "look")]), tool_result("z", "s")],
}


@pytest.mark.parametrize("name", LISTS)
def test_no_list_that_a_pattern_sends_gets_a_steer_between_a_call_and_its_result(name: str) -> None:  # B37
    def run(turn: Turn) -> str:
        for _ in range(3):
            reply = turn.ask().message
            turn.messages.append(reply)
            turn.messages.extend([turn.answer(call) for call in reply.tool_calls])
            sent = LISTS[name](turn.messages)
            try:
                check_pairs(sent)
            except ValueError:
                continue  # the pattern's own list is no conversation
            turn.ask(messages=sent)
        return "x"

    model = ScriptedModel(lambda request: call("look") + call("look"))

    def on_event(handle: Run, event: Event) -> None:
        if isinstance(event, (ToolCallEvent, StepEvent)):
            handle.steer("S")

    try:
        start(model, run, tools=[look], on_event=on_event).wait()
    except ModelError as error:
        pytest.fail(f"{name}: {error}")
    sent = [request.messages for request in model.requests]
    assert any(said(messages) for messages in sent)
    for messages in sent:
        check_pairs(messages)


def test_steers_from_many_threads_keep_calls_and_results_together() -> None:  # B28, B37
    stop = threading.Event()
    model = ScriptedModel([call("look") + call("look") for _ in range(15)] + [say("x")])
    run = start(model, tools=[look])

    def send() -> None:
        while not stop.is_set() and not run.done:
            try:
                run.steer("S")
            except SteerRefused:
                return

    senders = [threading.Thread(target=send) for _ in range(2)]
    for sender in senders:
        sender.start()
    run.wait()
    stop.set()
    for sender in senders:
        sender.join(PATIENCE)
    for request in model.requests:
        check_pairs(request.messages)


def test_a_decorator_inside_may_rewrite_messages_and_the_transcript_still_shows_the_steer() -> None:  # B32
    class Shouting:
        def __init__(self, inner: ScriptedModel) -> None:
            self._inner = inner

        def complete(self, request: Request, on_text=None) -> Response:
            shouted = tuple(user(message.text.upper()) for message in request.messages)
            return self._inner.complete(evolve(request, messages=shouted), on_text)

    model = ScriptedModel([say("x")])
    spec = Spec("scripted", "react", 3)
    run = Runner(lambda endpoint: Shouting(model), [ReAct()]).start(
        spec, [user("Q")], model.endpoint, steering_at(TurnEvent, "steer")
    )
    assert said(run.wait().messages) == ["steer"]
    assert texts(asked(model, 0))[-1] == label("steer").upper()
