"""One call of one tool, as a run makes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from steerkit import Tool, ToolCall, ToolContext
from steerkit.core.cancel import Cancellation
from steerkit.core.tool import Outcome, run_tool


def run(used: Tool, arguments: Any = None, approve: Callable[[ToolCall], bool] | None = None) -> Outcome:
    """What a call of `used` comes to; the arguments are JSON text, or made so."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    called = ToolCall("c", used.name, written)
    flag = Cancellation().requested
    return run_tool([used], called, approve, ToolContext(called, flag, flag))


def text(outcome: Outcome) -> str:
    """What the model reads."""
    return outcome.message(ToolCall("c", "any")).text
