"""Calls of the workspace tools, as a run makes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steerkit.core.cancel import Cancellation
from steerkit.core.message import Text, ToolCall
from steerkit.core.tool import Outcome, ToolContext, run_tool
from steerkit.tools.rooted_files import WorkspaceError
from steerkit.tools.workspace import workspace

SECRET = "what stands outside"


def outcome(
    root: Path,
    name: str,
    arguments: dict[str, Any],
    cancellation: Cancellation | None = None,
    **limits: Any,
) -> Outcome:
    asked = ToolCall("1", name, json.dumps(arguments))
    flag = (cancellation or Cancellation()).requested
    return run_tool(workspace(root, **limits), asked, lambda _: True, ToolContext(asked, flag, flag))


def text(result: Outcome) -> str:
    return "".join(part.text for part in result.content if isinstance(part, Text))


def do(root: Path, name: str, **arguments: Any) -> str:
    """The answer of a call that does what it was asked."""
    result = outcome(root, name, arguments)
    assert result.error is None, result.error
    return text(result)


def refusal(root: Path, name: str, **arguments: Any) -> str:
    """The sentence with which a call is refused."""
    result = outcome(root, name, arguments)
    assert isinstance(result.error, WorkspaceError), result
    return str(result.error)
