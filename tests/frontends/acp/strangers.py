"""Clients that nobody here wrote, each in one main flow: `python -m tests.frontends.acp.strangers CLIENT AGENT`.

CLIENT is `python-sdk`, `acp-client` (both have to be importable) or the path of `acpx`. For `.ci/acp-clients`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse

from steerkit.testing import call, say
from tests.frontends.acp.client import OPT_IN, STEERING, said
from tests.frontends.acp.desk import Desk

READ = call("read_file", path="clue")
WRITE = call("write_file", path="found", content="gold")


@contextmanager
def place() -> Iterator[tuple[Desk, Path]]:
    """A model server that the environment names, and a folder with a clue in it."""
    desk = Desk()
    try:
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "clue").write_text("north")
            os.environ |= {
                "STEERKIT_BASE_URL": desk.url,
                "STEERKIT_API_KEY": "test-key",
                "STEERKIT_MODEL": "test-model",
                "HOME": name,
                "XDG_DATA_HOME": f"{name}/data",
            }
            yield desk, Path(name)
    finally:
        desk.close()


class Editor:
    """The client half of the official Python SDK: it allows everything and keeps what is said."""

    def __init__(self) -> None:
        self.said = ""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> RequestPermissionResponse:
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    def on_connect(self, agent: Any) -> None:
        pass


async def python_sdk(agent: str, desk: Desk, folder: Path) -> None:
    editor: Any = Editor()
    async with spawn_agent_process(editor, agent, "acp", env=dict(os.environ)) as (connection, _):
        hello = await connection.initialize(PROTOCOL_VERSION)
        assert hello.field_meta == {"steering": {"supported": True}}
        session = (await connection.new_session(str(folder), mcp_servers=[])).session_id
        steering = STEERING.removeprefix("_")  # the SDK adds it
        idle = await connection.ext_method(steering, {**said(session, "x"), **OPT_IN})
        assert idle["outcome"] == "promptRequired"
        prompt = asyncio.create_task(connection.prompt(session, [text_block("TASK-SDK")]))
        first = await asyncio.to_thread(desk.next, "TASK-SDK")
        assert await connection.ext_method(steering, said(session, "STEER-SDK")) == {"outcome": "injected"}
        first.reply(WRITE)
        (await asyncio.to_thread(desk.next, "STEER-SDK")).reply("found")
        assert (await prompt).stop_reason == "end_turn"
        assert editor.said == "found"
        assert (folder / "found").read_text() == "gold"
        editor.said = ""
        await connection.load_session(str(folder), session, mcp_servers=[])
        assert editor.said == "found"
        prompt = asyncio.create_task(connection.prompt(session, [text_block("TASK-CANCELLED")]))
        await asyncio.to_thread(desk.next, "TASK-CANCELLED")
        await connection.cancel(session)
        assert (await prompt).stop_reason == "cancelled"
        await connection.close_session(session)


async def acp_client(agent: str, desk: Desk, folder: Path) -> None:
    module: Any = importlib.import_module("acp_client")
    asked: list[Any] = []

    async def permit(request: Any) -> str:
        asked.append(request)
        return str(request["options"][0]["optionId"])

    def play(asked: Any) -> Any:
        return WRITE if asked.messages[-1]["role"] == "user" and "TASK-1" in asked.user_texts()[-1] else say("found")

    desk.rule("TASK", play)
    talk = module.Agent([agent, "acp"], folder, permission=permit)
    assert await talk.ask("TASK-1") == "found"
    assert (folder / "found").read_text() == "gold"
    assert len(asked) == 1
    session = talk.session
    await talk.stop()
    again = module.Agent([agent, "acp"], folder, session=session)
    assert await again.ask("TASK-2") == "found"
    assert again.session == session
    await again.stop()


def acpx(program: str, agent: str, desk: Desk, folder: Path) -> None:
    desk.rule("TASK", lambda asked: READ if asked.messages[-1]["role"] == "user" else say("It says north."))
    command = [program, "--agent", f"{agent} acp", "--cwd", str(folder), "--approve-all", "exec", "TASK"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for words in ("Read clue (completed)", "north", "It says north.", "[done] end_turn"):
        assert words in done.stdout, done.stdout


def main(client: str, agent: str) -> None:
    with place() as (desk, folder):
        if client == "python-sdk":
            asyncio.run(asyncio.wait_for(python_sdk(agent, desk, folder), 60))
        elif client == "acp-client":
            asyncio.run(asyncio.wait_for(acp_client(agent, desk, folder), 60))
        else:
            acpx(client, agent, desk, folder)
    print("fine")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
