"""The session in this process: interleavings that only a gate inside the agent can force."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from steerkit import Endpoint, Message, RunCancelled, Spec, StepEvent, Text, TextEvent, ToolCall, Turn, assistant, tool
from steerkit.frontends.acp.agent import Agent
from steerkit.frontends.acp.connection import Connection, Reply
from steerkit.frontends.acp.outbox import ROOM
from steerkit.frontends.acp.protocol import RpcError
from steerkit.frontends.acp.session import Session
from steerkit.frontends.acp.setup import Setup
from steerkit.frontends.acp.store import Saved, SessionLog, Store
from steerkit.patterns import ReAct
from steerkit.testing import ScriptedModel, call, say
from tests.conftest import PATIENCE, FunctionPattern

ID = "0" * 32
ENDPOINT = Endpoint("http://scripted.invalid/v1")


class Wire(Connection):
    """A connection whose frames stay here."""

    def __init__(self) -> None:
        super().__init__(-1, -1, lambda *_: None)
        self.changed = threading.Condition()
        self.waiting = threading.Event()  # somebody waits for room, or has
        self.sent: list[dict[str, Any]] = []

    def send(self, frame: dict[str, Any]) -> None:
        with self.changed:
            self.sent.append(frame)
            self.changed.notify_all()

    def wait_for_room(self) -> None:
        self.waiting.set()
        super().wait_for_room()

    def fill(self) -> None:
        self._outbox.put(b"x" * (ROOM + 1))

    def drain(self) -> None:
        self._outbox.written(len(self._outbox.take() or b""))

    def answers(self) -> list[tuple[Any, Any]]:
        with self.changed:
            return [(frame["id"], frame.get("result", "error")) for frame in self.sent if "id" in frame]

    def until(self, count: int) -> list[tuple[Any, Any]]:
        """The answers, once there are so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.answers()) >= count, PATIENCE)
            return self.answers()


class GatedLog(SessionLog):
    """Holds the last record of a turn back: the run is over then, and its prompt not yet answered."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self.at_end = threading.Event()
        self.go_on = threading.Event()

    def record(self, messages: Sequence[Message], held: Sequence[Message] = ()) -> None:
        if messages[-1].role == "assistant" and not self.at_end.is_set():
            self.at_end.set()
            assert self.go_on.wait(PATIENCE)
        self._log.record(messages, held)


class Ending:
    """A session whose first turn has ended but for its last record."""

    def __init__(self, folder: Path) -> None:
        self.wire = Wire()
        self.model = ScriptedModel(lambda _: say("done"))
        self.log = GatedLog(Store(folder).create(ID, "/"))
        spec = Spec("m", "react", max_steps=4)
        setup = Setup(spec, self.model.endpoint, self.model, lambda _: (ReAct(),))
        self.session = Session(ID, setup, self.wire, self.log, Saved("/"))
        self.prompt("p1")
        assert self.log.at_end.wait(PATIENCE)

    def prompt(self, name: str) -> None:
        self.session.prompt(Reply(self.wire, name), (Text(name),))

    def steer(self, name: str, *, opted_in: bool = False) -> None:
        self.session.steer(Reply(self.wire, name), (Text(name),), opted_in=opted_in)

    def finish(self, count: int) -> list[tuple[Any, Any]]:
        self.log.go_on.set()
        return [(name, _short(result)) for name, result in self.wire.until(count)]

    def last_request(self) -> list[str]:
        return [message.text for message in self.model.requests[-1].messages]


def _short(result: Any) -> Any:
    return result if not isinstance(result, dict) else result.get("stopReason") or result.get("outcome")


@pytest.fixture
def ending(tmp_path: Path) -> Ending:
    return Ending(tmp_path)


def test_a_steer_with_the_opt_in_at_the_very_end_is_not_consumed(ending: Ending) -> None:
    ending.steer("s", opted_in=True)
    assert ending.finish(2) == [("s", "promptRequired"), ("p1", "end_turn")]
    assert len(ending.model.requests) == 1


def test_a_steer_at_the_very_end_starts_the_next_turn_behind_the_answer(ending: Ending) -> None:
    ending.steer("s")
    assert ending.finish(2) == [("p1", "end_turn"), ("s", "startedNewTurn")]


def test_two_steers_at_the_very_end_make_one_turn_in_order(ending: Ending) -> None:
    ending.steer("s1")
    ending.steer("s2")
    assert ending.finish(3) == [("p1", "end_turn"), ("s1", "startedNewTurn"), ("s2", "injected")]


@pytest.mark.parametrize("opted_in", [False, True])
def test_a_steer_at_the_very_end_joins_the_prompt_that_waits(ending: Ending, opted_in: bool) -> None:
    ending.prompt("p2")
    ending.steer("s", opted_in=opted_in)
    assert ending.finish(3) == [("p1", "end_turn"), ("s", "injected"), ("p2", "end_turn")]
    ending.prompt("p3")
    ending.wire.until(4)
    assert "s" in " ".join(ending.last_request())


def test_a_cancel_at_the_very_end_is_too_late_for_the_turn(ending: Ending) -> None:
    ending.session.cancel()
    ending.prompt("p2")
    assert ending.finish(2) == [("p1", "end_turn"), ("p2", "end_turn")]


def test_a_close_at_the_very_end_waits_for_the_answer(ending: Ending) -> None:
    ending.steer("s")
    ending.session.close(lambda: Reply(ending.wire, "close").result({}))
    assert ending.finish(3) == [("s", "error"), ("p1", "end_turn"), ("close", None)]
    with pytest.raises(RpcError):
        ending.prompt("p2")


def test_a_steer_that_no_queue_takes_is_told_as_failed(tmp_path: Path) -> None:
    gate = threading.Event()
    wire, model = Wire(), ScriptedModel([say("one").after(gate), say("two")])
    setup = Setup(Spec("m", "react", max_steps=4), model.endpoint, model, lambda _: (ReAct(),))
    session = Session(ID, setup, wire, Store(tmp_path).create(ID, "/"), Saved("/"))
    session.prompt(Reply(wire, "p"), (Text("p"),))
    for number in range(1001):
        session.steer(Reply(wire, number), (Text("s"),), opted_in=False)
    assert [_short(result) for _, result in wire.answers()] == ["injected"] * 1000 + ["failed"]
    gate.set()
    assert _short(dict(wire.until(1002))["p"]) == "end_turn"


def test_a_request_to_the_client_is_forgotten_once_it_is_cancelled() -> None:
    wire = Wire()
    futures: list[Future[Any]] = [wire.request("x", {}) for _ in range(3)]
    for future in futures:
        future.cancel()
    assert wire._asked == {}


def test_a_run_that_ends_long_after_its_cancel_is_not_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steerkit.frontends.acp.session.PATIENCE", 0.01)
    inside, gate = threading.Event(), threading.Event()

    def work(turn: Turn) -> str:
        if turn.messages[-1].text == "p1":
            inside.set()
            gate.wait(PATIENCE)
            turn.messages.append(assistant("late"))
            for event in (StepEvent(), TextEvent("late")):
                turn.emit(event)
        return "done"

    wire, store = Wire(), Store(tmp_path)
    setup = Setup(Spec("m", "function", 4), ENDPOINT, ScriptedModel([]), lambda _: (FunctionPattern(work),))
    session = Session(ID, setup, wire, store.create(ID, "/"), Saved("/"))
    session.prompt(Reply(wire, "p1"), (Text("p1"),))
    assert inside.wait(PATIENCE)
    left = session.run
    assert left is not None
    session.cancel()
    assert wire.until(1) == [("p1", {"stopReason": "cancelled"})]
    session.prompt(Reply(wire, "p2"), (Text("p2"),))
    wire.until(2)
    sent, kept = len(wire.sent), store.open(ID)[1].messages
    gate.set()
    with pytest.raises(RunCancelled):
        left.wait(PATIENCE)
    assert wire.sent[sent:] == []
    assert store.open(ID)[1].messages == kept == session.messages


def started(wire: Wire, folder: Path, setup: Setup) -> Session:
    """A session in its first turn."""
    session = Session(ID, setup, wire, Store(folder).create(ID, "/"), Saved("/"))
    session.prompt(Reply(wire, "p1"), (Text("p1"),))
    return session


def test_a_client_that_is_far_behind_holds_the_run_and_nothing_else(tmp_path: Path) -> None:
    wire, model = Wire(), ScriptedModel([say("one"), say("two")])
    wire.fill()
    session = started(wire, tmp_path, Setup(Spec("m", "react", 4), ENDPOINT, model, lambda _: (ReAct(),)))
    assert wire.waiting.wait(PATIENCE)
    session.steer(Reply(wire, "s"), (Text("s"),), opted_in=False)
    assert [_short(result) for _, result in wire.answers()] == ["injected"]
    wire.drain()
    assert _short(dict(wire.until(2))["p1"]) == "end_turn"


def test_a_replay_waits_for_a_client_that_is_far_behind(tmp_path: Path) -> None:
    wire = Wire()
    setup = Setup(Spec("m", "react", 4), ENDPOINT, ScriptedModel([say("one")]), lambda _: (ReAct(),))
    session = started(wire, tmp_path, setup)
    wire.until(1)
    agent = Agent(lambda _: setup, Store(tmp_path), version="0", images=False)
    agent._connection = wire
    wire.fill()
    wire.waiting.clear()
    replaying = threading.Thread(target=agent._replay, args=(session,), name="steerkit-test", daemon=True)
    replaying.start()
    assert wire.waiting.wait(PATIENCE)
    assert replaying.is_alive()
    wire.drain()
    replaying.join(PATIENCE)
    assert not replaying.is_alive()


def test_an_answer_comes_in_pieces_whatever_the_spec_says(tmp_path: Path) -> None:
    wire, model = Wire(), ScriptedModel([say("many words")])
    started(wire, tmp_path, Setup(Spec("m", "react", 4, stream=False), ENDPOINT, model, lambda _: (ReAct(),)))
    wire.until(1)
    updates = [frame["params"]["update"] for frame in wire.sent if frame.get("method") == "session/update"]
    assert "".join(update["content"]["text"] for update in updates) == "many words"


def timers() -> list[threading.Timer]:
    return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_several_cancels_are_one_and_its_timer_ends_with_the_turn(tmp_path: Path) -> None:
    inside, gate = threading.Event(), threading.Event()

    def work(turn: Turn) -> str:
        inside.set()
        gate.wait(PATIENCE)
        return "done"

    wire, before = Wire(), timers()
    setup = Setup(Spec("m", "function", 4), ENDPOINT, ScriptedModel([]), lambda _: (FunctionPattern(work),))
    session = started(wire, tmp_path, setup)
    assert inside.wait(PATIENCE)
    for _ in range(3):
        session.cancel()
    (timer,) = [timer for timer in timers() if timer not in before]
    gate.set()
    assert _short(dict(wire.until(1))["p1"]) == "cancelled"
    assert timer.finished.is_set()


def test_a_tool_call_behind_a_cancel_asks_nobody(tmp_path: Path) -> None:
    inside, gate = threading.Event(), threading.Event()

    def preview(_: ToolCall) -> None:
        inside.set()
        gate.wait(PATIENCE)

    @tool(needs_approval=True)
    def dig() -> str:
        """Dig."""
        return "gold"

    wire, model = Wire(), ScriptedModel([call("dig")])
    spec = Spec("m", "react", 4, tools=[dig], approve=lambda _: False)
    session = started(wire, tmp_path, Setup(spec, ENDPOINT, model, lambda _: (ReAct(),), preview=preview))
    assert inside.wait(PATIENCE)
    session.cancel()
    gate.set()
    assert "usage" in dict(wire.until(1))["p1"]
    assert [frame["method"] for frame in wire.sent if "method" in frame] == ["session/update"] * 2


def test_an_answer_to_what_was_just_cancelled_is_not_minded() -> None:
    wire = Wire()
    future = wire.request("x", {})
    future.cancel()
    wire._asked[0] = future  # the cancel came between the look and the answer
    wire._answered({"id": 0, "result": {}})
    assert future.cancelled()
