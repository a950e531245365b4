"""A treasure hunt in an editor: each clue names only the next one, and a person stops it half-way.

This program is the editor. It starts the real agent (`steerkit acp`) as a process of its own, speaks the Agent Client
Protocol with it over pipes, and when the agent opens the first clue it sends a steer with `_session/steering`.

It prints:

    the agent says it takes steers: True
    the agent: Read clue-1.txt
    steering: Stop after the second clue and tell me what it says. -> injected
    the agent: Read clue-2.txt
    the agent says: The second clue says: under the old oak, look for clue-3.txt.
    the prompt is answered: end_turn
    clues that were never opened: clue-3.txt, clue-4.txt, clue-5.txt
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from steerkit.testing import Recorded, Reply, call, gateway_or_env, say

PLACES = ["in the kitchen", "under the old oak", "behind the clock", "on the roof", "in the well"]
STEER = "Stop after the second clue and tell me what it says."
steered = threading.Event()


def hide(folder: Path) -> None:
    for number, place in enumerate(PLACES, 1):
        (folder / f"clue-{number}.txt").write_text(f"{place}, look for clue-{number + 1}.txt")


def model(asked: Recorded) -> Reply:
    """Opens one clue after another, until it is told to stop; a script is quick, so it waits for the person."""
    messages = asked.body["messages"]
    clues = [message["content"] for message in messages if message["role"] == "tool"]
    if clues:
        steered.wait(20)
    if len(clues) == 2 and any(message["role"] == "user" and STEER in message["content"] for message in messages):
        return say("The second clue says: under the old oak, look for clue-3.txt.")
    return call("read_file", path=f"clue-{len(clues) + 1}.txt")


class Editor:
    """A client of the protocol in a few lines: one JSON object a line, in both directions."""

    def __init__(self, agent: "subprocess.Popen[str]", folder: Path) -> None:
        self.agent = agent
        self.folder = folder
        self.opened: list[str] = []
        self.said = ""
        self.asked: dict[int, str] = {}

    def request(self, method: str, **params: Any) -> int:
        number = len(self.asked)
        self.asked[number] = method
        assert self.agent.stdin is not None
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        print(json.dumps(frame), file=self.agent.stdin, flush=True)
        return number

    def answer(self, number: int) -> Any:
        """The answer to a request; what comes before it is shown."""
        assert self.agent.stdout is not None
        for line in self.agent.stdout:
            frame = json.loads(line)
            if frame.get("method") == "session/update":
                self.update(frame["params"]["sessionId"], frame["params"]["update"])
            elif self.asked[frame["id"]] == "_session/steering":
                print("steering:", STEER, "->", frame["result"]["outcome"])
                steered.set()
            if frame.get("id") == number:
                return frame["result"]
        raise SystemExit("The agent has ended.")

    def update(self, session: str, update: dict[str, Any]) -> None:
        if update["sessionUpdate"] == "agent_message_chunk":
            self.said += update["content"]["text"]
        elif update["sessionUpdate"] == "tool_call":
            print("the agent:", update["title"])
            self.opened += [Path(place["path"]).name for place in update.get("locations", ())]
            if self.opened[-1:] == ["clue-1.txt"]:
                self.request("_session/steering", sessionId=session, prompt=[{"type": "text", "text": STEER}])


def hunt(editor: Editor) -> None:
    hello = editor.answer(editor.request("initialize", protocolVersion=1, clientCapabilities={}))
    print("the agent says it takes steers:", hello["_meta"]["steering"]["supported"])
    session = editor.answer(editor.request("session/new", cwd=str(editor.folder), mcpServers=[]))["sessionId"]
    task = "Find the treasure. Begin with clue-1.txt, and open one clue at a time."
    prompt = editor.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": task}])
    result = editor.answer(prompt)
    print("the agent says:", editor.said)
    print("the prompt is answered:", result["stopReason"])
    print("clues that were never opened:", ", ".join(sorted({path.name for path in left(editor)})))


def left(editor: Editor) -> list[Path]:
    return [path for path in editor.folder.glob("clue-*.txt") if path.name not in editor.opened]


if __name__ == "__main__":
    with gateway_or_env(model) as (endpoint, name), tempfile.TemporaryDirectory() as kept:
        folder = Path(kept, "hunt")
        folder.mkdir()
        hide(folder)
        env = {"STEERKIT_BASE_URL": endpoint.base_url, "STEERKIT_API_KEY": endpoint.api_key, "STEERKIT_MODEL": name}
        with subprocess.Popen(
            [sys.executable, "-m", "steerkit.frontends.acp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **env, "XDG_DATA_HOME": kept},
        ) as agent:
            hunt(Editor(agent, folder))
