"""What the agent for editors costs: starting it, steering it while a turn streams, and one piece of text."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from steerkit.core.model import Endpoint


class Editor:
    """A client that asks one thing at a time."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.kept = tempfile.TemporaryDirectory()
        env = {
            **os.environ,
            "STEERKIT_BASE_URL": endpoint.base_url,
            "STEERKIT_API_KEY": endpoint.api_key,
            "STEERKIT_MODEL": model,
            "XDG_DATA_HOME": self.kept.name,
        }
        started = time.perf_counter()
        self.agent = subprocess.Popen(
            [sys.executable, "-m", "steerkit.frontends.acp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        self.numbers = 0
        self.answer(self.request("initialize", protocolVersion=1, clientCapabilities={}))
        self.start_seconds = time.perf_counter() - started

    def session(self) -> str:
        return str(self.answer(self.request("session/new", cwd=self.kept.name, mcpServers=[]))["sessionId"])

    def request(self, method: str, **params: Any) -> int:
        self.numbers += 1
        frame = {"jsonrpc": "2.0", "id": self.numbers, "method": method, "params": params}
        assert self.agent.stdin
        self.agent.stdin.write(json.dumps(frame).encode() + b"\n")
        self.agent.stdin.flush()
        return self.numbers

    def say(self, method: str, session: str, text: str) -> int:
        return self.request(method, sessionId=session, prompt=[{"type": "text", "text": text}])

    def frame(self) -> dict[str, Any]:
        assert self.agent.stdout
        return dict(json.loads(self.agent.stdout.readline()))

    def answer(self, number: int) -> Any:
        while True:
            frame = self.frame()
            if frame.get("id") == number:
                return frame["result"]

    def cpu_seconds(self) -> float:
        """What the agent has used so far, all threads."""
        fields = Path(f"/proc/{self.agent.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Editor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self.agent.stdin and self.agent.stdout
        self.agent.stdin.close()
        self.agent.stdout.read()
        self.agent.wait(10)
        self.kept.cleanup()


def start_seconds(endpoint: Endpoint) -> float:
    """From the start of the process to the answer to initialize."""

    def once() -> float:
        with Editor(endpoint, "ticks-1-1") as editor:
            return editor.start_seconds

    return statistics.median(once() for _ in range(7))


def steer_seconds(endpoint: Endpoint, steers: int = 200) -> list[float]:
    """From a steer to its `injected`, while a turn streams a piece every 5 ms: sorted."""
    with Editor(endpoint, "ticks-100000-5") as editor:
        session, times = editor.session(), []
        editor.say("session/prompt", session, "Go on.")
        while editor.frame().get("method") != "session/update":
            pass
        for number in range(steers):
            started = time.perf_counter()
            outcome = editor.answer(editor.say("_session/steering", session, f"steer {number}"))
            times.append(time.perf_counter() - started)
            assert outcome == {"outcome": "injected"}
            time.sleep(0.003)
        return sorted(times)


def delta_seconds(endpoint: Endpoint, pieces: int = 20_000) -> float:
    """CPU of the agent's process for one streamed piece, from the model to the client."""
    with Editor(endpoint, f"deltas-{pieces}") as editor:
        session = editor.session()
        before = editor.cpu_seconds()
        editor.answer(editor.say("session/prompt", session, "Go on."))
        return (editor.cpu_seconds() - before) / pieces
