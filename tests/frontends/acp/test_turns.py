"""Prompts, cancels and the end of a turn."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from steerkit.testing import Answer, Reply, call, cut, fail, say
from tests.frontends.acp.client import OPT_IN, PROMPT_REQUIRED, STEERING, AcpError, Client, cancel_frame, said
from tests.frontends.acp.conftest import Spawn
from tests.frontends.acp.desk import Desk


def test_prompt_while_busy_waits_and_runs_behind(client: Client, desk: Desk, session: str) -> None:
    prompts = [client.prompt(session, f"TASK-BUSY-{number}") for number in range(3)]
    for number, prompt in enumerate(prompts):
        asked = desk.next(f"TASK-BUSY-{number}")
        assert f"TASK-BUSY-{number + 1}" not in asked.raw
        asked.reply("done")
        assert prompt.wait()["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (say("x"), "end_turn"),
        (say("x").finishing("length"), "max_tokens"),
        (say("x").finishing("content_filter"), "refusal"),
    ],
)
def test_the_stop_reason_says_how_the_model_ended(
    client: Client, desk: Desk, session: str, reply: Answer, reason: str
) -> None:
    prompt = client.prompt(session, f"TASK-{session}")
    desk.next(f"TASK-{session}").reply(reply)
    assert prompt.wait()["stopReason"] == reason


def test_the_limit_of_model_requests_is_a_stop_reason(client: Client, desk: Desk, session: str) -> None:
    desk.rule("TASK-LOOP", lambda _: call("list_files"))
    assert client.prompt(session, "TASK-LOOP").wait()["stopReason"] == "max_turn_requests"
    assert len(desk.with_token("TASK-LOOP")) == 4


@pytest.mark.parametrize("reply", [fail(400, "the model is on fire"), cut()], ids=["refused", "dead"])
def test_model_error_is_told_and_leaves_the_session_usable(
    spawn: Spawn, desk: Desk, tmp_path: Path, reply: Reply
) -> None:
    client = spawn()
    session = client.new(tmp_path)
    desk.rule(f"TASK-{session}", lambda _: reply)
    with pytest.raises(AcpError) as raised:
        client.prompt(session, f"TASK-{session}").wait()
    assert raised.value.code == -32603
    assert "test-key" not in raised.value.message
    desk.rule(f"TASK-{session}", lambda _: say("fine"))
    assert client.prompt(session, "again").wait()["stopReason"] == "end_turn"


def test_a_steer_that_a_failed_turn_did_not_read_heads_the_next(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-DIES")
    first = desk.next("TASK-DIES")
    client.steer(session, "STEER-OF-DEAD-TURN").wait()
    first.reply(fail(400, "no"))
    with pytest.raises(AcpError):
        prompt.wait()
    assert "1 of your messages came too late" in client.said(session)
    again = client.prompt(session, "TASK-REBORN")
    asked = desk.next("TASK-REBORN")
    assert [text for text in asked.user_texts() if "STEER-OF-DEAD-TURN" in text] == ["STEER-OF-DEAD-TURN"]
    assert asked.raw.index("TASK-DIES") < asked.raw.index("STEER-OF-DEAD-TURN") < asked.raw.index("TASK-REBORN")
    asked.reply("fine")
    assert again.wait()["stopReason"] == "end_turn"


def test_what_the_allowance_does_not_take_heads_the_next_turn(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--agent", "tests.frontends.acp.agents:stingy")
    session = client.new(tmp_path)
    prompt = client.prompt(session, "TASK-STINGY")
    desk.next("TASK-STINGY")  # its answer comes below, behind the steer
    held = desk.with_token("TASK-STINGY")[0]
    client.steer(session, "STEER-STINGY-1").wait()
    held.reply("one")
    second = desk.next("STEER-STINGY-1")
    client.steer(session, "STEER-STINGY-2").wait()
    second.reply("two")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert "1 of your messages came too late" in client.said(session)
    assert not desk.with_token("STEER-STINGY-2")
    client.prompt(session, "TASK-NEXT-STINGY")
    asked = desk.next("TASK-NEXT-STINGY")
    assert asked.user_texts()[-2:] == ["STEER-STINGY-2", "TASK-NEXT-STINGY"]
    client.cancel(session)


# ---- cancel


def test_cancel_mid_turn(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-CANCELLED")
    desk.next("TASK-CANCELLED").reply(say("not to be read to its end").pausing(desk.never, 7))
    client.until(lambda: client.said(session), "the first piece")
    client.cancel(session)
    assert prompt.wait()["stopReason"] == "cancelled"
    assert client.calls_of("session/update", session) == [
        frame for frame in client.frames[: prompt.position] if frame.get("params", {}).get("sessionId") == session
    ]


def test_cancel_drops_model_request(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-DROPPED")
    desk.next("TASK-DROPPED")
    client.cancel(session)
    # A turn that was given up because its run hung has no usage: this one ended by itself, out of a blocked read.
    assert "usage" in prompt.wait()


def test_cancel_idle_is_harmless(client: Client, desk: Desk, session: str) -> None:
    client.cancel(session)
    client.cancel("no-such")
    prompt = client.prompt(session, "TASK-AFTER-IDLE-CANCEL")
    desk.next("TASK-AFTER-IDLE-CANCEL").reply("fine")
    assert prompt.wait()["stopReason"] == "end_turn"


def test_cancel_then_prompt_in_one_write(client: Client, desk: Desk, session: str) -> None:
    first = client.prompt(session, "TASK-STOPPED")
    desk.next("TASK-STOPPED")
    second, frame = client.frame("session/prompt", said(session, "TASK-INSTEAD"))
    client.send(cancel_frame(session), frame)
    assert first.wait()["stopReason"] == "cancelled"
    desk.next("TASK-INSTEAD").reply("fine")
    assert second.wait()["stopReason"] == "end_turn"


def test_cancel_ends_the_prompts_that_wait_too(client: Client, desk: Desk, session: str) -> None:
    prompts = [client.prompt(session, f"TASK-ALL-{number}") for number in range(3)]
    desk.next("TASK-ALL-0")
    client.cancel(session)
    assert [prompt.wait()["stopReason"] for prompt in prompts] == ["cancelled"] * 3
    assert not desk.with_token("TASK-ALL-1")


def test_steer_behind_cancel_with_the_opt_in(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-BEHIND")
    desk.next("TASK-BEHIND")
    steer, frame = client.frame(STEERING, {**said(session, "STEER-BEHIND"), **OPT_IN})
    client.send(cancel_frame(session), frame)
    assert steer.wait() == PROMPT_REQUIRED
    assert prompt.wait()["stopReason"] == "cancelled"
    assert not desk.with_token("STEER-BEHIND")


def test_steer_behind_cancel_default(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-BEHIND-DEFAULT")
    desk.next("TASK-BEHIND-DEFAULT")
    steer, frame = client.frame(STEERING, said(session, "STEER-BEHIND-DEFAULT"))
    client.send(cancel_frame(session), frame)
    assert prompt.wait()["stopReason"] == "cancelled"
    assert steer.wait() == {"outcome": "startedNewTurn"}
    assert prompt.position < steer.position
    desk.next("STEER-BEHIND-DEFAULT").reply("a fresh turn")
    client.until(lambda: "a fresh turn" in client.said(session), "its output")


def test_a_steer_behind_a_cancel_and_a_prompt_joins_that_prompt(client: Client, desk: Desk, session: str) -> None:
    client.prompt(session, "TASK-GONE")
    desk.next("TASK-GONE")
    second, prompt = client.frame("session/prompt", said(session, "TASK-COMING"))
    steer, frame = client.frame(STEERING, {**said(session, "STEER-COMING"), **OPT_IN})
    client.send(cancel_frame(session), prompt, frame)
    assert steer.wait() == {"outcome": "injected"}
    asked = desk.next("TASK-COMING")
    asked.reply("one")
    if "STEER-COMING" not in asked.raw:
        desk.next("STEER-COMING").reply("two")
    assert second.wait()["stopReason"] == "end_turn"


def test_a_steer_that_waits_behind_a_cancelled_turn_is_refused_by_the_next_cancel(
    client: Client, desk: Desk, session: str
) -> None:
    prompt = client.prompt(session, "TASK-HANGS-TWICE")
    desk.next("TASK-HANGS-TWICE").reply(call("hang"))
    client.until(lambda: client.updates(session, "tool_call"), "the tool")
    steer, frame = client.frame(STEERING, said(session, "STEER-TWICE"))
    client.send(cancel_frame(session), frame, cancel_frame(session))
    with pytest.raises(AcpError) as raised:
        steer.wait()
    assert raised.value.code == -32600
    assert prompt.wait()["stopReason"] == "cancelled"
    assert client.steer(session, "x", **OPT_IN).wait() == PROMPT_REQUIRED


def test_steer_then_cancel_drops_the_steer(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-BOTH")
    desk.next("TASK-BOTH")
    steer, frame = client.frame(STEERING, said(session, "STEER-BOTH"))
    client.send(frame, cancel_frame(session))
    assert steer.wait() == {"outcome": "injected"}
    assert prompt.wait()["stopReason"] == "cancelled"
    again = client.prompt(session, "TASK-AFTER-BOTH")
    desk.next("TASK-AFTER-BOTH").reply("fine")
    assert again.wait()["stopReason"] == "end_turn"
    assert not desk.with_token("STEER-BOTH")


def test_close_with_running_turn(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-CLOSED")
    desk.next("TASK-CLOSED")
    client.steer(session, "STEER-CLOSED").wait()
    close = client.request("session/close", {"sessionId": session})
    assert close.wait() == {}
    assert prompt.wait()["stopReason"] == "cancelled"
    assert prompt.position < close.position


def test_close_refuses_a_steer_that_waits_for_the_next_turn(client: Client, desk: Desk, session: str) -> None:
    client.prompt(session, "TASK-HANGS-CLOSED")
    desk.next("TASK-HANGS-CLOSED").reply(call("hang"))
    client.until(lambda: client.updates(session, "tool_call"), "the tool")
    steer, waiting = client.frame(STEERING, said(session, "STEER-CLOSED-TOO"))
    close, frame = client.frame("session/close", {"sessionId": session})
    client.send(cancel_frame(session), waiting, frame)
    with pytest.raises(AcpError) as raised:
        steer.wait()
    assert raised.value.code == -32600
    assert close.wait() == {}


def test_a_tool_that_hangs_does_not_keep_a_cancelled_session(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-HANGS")
    desk.next("TASK-HANGS").reply(call("hang"))
    client.until(lambda: client.updates(session, "tool_call"), "the tool")
    client.cancel(session)
    assert prompt.wait() == {"stopReason": "cancelled"}
    assert client.updates(session)[-1]["status"] == "failed"
    again = client.prompt(session, "TASK-AFTER-HANGS")
    asked = desk.next("TASK-AFTER-HANGS")
    assert [message["role"] for message in asked.messages] == ["user", "assistant", "tool", "user"]
    asked.reply("fine")
    assert again.wait()["stopReason"] == "end_turn"


@pytest.mark.parametrize("waits", [False, True], ids=["running", "queued"])
def test_cancel_request_ends_the_prompt_that_it_names(client: Client, desk: Desk, session: str, waits: bool) -> None:
    running = client.prompt(session, f"TASK-{session}")
    held = desk.next(f"TASK-{session}")
    queued = client.prompt(session, "TASK-QUEUED-NAMED")
    named: Any = queued if waits else running
    cancel_request(client, str(named.request_id))
    assert client.steer(session, "STEER-NAMED").wait() == {"outcome": "injected"}
    cancel_request(client, named.request_id)
    if waits:
        with pytest.raises(AcpError) as raised:
            queued.wait()
        assert raised.value.code == -32800
        held.reply("fine")
        desk.next("STEER-NAMED").reply("finer")
        assert running.wait()["stopReason"] == "end_turn"
    else:
        assert running.wait()["stopReason"] == "cancelled"
        desk.next("TASK-QUEUED-NAMED").reply("fine")
        assert queued.wait()["stopReason"] == "end_turn"


def cancel_request(client: Client, request_id: Any) -> None:
    client.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": request_id}})


# ---- the end of a turn against a steer


@pytest.mark.parametrize("more", [{}, OPT_IN], ids=["default", "opt_in"])
def test_a_steer_that_comes_during_the_last_answer_is_read_before_the_prompt_is_answered(
    client: Client, desk: Desk, session: str, more: dict[str, Any]
) -> None:
    gate = threading.Event()
    prompt = client.prompt(session, f"TASK-{session}")
    desk.next(f"TASK-{session}").reply(say("almost done").pausing(gate, 11))
    client.until(lambda: client.said(session) == "almost done", "the whole answer")
    assert client.steer(session, f"STEER-{session}", **more).wait() == {"outcome": "injected"}
    gate.set()
    asked = desk.next(f"STEER-{session}")
    assert not prompt.answered
    asked.reply(" after all")
    prompt.wait()
    assert client.said(session) == "almost done after all"


def race(client: Client, desk: Desk, session: str, number: int, more: dict[str, Any]) -> str:
    """One steer against the end of a turn, the steer a little later each time; returns its outcome."""
    task, steer_text = f"RACE-TASK-{session}-{number}.", f"RACE-STEER-{session}-{number}."
    prompt = client.prompt(session, task)
    held = desk.next(task)
    held.reply("x")
    for _ in range(number % 60):  # from far before the end to behind it
        client.send({"jsonrpc": "2.0", "method": "$/nothing"})
    steer = client.steer(session, steer_text, **more)
    outcome: str = steer.wait()["outcome"]
    if outcome == "promptRequired":
        assert prompt.wait()["stopReason"] == "end_turn"
        assert not desk.with_token(steer_text)
        return outcome
    asked = desk.with_token(steer_text)[:1] or [desk.next(steer_text)]
    if outcome == "startedNewTurn":
        assert prompt.wait()["stopReason"] == "end_turn"
        assert prompt.position < steer.position
    asked[0].reply("y")
    assert prompt.wait()["stopReason"] == "end_turn"
    if outcome == "injected":
        assert steer.position < prompt.position
    assert asked[0].raw.count(steer_text) == 1
    return outcome


@pytest.mark.parametrize("more", [OPT_IN, {}], ids=["steer_race_opt_in", "steer_race_default"])
def test_steer_race(client: Client, desk: Desk, tmp_path: Path, more: dict[str, Any]) -> None:
    outcomes = []
    for group in range(10):
        session = client.new(tmp_path)
        outcomes += [race(client, desk, session, group * 50 + number, more) for number in range(50)]
    print({outcome: outcomes.count(outcome) for outcome in set(outcomes)})
    assert set(outcomes) <= {"injected", "startedNewTurn" if more == {} else "promptRequired"}
