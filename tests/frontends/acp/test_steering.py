"""`_session/steering` while a turn runs, and when none does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steerkit.testing import call, fail, say
from tests.frontends.acp.client import OPT_IN, PROMPT_REQUIRED, STEERING, Client, said
from tests.frontends.acp.desk import Desk


@pytest.mark.parametrize("more", [{}, OPT_IN], ids=["steer_injected", "steer_injected_with_opt_in"])
def test_a_steer_joins_the_running_turn_whose_prompt_waits_for_its_answer(
    client: Client, desk: Desk, session: str, more: dict[str, Any]
) -> None:
    prompt = client.prompt(session, "TASK-JOIN")
    first = desk.next("TASK-JOIN")
    assert client.steer(session, "STEER-JOIN", **more).wait() == {"outcome": "injected"}
    first.reply("one")
    second = desk.next("STEER-JOIN")
    assert not prompt.answered
    assert second.raw.count("STEER-JOIN") == second.user_texts()[-1].count("STEER-JOIN") == 1
    assert "TASK-JOIN" in second.user_texts()[0]
    second.reply("two")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert client.said(session) == "onetwo"


@pytest.mark.parametrize("more", [{}, OPT_IN], ids=["default", "opt_in"])
def test_steer_right_after_prompt_in_the_same_write_joins_its_turn(
    client: Client, desk: Desk, session: str, more: dict[str, Any]
) -> None:
    prompt, first = client.frame("session/prompt", said(session, "TASK-SAME-WRITE"))
    steer, second = client.frame(STEERING, {**said(session, "STEER-SAME-WRITE"), **more})
    client.send(first, second)
    assert steer.wait() == {"outcome": "injected"}
    asked = desk.next("TASK-SAME-WRITE")
    asked.reply("one")
    if "STEER-SAME-WRITE" not in asked.raw:
        desk.next("STEER-SAME-WRITE").reply("two")
    assert prompt.wait()["stopReason"] == "end_turn"


def test_steer_before_tool_result_follows_the_result(client: Client, desk: Desk, session: str, tmp_path: Path) -> None:
    (tmp_path / "clue").write_text("look elsewhere")
    prompt = client.prompt(session, "TASK-TOOL")
    first = desk.next("TASK-TOOL")
    client.steer(session, "STEER-TOOL").wait()
    first.reply(call("read_file", path="clue"))
    second = desk.next("STEER-TOOL")
    assert [message["role"] for message in second.messages][-3:] == ["assistant", "tool", "user"]
    second.reply("done")
    assert prompt.wait()["stopReason"] == "end_turn"


def test_steer_order_in_one_session_is_the_order_of_arrival(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-ORDER")
    first = desk.next("TASK-ORDER")
    steers = [client.frame(STEERING, said(session, f"STEER-ORDER-{number}")) for number in range(20)]
    client.send(*(frame for _, frame in steers))
    assert [pending.wait() for pending, _ in steers] == [{"outcome": "injected"}] * 20
    positions = [pending.position for pending, _ in steers]
    assert positions == sorted(positions)
    first.reply("one")
    second = desk.next("STEER-ORDER-19")
    numbers = [int(text.rpartition("-")[2]) for text in second.user_texts() if "STEER-ORDER" in text]
    assert numbers == list(range(20))
    second.reply("two")
    assert prompt.wait()["stopReason"] == "end_turn"


def test_steer_started_new_turn_is_answered_while_the_model_is_held(client: Client, desk: Desk, session: str) -> None:
    first = client.prompt(session, "TASK-BEFORE")
    desk.next("TASK-BEFORE").reply("done")
    first.wait()
    assert client.steer(session, "STEER-NEW").wait() == {"outcome": "startedNewTurn"}
    asked = desk.next("STEER-NEW")
    assert ["TASK-BEFORE" in asked.user_texts()[0], len(asked.messages)] == [True, 3]
    asked.reply("a detached answer")
    client.until(lambda: "a detached answer" in client.said(session), "its output")


def test_steer_started_turn_fails_without_a_second_answer(client: Client, desk: Desk, session: str) -> None:
    steer = client.steer(session, "STEER-FAILS")
    assert steer.wait() == {"outcome": "startedNewTurn"}
    desk.next("STEER-FAILS").reply(fail(400, "no"))
    prompt = client.prompt(session, "TASK-AFTER-FAILURE")
    desk.next("TASK-AFTER-FAILURE").reply("fine")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert sum(frame.get("id") == steer.request_id for frame in client.frames) == 1


def test_steer_started_turn_cancel_ends_it(client: Client, desk: Desk, session: str) -> None:
    client.steer(session, "STEER-THEN-CANCEL").wait()
    desk.next("STEER-THEN-CANCEL")
    client.cancel(session)
    prompt = client.prompt(session, "TASK-AFTER-THAT")
    desk.next("TASK-AFTER-THAT").reply("fine")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert client.said(session) == "fine"


def test_steer_then_prompt_on_started_turn_waits_for_its_turn(client: Client, desk: Desk, session: str) -> None:
    client.steer(session, "STEER-FIRST").wait()
    detached = desk.next("STEER-FIRST")
    prompt = client.prompt(session, "TASK-SECOND")
    assert client.steer(session, "STEER-THIRD").wait() == {"outcome": "injected"}
    assert not desk.with_token("TASK-SECOND")
    detached.reply("one")
    joined = desk.next("STEER-THIRD")
    assert "TASK-SECOND" not in joined.raw
    joined.reply("two")
    asked = desk.next("TASK-SECOND")
    assert len([message for message in asked.messages if message["role"] == "assistant"]) == 2
    asked.reply("three")
    assert prompt.wait()["stopReason"] == "end_turn"


def test_steer_prompt_required_consumes_and_starts_nothing(client: Client, desk: Desk, session: str) -> None:
    assert client.steer(session, "STEER-NOT-TAKEN", **OPT_IN).wait() == PROMPT_REQUIRED
    prompt = client.prompt(session, "STEER-NOT-TAKEN")
    asked = desk.next("STEER-NOT-TAKEN")
    assert len(asked.messages) == 1
    assert asked.raw.count("STEER-NOT-TAKEN") == 1
    asked.reply("fine")
    prompt.wait()
    assert len(desk.with_token("STEER-NOT-TAKEN")) == 1
    assert client.updates(session, "user_message_chunk") == []


def test_steer_after_turn_end_always_gets_prompt_required(client: Client, desk: Desk, session: str) -> None:
    desk.rule("TASK-TURN-END", lambda _: say("done"))
    for number in range(50):
        client.prompt(session, f"TASK-TURN-END-{number}").wait()
        assert client.steer(session, "STEER-LATE", **OPT_IN).wait() == PROMPT_REQUIRED


def test_steer_two_concurrent_idle_make_one_turn_in_order(client: Client, desk: Desk, session: str) -> None:
    first, one = client.frame(STEERING, said(session, "STEER-TWO-A"))
    second, two = client.frame(STEERING, said(session, "STEER-TWO-B"))
    client.send(one, two)
    assert [first.wait(), second.wait()] == [{"outcome": "startedNewTurn"}, {"outcome": "injected"}]
    asked = desk.next("STEER-TWO-A")
    asked.reply("one")
    if "STEER-TWO-B" not in asked.raw:
        asked = desk.next("STEER-TWO-B")
        asked.reply("two")
    assert asked.raw.index("STEER-TWO-A") < asked.raw.index("STEER-TWO-B")


def test_steer_sessions_are_independent(client: Client, desk: Desk, tmp_path: Path) -> None:
    busy, other = client.new(tmp_path), client.new(tmp_path)
    prompt = client.prompt(busy, "TASK-HELD")
    held = desk.next("TASK-HELD")
    assert client.steer(other, "STEER-OTHER", **OPT_IN).wait() == PROMPT_REQUIRED
    assert client.steer(other, "STEER-OTHER").wait() == {"outcome": "startedNewTurn"}
    assert "TASK-HELD" not in desk.next("STEER-OTHER").raw
    client.cancel(other)
    assert not prompt.answered
    held.reply("one")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert client.said(other) == ""


def test_steer_while_a_second_prompt_is_queued_joins_the_running_turn(client: Client, desk: Desk, session: str) -> None:
    first = client.prompt(session, "TASK-RUNNING")
    held = desk.next("TASK-RUNNING")
    second = client.prompt(session, "TASK-QUEUED")
    assert client.steer(session, "STEER-RUNNING", **OPT_IN).wait() == {"outcome": "injected"}
    held.reply("one")
    steered = desk.next("STEER-RUNNING")
    assert "TASK-QUEUED" not in steered.raw
    steered.reply("two")
    assert first.wait()["stopReason"] == "end_turn"
    desk.next("TASK-QUEUED").reply("three")
    assert second.wait()["stopReason"] == "end_turn"


def test_steer_echo_is_never_sent(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-ECHO")
    first = desk.next("TASK-ECHO")
    client.steer(session, "STEER-ECHO").wait()
    first.reply("one")
    desk.next("STEER-ECHO").reply("two")
    prompt.wait()
    assert client.updates(session, "user_message_chunk") == []
    assert "STEER-ECHO" not in client.said(session)


def test_usage_of_steered_turn_covers_every_model_request(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-USAGE")
    first = desk.next("TASK-USAGE")
    client.steer(session, "STEER-USAGE").wait()
    first.reply(say("one").using(100, 10, cached=60))
    desk.next("STEER-USAGE").reply(say("two").using(200, 20, cached=100))
    assert prompt.wait()["usage"] == {
        "totalTokens": 330,
        "inputTokens": 300,
        "outputTokens": 30,
        "cachedReadTokens": 160,
    }
