"""The command line, the log, and what a turn notes of a refusal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from steerkit import Response, Spec, Text, assistant
from steerkit.core.model import OnText, Request
from steerkit.frontends import cli
from steerkit.frontends.acp.connection import Reply
from steerkit.frontends.acp.session import Session
from steerkit.frontends.acp.setup import Setup
from steerkit.frontends.acp.store import Saved, Store
from steerkit.patterns import ReAct
from steerkit.testing import ScriptedModel, call
from tests.frontends.acp.client import Client
from tests.frontends.acp.conftest import Spawn
from tests.frontends.acp.desk import Desk
from tests.frontends.acp.test_session import Wire


@pytest.mark.parametrize(
    "arguments",
    [[], ["acp", "--agent", "no-colon"], ["acp", "--max-steps", "0"], ["acp", "--pattern", "none"]],
)
def test_a_wrong_command_line_is_refused_with_a_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        cli.main(arguments)
    assert raised.value.code == 2
    assert "usage: steerkit" in capsys.readouterr().err


def test_without_platformdirs_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(SystemExit, match="steerkit-sdk"):
        cli.main(["acp"])


def test_the_agent_starts_without_what_only_a_session_needs() -> None:
    program = (
        "import sys\n"
        "from steerkit.frontends import cli\n"
        "import steerkit.frontends.acp as acp\n"
        "acp.serve = lambda agent: print(sorted({'pydantic', 'requests', 'jsonschema'} & set(sys.modules)))\n"
        "cli.main(['acp'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("variable", "words"), [("STEERKIT_MODEL", "STEERKIT_MODEL"), ("STEERKIT_BASE_URL", "URL")])
def test_a_missing_variable_is_told_to_the_editor(spawn: Spawn, tmp_path: Path, variable: str, words: str) -> None:
    client = spawn(without=variable)
    error = client.error("session/new", {"cwd": str(tmp_path), "mcpServers": []})
    assert words in error.message


def test_the_default_log_holds_neither_keys_nor_prompts(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn()
    session = client.new(tmp_path)
    prompt = client.prompt(session, "TASK-SECRET-WORDS")
    desk.next("TASK-SECRET-WORDS").reply(call("list_files"))
    desk.next("TASK-SECRET-WORDS").reply("done")
    prompt.wait()
    client.write(b"not json SECRET-WORDS\n")
    client.end()
    log = client.stderr_path.read_text()
    assert "SECRET-WORDS" not in log
    assert "test-key" not in log


def test_the_key_is_in_no_log_at_all(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--log-level", "debug")
    prompt = client.prompt(client.new(tmp_path), "TASK-DEBUG")
    desk.next("TASK-DEBUG").reply("done")
    prompt.wait()
    client.write(b"not json\n")
    client.end()
    log = client.stderr_path.read_text()
    assert "DEBUG" in log
    assert "test-key" not in log


def test_the_default_agent_knows_its_folder_and_its_tools(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--max-steps", "1")
    session = client.new(tmp_path)
    prompt = client.prompt(session, "TASK-DEFAULT")
    asked = desk.next("TASK-DEFAULT")
    assert asked.body["model"] == "test-model"
    assert str(tmp_path) in asked.messages[0]["content"]
    names = {tool["function"]["name"] for tool in asked.body["tools"]}
    assert names == {"read_file", "list_files", "search", "write_file", "edit_file", "run_command"}
    asked.reply(call("list_files"))
    assert prompt.wait()["stopReason"] == "max_turn_requests"


def test_a_refusal_of_the_model_is_a_stop_reason(tmp_path: Path) -> None:
    class Refusing(ScriptedModel):
        def complete(self, request: Request, on_text: OnText | None = None) -> Response:
            return Response(assistant("I will not."), refusal="I will not.")

    wire, model = Wire(), Refusing([])
    setup = Setup(Spec("m", "react", max_steps=4), model.endpoint, lambda _: model, lambda _: (ReAct(),))
    session = Session("0" * 32, setup, wire, Store(tmp_path).create("0" * 32, "/"), Saved("/"))
    session.prompt(Reply(wire, "p"), (Text("p"),))
    assert dict(wire.until(1))["p"]["stopReason"] == "refusal"


def test_answers_of_the_reading_thread_come_in_the_order_of_the_requests(client: Client) -> None:
    pending = [client.request("no/such", {}) for _ in range(1000)]
    client.until(lambda: pending[-1].answered, "the last answer")
    positions = [one.position for one in pending]
    assert positions == sorted(positions)
