"""Permission: what the client is asked before a tool runs or a plan is carried out.

The worker of a turn asks and waits; whoever cancels the turn cancels its questions, so it never waits for ever. A
steer is accepted meanwhile and held by the run; only one that opts into `promptRequired` is turned away while a plan
waits.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any

from steerkit.core.message import ToolCall
from steerkit.core.tool import Tool
from steerkit.frontends.acp.connection import Connection, RequestFailed
from steerkit.frontends.acp.turn import Turn
from steerkit.frontends.acp.updates import ToolCalls, Update, plan_update

# What a session does with a call that needs approval; the first one is where every session begins.
MODES = {
    "ask": ("Ask", "Asks before every change and every command."),
    "auto": ("Auto", "Changes files and runs commands without asking."),
    "read": ("Read", "Refuses every change and every command."),
}

ALLOW, ALWAYS, REJECT = "allow", "always", "reject"


def modes_state(current: str) -> dict[str, Any]:
    """The modes as session/new tells them."""
    available = [{"id": mode, "name": name, "description": text} for mode, (name, text) in MODES.items()]
    return {"currentModeId": current, "availableModes": available}


def _tool_question(session_id: str, tool: str, fields: Update) -> dict[str, Any]:
    """The params that ask for one call of a tool."""
    options = [
        {"optionId": ALLOW, "name": "Allow", "kind": "allow_once"},
        {"optionId": ALWAYS, "name": f"Always allow {tool} in this session", "kind": "allow_always"},
        {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
    ]
    return {"sessionId": session_id, "toolCall": fields, "options": options}


def _plan_question(session_id: str, plan: str) -> dict[str, Any]:
    """The params that ask for a plan."""
    tool_call = {
        "toolCallId": f"plan-{uuid.uuid4().hex}",
        "title": "Carry out this plan?",
        "kind": "switch_mode",
        "status": "pending",
        "content": [{"type": "content", "content": {"type": "text", "text": plan}}],
    }
    options = [
        {"optionId": ALLOW, "name": "Carry it out", "kind": "allow_once"},
        {"optionId": REJECT, "name": "Stop here", "kind": "reject_once"},
    ]
    return {"sessionId": session_id, "toolCall": tool_call, "options": options}


def _chosen(answer: Any) -> str | None:
    """The option that the client's answer selects; None when it selects none, or has another shape."""
    outcome = answer.get("outcome") if isinstance(answer, dict) else None
    if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
        return None
    option = outcome.get("optionId")
    return option if isinstance(option, str) else None


class Questions:
    """What the turns of one session ask the client. `mode` is one of MODES.

    Owns `_always`, the tools that need not be asked for again. `lock` is the session's: under it a turn is cancelled,
    so no question can slip in behind its cancel. `tell` sends an update of a turn.
    """

    def __init__(
        self,
        session_id: str,
        connection: Connection,
        lock: threading.RLock,
        tools: Mapping[str, Tool],
        calls: ToolCalls,
        tell: Callable[[Turn, Update], None],
    ) -> None:
        self.mode = next(iter(MODES))
        self._session_id = session_id
        self._connection = connection
        self._lock = lock
        self._tools = tools
        self._calls = calls
        self._tell = tell
        self._always: set[str] = set()

    def asks_first(self, call: ToolCall) -> bool:
        """Whether the client will be asked before this call is run."""
        tool = self._tools.get(call.name)
        return tool is not None and tool.needs_approval and self.mode == "ask" and call.name not in self._always

    def tool(self, turn: Turn, call: ToolCall) -> bool:
        """Whether this call may run. In the turn's worker; waits for the client."""
        if self.mode == "read":
            return False
        if not self.asks_first(call):
            return True
        fields = self._calls.fields(call)
        option = self._ask(turn, _tool_question(self._session_id, call.name, fields))
        if option == ALWAYS:
            self._always.add(call.name)
        allowed = option in (ALLOW, ALWAYS)
        if allowed:
            started = {"toolCallId": fields["toolCallId"], "status": "in_progress"}
            self._tell(turn, {"sessionUpdate": "tool_call_update", **started})
        return allowed

    def plan(self, turn: Turn, approve: bool, text: str) -> bool:
        """Show a plan, and with `approve` ask whether it may be carried out. In the turn's worker."""
        turn.plan = text
        self._tell(turn, plan_update(text, "pending"))
        return not approve or self._ask(turn, _plan_question(self._session_id, text), plan=True) == ALLOW

    def _ask(self, turn: Turn, params: dict[str, Any], *, plan: bool = False) -> str | None:
        with self._lock:
            if turn.cancelled:
                return None
            turn.plan_waits = plan
            question = self._connection.request("session/request_permission", params)
            turn.questions.add(question)

        def settled(_: Future[Any]) -> None:
            # In the thread that settles it: a steer that is read behind the answer finds the plan waiting no more.
            turn.plan_waits = False

        question.add_done_callback(settled)
        try:
            return _chosen(question.result())
        except (CancelledError, RequestFailed):
            return None
        finally:
            with self._lock:
                turn.questions.discard(question)
