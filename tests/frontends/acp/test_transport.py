"""Frames, faults and the ends of the process."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from steerkit.testing import call
from tests.conftest import PATIENCE
from tests.frontends.acp.client import STEERING, AcpError, Client, said
from tests.frontends.acp.conftest import Spawn
from tests.frontends.acp.desk import Desk

INITIALIZE = {"protocolVersion": 1, "clientCapabilities": {}}


def errors_without_id(client: Client) -> list[int]:
    return [frame["error"]["code"] for frame in list(client.frames) if "id" in frame and frame["id"] is None]


# ---- initialize


def test_init_shape_and_init_advertises_steering(client: Client) -> None:
    result = client.initialize()
    assert result["protocolVersion"] == 1
    assert result["_meta"]["steering"] == {"supported": True}
    assert result["agentInfo"]["name"] == "steerkit"
    assert result["agentCapabilities"] == {
        "loadSession": True,
        "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
        "mcpCapabilities": {"http": False, "sse": False},
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
    }
    assert result["authMethods"] == []


@pytest.mark.parametrize("version", [0, 1, 2, 65535])
def test_init_newer_version_is_answered_with_ours(client: Client, version: int) -> None:
    assert client.call("initialize", {"protocolVersion": version})["protocolVersion"] == 1


@pytest.mark.parametrize("version", [None, "1", True, [], 1.5])
def test_a_version_that_is_no_number_is_refused(client: Client, version: Any) -> None:
    assert client.error("initialize", {"protocolVersion": version}).code == -32602


def test_init_minimal_and_extra_fields(spawn: Spawn) -> None:
    client = spawn(initialize=False)
    pending, frame = client.frame("initialize", {"protocolVersion": 1, "unknown": {"x": 1}})
    client.send({**frame, "type": "com.agentclientprotocol.rpc.JsonRpcRequest"})
    assert pending.wait()["protocolVersion"] == 1


def test_init_required_first(spawn: Spawn, tmp_path: Path) -> None:
    client = spawn(initialize=False)
    client.cancel("x")
    assert client.error("session/new", {"cwd": str(tmp_path), "mcpServers": []}).code == -32600
    assert client.error(STEERING, said("x", "y")).code == -32600
    client.initialize()
    assert client.new(tmp_path)


# ---- frames


def test_request_ids_echoed(client: Client) -> None:
    ids: list[Any] = ["7", 7, 0, -1, 2**53, "", "ü", "\ud800"]
    pending = [client.request("initialize", INITIALIZE, request_id) for request_id in ids]
    assert [one.wait()["protocolVersion"] for one in pending] == [1] * len(ids)


@pytest.mark.parametrize("request_id", [True, [], {}])
def test_an_id_that_is_none_is_refused(spawn: Spawn, request_id: Any) -> None:
    client = spawn()
    client.send({"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": INITIALIZE})
    client.until(lambda: errors_without_id(client) == [-32600], "the refusal")


def test_malformed_lines(spawn: Spawn) -> None:
    client = spawn()
    lines: list[tuple[bytes, int | None]] = [
        (b"not json", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc": "2.0", "id": 1', -32700),
        (b'{"id": NaN, "method": "initialize"}', -32700),
        (b"[" * 100_000, -32700),
        (b"9" * 10_000, -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}]', -32600),
        (b"5", -32600),
        (b'"x"', -32600),
        (b"null", -32600),
        (b"true", -32600),
        (b"{}", -32600),
        (b'{"id":5}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}', None),
        (b'{"jsonrpc":"2.0","id":4711,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":true,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":[],"result":{}}', None),
        (b'{"jsonrpc":"2.0","method":5}', None),
        (b'{"jsonrpc":"2.0","method":"session/cancel","params":[]}', None),
        (b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":{}}}', None),
        (b'{"jsonrpc":"2.0","method":"no/such"}', None),
        (b"", None),
        (b"  \r", None),
    ]
    client.write(b"".join(line + b"\n" for line, _ in lines))
    assert client.initialize()["protocolVersion"] == 1
    assert errors_without_id(client) == [code for _, code in lines if code is not None]


def test_a_method_that_is_no_text_is_refused_for_its_id(client: Client) -> None:
    pending, frame = client.frame("initialize", INITIALIZE)
    client.send({**frame, "method": 5})
    with pytest.raises(AcpError) as raised:
        pending.wait()
    assert raised.value.code == -32600


@pytest.mark.parametrize("method", ["no/such", "_no/such", "authenticate", "session/set_model", ""])
def test_unknown_methods(client: Client, method: str) -> None:
    assert client.error(method, {}).code == -32601


def test_a_frame_that_ends_in_crlf_or_comes_in_pieces(client: Client) -> None:
    pending, frame = client.frame("initialize", INITIALIZE)
    data = json.dumps(frame).encode() + b"\r\n"
    for index in range(len(data)):
        client.write(data[index : index + 1])
    assert pending.wait()["protocolVersion"] == 1


def test_a_line_of_several_mebibytes_is_accepted(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-HUGE" + "x" * 5_000_000)
    asked = desk.next("TASK-HUGE")
    assert len(asked.raw) > 5_000_000
    asked.reply("fine")
    assert prompt.wait()["stopReason"] == "end_turn"


def test_a_line_without_end_is_refused_and_the_next_one_read(spawn: Spawn) -> None:
    client = spawn()
    for _ in range(70):
        client.write(b"x" * 1_000_000)
    client.write(b"\n")
    assert client.initialize()["protocolVersion"] == 1
    assert errors_without_id(client) == [-32600]


def test_unicode_round_trip(client: Client, desk: Desk, session: str) -> None:
    words = "grüße \u2028\u2029\x00\x1f 🧭 \ufeff שלום"
    prompt = client.prompt(session, f"TASK-UNICODE {words}")
    asked = desk.next("TASK-UNICODE")
    assert asked.user_texts() == [f"TASK-UNICODE {words}"]
    asked.reply(words)
    prompt.wait()
    assert client.said(session) == words


def test_stdout_is_clean_whatever_a_tool_prints(client: Client, desk: Desk, session: str) -> None:
    prompt = client.prompt(session, "TASK-PRINTS")
    desk.next("TASK-PRINTS").reply(call("shout", words='{"jsonrpc": "2.0"') + call("swallow"))
    asked = desk.next("TASK-PRINTS")
    assert [message["content"] for message in asked.messages if message["role"] == "tool"] == ["shouted", "''"]
    asked.reply("done")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert client.stderr_path.read_text().count('{"jsonrpc": "2.0"') >= 3


def test_client_capabilities_respected(client: Client, desk: Desk, session: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A")
    prompt = client.prompt(session, "TASK-FILES")
    desk.next("TASK-FILES").reply(call("read_file", path="a"))
    desk.next("TASK-FILES").reply("done")
    prompt.wait()
    methods = {frame["method"] for frame in client.frames if "method" in frame}
    assert methods <= {"session/update", "session/request_permission"}


# ---- the ends


def test_eof_idle_exits(spawn: Spawn, tmp_path: Path) -> None:
    client = spawn()
    client.new(tmp_path)
    started = time.monotonic()
    assert client.end() == 0
    assert time.monotonic() - started < 2


def test_eof_mid_turn_exits_and_answers_the_prompt(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn()
    prompt = client.prompt(client.new(tmp_path), "TASK-EOF")
    desk.next("TASK-EOF")
    started = time.monotonic()
    assert client.end() == 0
    assert time.monotonic() - started < 2
    assert prompt.wait()["stopReason"] == "cancelled"


@pytest.mark.parametrize("tool", ["hang", "write_file"], ids=["in_a_tool_that_hangs", "while_a_permission_waits"])
def test_eof_exits(spawn: Spawn, desk: Desk, tmp_path: Path, tool: str) -> None:
    client = spawn("--agent", "tests.frontends.acp.agents:noisy")
    session = client.new(tmp_path)
    client.prompt(session, f"TASK-{session}")
    arguments = {"path": "x", "content": "y"} if tool == "write_file" else {}
    desk.next(f"TASK-{session}").reply(call(tool, **arguments))
    client.until(lambda: client.updates(session, "tool_call"), "the tool call")
    started = time.monotonic()
    assert client.end() == 0
    assert time.monotonic() - started < 2.3


def test_a_client_that_reads_no_more_ends_the_agent(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn(initialize=False, deaf=True)
    client.send(client.frame("initialize", INITIALIZE)[1])
    assert client.process.wait(PATIENCE) == 0


def test_sigterm_ends_the_agent_in_order(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn()
    prompt = client.prompt(client.new(tmp_path), "TASK-TERM")
    desk.next("TASK-TERM")
    client.process.terminate()
    assert client.process.wait(PATIENCE) == 0
    client.until(lambda: prompt.answered, "the answer")
    assert prompt.wait()["stopReason"] == "cancelled"


def test_a_client_that_pauses_its_reading_gets_everything_in_the_end(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    """While it pauses, the agent takes requests but holds the run back, and keeps little."""
    client = spawn()
    session = client.new(tmp_path)
    words = "".join(f"{number:07}." for number in range(60_000))
    prompt = client.prompt(session, "TASK-FLOOD")
    asked = desk.next("TASK-FLOOD")
    client.reading.clear()
    asked.reply(words)
    steer = client.steer(session, "STEER-FLOOD")
    client.reading.set()
    assert steer.wait() == {"outcome": "injected"}
    desk.next("STEER-FLOOD").reply("!")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert client.said(session) == words + "!"
