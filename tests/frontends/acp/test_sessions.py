"""Sessions: new, list, load, resume, close, delete; and what is kept of them on the disk."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from steerkit.testing import call, fail
from tests.frontends.acp.client import OPT_IN, PROMPT_REQUIRED, AcpError, Client
from tests.frontends.acp.conftest import Spawn
from tests.frontends.acp.desk import Desk


def params(session: str, cwd: Path) -> dict[str, Any]:
    return {"sessionId": session, "cwd": str(cwd), "mcpServers": []}


def file_of(client: Client, session: str) -> Path:
    return next(client.stderr_path.parent.rglob(f"{session}.jsonl"))


def steered_turn(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, f"TASK-{session}")
    first = desk.next(f"TASK-{session}")
    assert client.steer(session, "STEER-EARLY").wait() == {"outcome": "injected"}
    first.reply(call("list_files"))
    second = desk.next(f"TASK-{session}")
    client.steer(session, f"LATER-{session}").wait()
    second.reply("one")
    desk.next(f"LATER-{session}").reply("two")
    prompt.wait()


def story(client: Client, session: str, start: int = 0) -> list[tuple[str, str]]:
    return [
        (
            update["sessionUpdate"],
            update.get("content", {}).get("text", "") if "chunk" in update["sessionUpdate"] else "",
        )
        for update in client.updates(session)[start:]
    ]


def expected_story(session: str) -> list[tuple[str, str]]:
    return [
        ("user_message_chunk", f"TASK-{session}"),
        ("tool_call", ""),
        ("tool_call_update", ""),
        ("user_message_chunk", "STEER-EARLY"),
        ("agent_message_chunk", "one"),
        ("user_message_chunk", f"LATER-{session}"),
        ("agent_message_chunk", "two"),
    ]


def test_session_new_sends_nothing_before_its_answer(client: Client, tmp_path: Path) -> None:
    session = client.new(tmp_path)
    assert client.calls_of("session/update", session) == []


@pytest.mark.parametrize("cwd", ["", "relative", "tests", None, 5, "/no/such/folder"])
def test_a_folder_that_is_none_is_refused(client: Client, cwd: Any) -> None:
    assert client.error("session/new", {"cwd": cwd, "mcpServers": []}).code == -32602


@pytest.mark.parametrize("servers", ["x", [5], {"a": 1}])
def test_mcp_servers_of_another_shape_are_refused(client: Client, tmp_path: Path, servers: Any) -> None:
    assert client.error("session/new", {"cwd": str(tmp_path), "mcpServers": servers}).code == -32602


def test_mcp_servers_are_said_not_to_be_used(client: Client, desk: Desk, tmp_path: Path) -> None:
    server = {"name": "files", "command": "x", "args": [], "env": []}
    session = client.call("session/new", {"cwd": str(tmp_path), "mcpServers": [server]})["sessionId"]
    for number in range(2):
        prompt = client.prompt(session, f"TASK-MCP-{number}")
        desk.next(f"TASK-MCP-{number}").reply("done")
        prompt.wait()
    assert client.said(session).count("MCP servers are not used yet: files") == 1
    assert client.stderr_path.read_text().count("MCP servers are not used yet: files") == 1


@pytest.mark.parametrize("new_process", [False, True], ids=["same_process", "new_process"])
def test_load_replays_steers_where_they_were_read(spawn: Spawn, desk: Desk, tmp_path: Path, new_process: bool) -> None:
    client = spawn()
    session = client.new(tmp_path)
    steered_turn(client, desk, session)
    if new_process:
        assert client.end() == 0
        client = spawn()
    else:
        client.call("session/close", {"sessionId": session})
    start = len(client.updates(session))
    load = client.request("session/load", params(session, tmp_path))
    assert load.wait()["modes"]["currentModeId"] == "ask"
    assert story(client, session, start) == expected_story(session)
    assert all("sessionId" not in frame.get("params", {}) for frame in client.frames[load.position :])
    again = client.prompt(session, "TASK-GO-ON")
    asked = desk.next("TASK-GO-ON")
    roles = [message["role"] for message in asked.messages if message["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "user", "assistant", "user"]
    asked.reply("fine")
    assert again.wait()["stopReason"] == "end_turn"


def test_load_of_an_open_session_replays_what_there_is(
    client: Client, desk: Desk, session: str, tmp_path: Path
) -> None:
    steered_turn(client, desk, session)
    start = len(client.updates(session))
    client.call("session/load", params(session, tmp_path))
    assert story(client, session, start) == expected_story(session)


def test_resume_replays_nothing(client: Client, desk: Desk, session: str, tmp_path: Path) -> None:
    steered_turn(client, desk, session)
    client.call("session/close", {"sessionId": session})
    start = len(client.updates(session))
    client.call("session/resume", params(session, tmp_path))
    assert story(client, session, start) == []
    assert client.steer(session, "x", **OPT_IN).wait() == PROMPT_REQUIRED


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
@pytest.mark.parametrize("session_id", ["no-such", "0" * 32, "../../etc/passwd", "a\0b"])
def test_an_unknown_session_cannot_be_opened(client: Client, tmp_path: Path, method: str, session_id: str) -> None:
    error = client.error(method, params(session_id, tmp_path))
    assert (error.code, error.data) == (-32002, {"sessionId": session_id})


def test_steer_that_was_not_consumed_is_not_in_the_history(
    client: Client, desk: Desk, session: str, tmp_path: Path
) -> None:
    client.steer(session, "STEER-UNREAD", **OPT_IN).wait()
    prompt = client.prompt(session, "TASK-HISTORY")
    desk.next("TASK-HISTORY")
    client.steer(session, "STEER-DROPPED").wait()
    client.cancel(session)
    prompt.wait()
    start = len(client.updates(session))
    client.call("session/load", params(session, tmp_path))
    assert story(client, session, start) == [("user_message_chunk", "TASK-HISTORY")]


def test_a_session_is_listed_with_its_folder_and_title(client: Client, desk: Desk, tmp_path: Path) -> None:
    sessions = [client.new(tmp_path) for _ in range(3)]
    prompt = client.prompt(sessions[0], "TASK-LISTED\nand more")
    desk.next("TASK-LISTED").reply("done")
    prompt.wait()
    listed = client.call("session/list", {"cwd": str(tmp_path)})["sessions"]
    assert {item["sessionId"] for item in listed} == set(sessions)
    assert {item["cwd"] for item in listed} == {str(tmp_path)}
    titles = {item["sessionId"]: item["title"] for item in listed}
    assert titles == {sessions[0]: "TASK-LISTED and more", sessions[1]: None, sessions[2]: None}
    everything = client.call("session/list", {})["sessions"]
    assert set(sessions) <= {item["sessionId"] for item in everything}


def test_a_long_list_comes_in_pages(spawn: Spawn, tmp_path: Path) -> None:
    client = spawn()
    sessions = {client.new(tmp_path) for _ in range(101)}
    first = client.call("session/list", {})
    second = client.call("session/list", {"cursor": first["nextCursor"]})
    listed = [item["sessionId"] for item in first["sessions"] + second["sessions"]]
    assert (len(first["sessions"]), len(listed), set(listed)) == (100, 101, sessions)
    assert "nextCursor" not in second


@pytest.mark.parametrize("cursor", ["x", 5, "-1", ""])
def test_a_cursor_that_is_none(client: Client, cursor: Any) -> None:
    assert client.error("session/list", {"cursor": cursor}).code == -32602


def test_delete_forgets_a_session_and_is_silent_about_an_unknown_one(
    client: Client, desk: Desk, session: str, tmp_path: Path
) -> None:
    prompt = client.prompt(session, "TASK-DELETED")
    desk.next("TASK-DELETED")
    assert client.call("session/delete", {"sessionId": session}) == {}
    assert prompt.wait()["stopReason"] == "cancelled"
    assert client.call("session/delete", {"sessionId": session}) == {}
    assert client.call("session/delete", {"sessionId": "../x"}) == {}
    assert client.error("session/load", params(session, tmp_path)).code == -32002
    assert client.call("session/list", {"cwd": str(tmp_path)})["sessions"] == []


def test_a_session_that_is_closing_cannot_be_loaded(client: Client, desk: Desk, session: str, tmp_path: Path) -> None:
    client.prompt(session, "TASK-CLOSING")
    desk.next("TASK-CLOSING").reply(call("hang"))
    client.until(lambda: client.updates(session, "tool_call"), "the tool")
    close = client.request("session/close", {"sessionId": session})
    assert client.error("session/load", params(session, tmp_path)).code == -32600
    assert close.wait() == {}
    assert client.call("session/load", params(session, tmp_path))


# ---- the file


def test_the_file_is_readable_by_its_owner_alone(client: Client, session: str) -> None:
    path = file_of(client, session)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_killed_process_leaves_what_had_been_said(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn()
    session = client.new(tmp_path)
    client.prompt(session, "TASK-KILLED")
    desk.next("TASK-KILLED").reply(call("list_files"))
    desk.next("TASK-KILLED")
    client.kill()
    with file_of(client, session).open("ab") as file:
        file.write(b'{"keep": 3, "messages": [{"ro')
    client = spawn()
    client.call("session/load", params(session, tmp_path))
    assert [kind for kind, _ in story(client, session)] == ["user_message_chunk", "tool_call", "tool_call_update"]
    prompt = client.prompt(session, "TASK-REVIVED")
    asked = desk.next("TASK-REVIVED")
    assert [m["role"] for m in asked.messages if m["role"] != "system"] == ["user", "assistant", "tool", "user"]
    asked.reply("fine")
    prompt.wait()
    lines = file_of(client, session).read_bytes().splitlines()
    assert all(json.loads(line) for line in lines)


def test_what_waits_for_the_next_turn_survives_the_process(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn()
    session = client.new(tmp_path)
    prompt = client.prompt(session, "TASK-FAILING")
    first = desk.next("TASK-FAILING")
    client.steer(session, "STEER-SURVIVES").wait()
    first.reply(fail(400, "no"))
    with pytest.raises(AcpError):
        prompt.wait()
    client.end()
    client = spawn()
    client.call("session/resume", params(session, tmp_path))
    client.prompt(session, "TASK-NEXT-LIFE")
    asked = desk.next("TASK-NEXT-LIFE")
    assert asked.user_texts()[-2:] == ["STEER-SURVIVES", "TASK-NEXT-LIFE"]
    client.cancel(session)


def test_a_damaged_file_is_refused_with_a_sentence(client: Client, session: str, tmp_path: Path) -> None:
    client.call("session/close", {"sessionId": session})
    path = file_of(client, session)
    path.write_bytes(path.read_bytes() + b"not json\n")
    error = client.error("session/load", params(session, tmp_path))
    assert error.code == -32600
    assert str(path) in error.message


# ---- which agent


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no.such:thing", "cannot be loaded"),
        ("tests.frontends.acp.agents:nothing", "cannot be loaded"),
        ("tests.frontends.acp.agents:not_an_agent", "not a Spec"),
    ],
)
def test_an_agent_that_is_none_is_told_to_the_editor(spawn: Spawn, tmp_path: Path, name: str, words: str) -> None:
    client = spawn("--agent", name)
    error = client.error("session/new", {"cwd": str(tmp_path), "mcpServers": []})
    assert error.code == -32602
    assert words in error.message


def test_an_agent_that_fails_is_an_internal_error(spawn: Spawn, tmp_path: Path) -> None:
    client = spawn("--agent", "tests.frontends.acp.agents:faulty")
    error = client.error("session/new", {"cwd": str(tmp_path), "mcpServers": []})
    assert error.code == -32603
    assert "this agent cannot be made" in error.message


def test_a_spec_can_be_named_too(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--agent", "tests.frontends.acp.agents:quiet")
    session = client.new(tmp_path)
    prompt = client.prompt(session, "TASK-QUIET")
    asked = desk.next("TASK-QUIET")
    assert "tools" not in asked.body
    asked.reply("done")
    assert prompt.wait()["stopReason"] == "end_turn"
