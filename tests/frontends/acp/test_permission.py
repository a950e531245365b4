"""Tool calls as the client sees them, permissions, plans and modes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steerkit.testing import call, say
from tests.frontends.acp.client import OPT_IN, PROMPT_REQUIRED, Client
from tests.frontends.acp.conftest import Spawn
from tests.frontends.acp.desk import Asked, Desk

WRITE = call("write_file", path="new.txt", content="one\n")


def asked_to_write(client: Client, desk: Desk, session: str) -> Any:
    """A turn whose model wants to write a file; returns the prompt, and the permission request."""
    prompt = client.prompt(session, f"TASK-{session}")
    desk.next(f"TASK-{session}").reply(WRITE)
    return prompt, client.permission(session)


def tool_text(asked: Asked) -> str:
    return str(next(message["content"] for message in reversed(asked.messages) if message["role"] == "tool"))


def test_a_tool_call_is_told_with_its_kind_title_and_place(
    client: Client, desk: Desk, session: str, tmp_path: Path
) -> None:
    (tmp_path / "clue").write_text("north")
    prompt = client.prompt(session, "TASK-READ")
    desk.next("TASK-READ").reply(call("read_file", path="clue") + call("read_file", path="missing"))
    desk.next("TASK-READ").reply("done")
    prompt.wait()
    first, ended, second, failed = client.updates(session)[:4]
    assert (first["sessionUpdate"], first["kind"], first["status"]) == ("tool_call", "read", "in_progress")
    assert "clue" in first["title"]
    assert [Path(place["path"]).name for place in first["locations"]] == ["clue"]
    assert first["rawInput"] == {"path": "clue"}
    assert (ended["toolCallId"], ended["status"]) == (first["toolCallId"], "completed")
    assert "north" in ended["content"][0]["content"]["text"]
    assert second["toolCallId"] != first["toolCallId"]
    assert (failed["toolCallId"], failed["status"]) == (second["toolCallId"], "failed")


def test_a_permission_shows_the_change_as_a_diff_and_then_it_is_made(
    client: Client, desk: Desk, session: str, tmp_path: Path
) -> None:
    (tmp_path / "new.txt").write_text("zero\n")
    prompt, asked = asked_to_write(client, desk, session)
    shown = asked["params"]["toolCall"]
    assert shown["content"] == [
        {"type": "diff", "path": str(tmp_path / "new.txt"), "oldText": "zero\n", "newText": "one\n"}
    ]
    assert (shown["kind"], shown["status"]) == ("edit", "pending")
    assert client.updates(session)[0]["toolCallId"] == shown["toolCallId"]
    kinds = [option["kind"] for option in asked["params"]["options"]]
    assert kinds == ["allow_once", "allow_always", "reject_once"]
    assert (tmp_path / "new.txt").read_text() == "zero\n"
    client.answer(asked, "allow")
    desk.next(f"TASK-{session}").reply("done")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert (tmp_path / "new.txt").read_text() == "one\n"
    statuses = [update.get("status") for update in client.updates(session) if "toolCallId" in update]
    assert statuses == ["pending", "in_progress", "completed"]
    assert "content" not in client.updates(session, "tool_call_update")[-1], "the diff stays in sight"


def test_a_permission_shows_the_exact_command(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-COMMAND")
    desk.next("TASK-COMMAND").reply(call("run_command", command="echo ```a```"))
    asked = client.permission(session)
    assert asked["params"]["toolCall"]["content"][0]["content"]["text"] == "````sh\necho ```a```\n````"
    client.cancel(session)
    assert prompt.wait()["stopReason"] == "cancelled"


@pytest.mark.parametrize("answer", ["reject", None, "no-such-option"])
def test_a_tool_that_is_not_allowed_does_not_run_and_the_model_is_told(
    client: Client, desk: Desk, session: str, tmp_path: Path, answer: str | None
) -> None:
    prompt, asked = asked_to_write(client, desk, session)
    client.answer(asked, answer)
    second = desk.next(f"TASK-{session}")
    assert "did not allow" in tool_text(second)
    second.reply("a pity")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert not (tmp_path / "new.txt").exists()
    assert [update["status"] for update in client.updates(session, "tool_call_update")] == ["failed"]


@pytest.mark.parametrize("result", [{"error": {"code": -32603, "message": "no"}}, {"result": None}, {"result": {}}])
def test_an_answer_that_selects_nothing_allows_nothing(
    client: Client, desk: Desk, session: str, tmp_path: Path, result: Any
) -> None:
    prompt, asked = asked_to_write(client, desk, session)
    client.send({"jsonrpc": "2.0", "id": asked["id"], **result})
    desk.next(f"TASK-{session}").reply("a pity")
    prompt.wait()
    assert not (tmp_path / "new.txt").exists()


def test_always_allows_the_tool_for_the_rest_of_the_session_alone(
    client: Client, desk: Desk, session: str, tmp_path: Path
) -> None:
    prompt, asked = asked_to_write(client, desk, session)
    client.answer(asked, "always")
    desk.next(f"TASK-{session}").reply(call("write_file", path="second.txt", content="two"))
    desk.next(f"TASK-{session}").reply(call("run_command", command="true"))
    client.answer(client.permission(session, 1), "reject")
    desk.next(f"TASK-{session}").reply("done")
    prompt.wait()
    assert (tmp_path / "second.txt").read_text() == "two"
    other = client.new(tmp_path)
    asked_to_write(client, desk, other)
    client.cancel(other)


@pytest.mark.parametrize("more", [{}, OPT_IN], ids=["default", "opt_in"])
def test_steer_during_permission_is_held_until_the_answer(
    client: Client, desk: Desk, session: str, tmp_path: Path, more: dict[str, Any]
) -> None:
    prompt, asked = asked_to_write(client, desk, session)
    assert client.steer(session, f"STEER-{session}", **more).wait() == {"outcome": "injected"}
    assert not desk.with_token(f"STEER-{session}")
    assert not [frame for frame in client.frames if frame.get("method") == "$/cancel_request"]
    client.answer(asked, "allow")
    second = desk.next(f"STEER-{session}")
    assert [message["role"] for message in second.messages] == ["user", "assistant", "tool", "user"]
    second.reply("done")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert (tmp_path / "new.txt").exists()


def test_cancel_during_permission_leaves_a_conversation_that_can_go_on(
    client: Client, desk: Desk, session: str, tmp_path: Path
) -> None:
    prompt = client.prompt(session, "TASK-TWO-CALLS")
    desk.next("TASK-TWO-CALLS").reply(WRITE + call("run_command", command="true"))
    asked = client.permission(session)
    client.cancel(session)
    assert "usage" in prompt.wait()
    client.answer(asked, "allow")  # too late
    again = client.prompt(session, "TASK-GO-ON")
    third = desk.next("TASK-GO-ON")
    assert [message["role"] for message in third.messages] == ["user", "assistant", "tool", "tool", "user"]
    third.reply("fine")
    assert again.wait()["stopReason"] == "end_turn"
    assert not (tmp_path / "new.txt").exists()
    assert len(client.calls_of("session/request_permission", session)) == 1


@pytest.mark.parametrize(("mode", "written"), [("auto", True), ("read", False)])
def test_a_mode_answers_in_place_of_the_person(
    client: Client, desk: Desk, session: str, tmp_path: Path, mode: str, written: bool
) -> None:
    assert client.call("session/set_mode", {"sessionId": session, "modeId": mode}) == {}
    prompt = client.prompt(session, f"TASK-{session}")
    desk.next(f"TASK-{session}").reply(WRITE)
    desk.next(f"TASK-{session}").reply("done")
    prompt.wait()
    assert (tmp_path / "new.txt").exists() is written
    assert client.calls_of("session/request_permission", session) == []


@pytest.mark.parametrize("mode", ["no-such", "", None, 5])
def test_an_unknown_mode_is_refused(client: Client, session: str, mode: Any) -> None:
    assert client.error("session/set_mode", {"sessionId": session, "modeId": mode}).code == -32602


def test_arguments_that_are_no_json_are_shown_as_they_are(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-BAD-ARGUMENTS")
    desk.next("TASK-BAD-ARGUMENTS").reply(call("read_file", '{"path": '))
    desk.next("TASK-BAD-ARGUMENTS").reply("sorry")
    prompt.wait()
    assert client.updates(session, "tool_call")[0]["rawInput"] == '{"path": '
    assert client.updates(session, "tool_call_update")[0]["status"] == "failed"


# ---- plans

PLAN = say("1. Look around\n2. Dig\n")
STEPS = ["Look around", "Dig"]


def entries(client: Client, session: str) -> list[Any]:
    return [
        [(entry["content"], entry["status"]) for entry in update["entries"]]
        for update in client.updates(session, "plan")
    ]


def planned(client: Client, desk: Desk, session: str) -> Any:
    prompt = client.prompt(session, f"TASK-{session}")
    desk.next(f"TASK-{session}").reply(PLAN)
    return prompt


def test_a_plan_is_told_as_a_plan(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--pattern", "plan")
    session = client.new(tmp_path)
    prompt = planned(client, desk, session)
    desk.next(f"TASK-{session}").reply("dug")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert entries(client, session) == [
        [(step, "pending") for step in STEPS],
        [(step, "completed") for step in STEPS],
    ]
    start = len(client.updates(session))
    client.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
    replayed = client.updates(session, "user_message_chunk")[-1:]
    assert [update["content"]["text"] for update in replayed] == [f"TASK-{session}"], "not what the pattern says"
    assert len(client.updates(session)) == start + 3


def test_while_a_plan_waits_the_opt_in_gets_prompt_required(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--pattern", "plan", "--approve-plan")
    session = client.new(tmp_path)
    prompt = planned(client, desk, session)
    asked = client.permission(session)
    assert "Look around" in json.dumps(asked["params"]["toolCall"]["content"])
    assert client.steer(session, "STEER-NOT-CONSUMED", **OPT_IN).wait() == PROMPT_REQUIRED
    queued = client.prompt(session, f"QUEUED-{session}")
    assert client.steer(session, "STEER-NOT-CONSUMED", **OPT_IN).wait() == PROMPT_REQUIRED
    assert not prompt.answered
    client.answer(asked, "allow")
    assert client.steer(session, f"STEER-{session}", **OPT_IN).wait() == {"outcome": "injected"}
    client.cancel(session)
    assert [prompt.wait()["stopReason"], queued.wait()["stopReason"]] == ["cancelled", "cancelled"]
    assert not desk.with_token("STEER-NOT-CONSUMED")


def test_without_the_opt_in_a_steer_joins_the_turn_whose_plan_waits(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--pattern", "plan", "--approve-plan")
    session = client.new(tmp_path)
    prompt = planned(client, desk, session)
    asked = client.permission(session)
    assert client.steer(session, f"STEER-{session}").wait() == {"outcome": "injected"}
    client.answer(asked, "allow")
    desk.next(f"STEER-{session}").reply("dug")
    assert prompt.wait()["stopReason"] == "end_turn"


def test_a_rejected_plan_ends_the_turn(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--pattern", "plan", "--approve-plan")
    session = client.new(tmp_path)
    prompt = planned(client, desk, session)
    client.answer(client.permission(session), "reject")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert len(desk.with_token(f"TASK-{session}")) == 1


def test_a_cancel_while_a_plan_waits_ends_the_turn(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--pattern", "plan", "--approve-plan")
    session = client.new(tmp_path)
    prompt = planned(client, desk, session)
    client.permission(session)
    client.cancel(session)
    assert prompt.wait()["stopReason"] == "cancelled"
    assert client.steer(session, "x", **OPT_IN).wait() == PROMPT_REQUIRED
