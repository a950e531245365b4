"""A client of the protocol for tests: it keeps every frame in order, and checks each against the official schema."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic
from acp import schema

from tests.conftest import PATIENCE

REPOSITORY = Path(__file__).parents[3]
STEERING = "_session/steering"
OPT_IN = {"_meta": {"steering": {"idleBehavior": "promptRequired"}}}
PROMPT_REQUIRED = {"outcome": "promptRequired", "reason": "noRunningTurn"}

RESULTS: dict[str, type[pydantic.BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/close": schema.CloseSessionResponse,
    "session/delete": schema.DeleteSessionResponse,
    "session/set_mode": schema.SetSessionModeResponse,
}
CALLS: dict[str, type[pydantic.BaseModel]] = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
}


class AcpError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.message = error["message"]
        self.data = error.get("data")


class Pending:
    """A request that the agent has been sent. `position` is the place of its answer among all frames."""

    def __init__(self, client: Client, request_id: Any, method: str) -> None:
        self._client = client
        self.request_id = request_id
        self.method = method
        self.frame: dict[str, Any] | None = None
        self.position = -1

    @property
    def answered(self) -> bool:
        return self.frame is not None

    def wait(self) -> Any:
        """The result, or AcpError."""
        self._client.until(lambda: self.answered, f"the answer to {self.method}")
        assert self.frame is not None
        if "error" in self.frame:
            raise AcpError(self.frame["error"])
        return self.frame["result"]


class Client:
    """Starts an agent process and talks to it. Owns `frames`, `faults` and the answers, under `_changed`."""

    def __init__(self, base_url: str, folder: Path, *arguments: str, deaf: bool = False, without: str = "") -> None:
        env = dict(os.environ) | {
            "STEERKIT_BASE_URL": base_url,
            "STEERKIT_API_KEY": "test-key",
            "STEERKIT_MODEL": "test-model",
            "XDG_DATA_HOME": str(folder),
            "NO_PROXY": "127.0.0.1",
        }
        env.pop(without, None)
        self.stderr_path = folder / "stderr"
        with self.stderr_path.open("ab") as stderr:
            self.process = subprocess.Popen(
                (sys.executable, "-m", "steerkit.frontends.acp", *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                cwd=REPOSITORY,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input, self._output = self.process.stdin, self.process.stdout
        self.reading = threading.Event()  # cleared: read nothing for a while
        self.reading.set()
        self._changed = threading.Condition()
        self._ids = itertools.count(1000)
        self._pending: dict[tuple[type, Any], Pending] = {}
        self._of_session: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.frames: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self._reader = threading.Thread(target=self._read, name="acp-client", daemon=True)
        if deaf:
            self._output.close()
        else:
            self._reader.start()

    # ---- sending

    def frame(self, method: str, params: Any, request_id: Any = None) -> tuple[Pending, dict[str, Any]]:
        request_id = next(self._ids) if request_id is None else request_id
        pending = Pending(self, request_id, method)
        self._pending[type(request_id), request_id] = pending
        return pending, {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}

    def send(self, *frames: Any) -> None:
        """All in one write."""
        self.write("".join(json.dumps(frame) + "\n" for frame in frames).encode())

    def write(self, data: bytes) -> None:
        self._input.write(data)
        self._input.flush()

    def request(self, method: str, params: Any, request_id: Any = None) -> Pending:
        pending, frame = self.frame(method, params, request_id)
        self.send(frame)
        return pending

    def call(self, method: str, params: Any) -> Any:
        return self.request(method, params).wait()

    def error(self, method: str, params: Any) -> AcpError:
        """The error that answers; fails if it is a result."""
        pending = self.request(method, params)
        try:
            result = pending.wait()
        except AcpError as error:
            return error
        raise AssertionError(f"{method} was answered by {result}")

    def initialize(self, **more: Any) -> Any:
        return self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}, **more})

    def new(self, cwd: Path) -> str:
        session_id: str = self.call("session/new", {"cwd": str(cwd), "mcpServers": []})["sessionId"]
        return session_id

    def prompt(self, session_id: str, text: str) -> Pending:
        return self.request("session/prompt", said(session_id, text))

    def steer(self, session_id: str, text: str, **more: Any) -> Pending:
        return self.request(STEERING, {**said(session_id, text), **more})

    def cancel(self, session_id: str) -> None:
        self.send(cancel_frame(session_id))

    def answer(self, asked: dict[str, Any], option: str | None) -> None:
        """Answer a permission; None cancels it."""
        outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
        self.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": outcome}})

    # ---- what came

    def until(self, done: Callable[[], Any], what: str) -> Any:
        """Wait until `done()` is true, and return it."""
        with self._changed:
            value = self._changed.wait_for(lambda: done() or self.process.poll() is not None, PATIENCE) and done()
        assert value, f"timed out: {what}\n{self.stderr_path.read_text()[-2000:]}"
        return value

    def permission(self, session_id: str, number: int = 0) -> dict[str, Any]:
        """The session's permission request of this number, counted from 0."""

        def find() -> Any:
            asked = self.calls_of("session/request_permission", session_id)
            return asked[number] if len(asked) > number else None

        found: dict[str, Any] = self.until(find, "a permission request")
        return found

    def calls_of(self, method: str, session_id: str) -> list[dict[str, Any]]:
        return [frame for frame in tuple(self._of_session[session_id]) if frame["method"] == method]

    def updates(self, session_id: str, kind: str | None = None) -> list[dict[str, Any]]:
        updates = [frame["params"]["update"] for frame in self.calls_of("session/update", session_id)]
        return [update for update in updates if kind in (None, update["sessionUpdate"])]

    def said(self, session_id: str, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"].get("text", "") for update in self.updates(session_id, kind))

    def end(self) -> int:
        """End the input, and return the exit status."""
        self._input.close()
        status = self.process.wait(PATIENCE)
        self._join()
        return status

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self._join()
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def _join(self) -> None:
        self.reading.set()
        if self._reader.ident is not None:
            self._reader.join(PATIENCE)
        self._output.close()

    # ---- the reading thread

    def _read(self) -> None:
        rest = b""
        while data := os.read(self._output.fileno(), 1 << 16):
            self.reading.wait()
            *lines, rest = (rest + data).split(b"\n")
            with self._changed:
                for line in lines:
                    self._take(line)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _take(self, line: bytes) -> None:
        try:
            frame = json.loads(line.decode())
        except ValueError:
            self.faults.append(f"no JSON: {line!r}")
            return
        self.frames.append(frame)
        if "method" in frame:
            check(CALLS.get(frame["method"]), frame["params"], self.faults)
            self._of_session[frame["params"]["sessionId"]].append(frame)
            return
        pending = self._pending.get((type(frame["id"]), frame["id"]))
        if pending is None:
            if frame["id"] is not None or "error" not in frame:
                self.faults.append(f"an answer nobody asked for: {frame}")
            return
        if pending.answered:
            self.faults.append(f"answered twice: {frame}")
        pending.frame, pending.position = frame, len(self.frames) - 1
        if "error" in frame:
            check(schema.Error, frame["error"], self.faults)
        elif pending.method == STEERING:
            self._check_steering(frame["result"])
        else:
            check(RESULTS.get(pending.method), frame["result"], self.faults)

    def _check_steering(self, result: Any) -> None:
        allowed = ({"outcome": "injected"}, {"outcome": "startedNewTurn"}, {"outcome": "failed"}, PROMPT_REQUIRED)
        if result not in allowed:
            self.faults.append(f"no outcome of a steer: {result}")


def check(model: type[pydantic.BaseModel] | None, value: Any, faults: list[str]) -> None:
    """Against the schema, in which a field that it does not know is a fault too."""
    if model is None:
        faults.append(f"a frame that no client knows: {value}")
        return
    try:
        known = model.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True)
    except pydantic.ValidationError as error:
        faults.append(f"{value}: {error}")
        return
    if known != value:
        faults.append(f"the schema knows only {known} of {value}")


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def said(session_id: str, words: str) -> dict[str, Any]:
    return {"sessionId": session_id, "prompt": text(words)}


def cancel_frame(session_id: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session_id}}
