"""Setup: all that a session needs to run turns. Made once a session, by whoever starts the agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from attrs import frozen

from steerkit.core.message import ToolCall
from steerkit.core.model import Endpoint, ModelClient
from steerkit.core.pattern import Pattern
from steerkit.core.spec import Spec

if TYPE_CHECKING:
    from steerkit.tools.preview import Preview

# Called with the text of a plan before it is carried out; False ends the turn.
PlanMade = Callable[[str], bool]


def _no_preview(_call: ToolCall) -> None:
    return None


@frozen(eq=False)
class Setup:
    """What a session runs.

    Attributes:
        spec: what is asked of every turn. Its `approve` is replaced by the client's answer.
        endpoint: where the model is reached.
        client_for: makes the client; one that is shared by sessions is safe with threads.
        patterns: the patterns on offer; one that makes a plan shows it to the function it is given.
        approve_plan: ask the client before a plan is carried out.
        preview: what a call of a tool is about to do, or None for a tool that it does not know. Called in the worker.
    """

    spec: Spec
    endpoint: Endpoint
    client_for: Callable[[Endpoint], ModelClient]
    patterns: Callable[[PlanMade], Iterable[Pattern]]
    approve_plan: bool = False
    preview: Callable[[ToolCall], Preview | None] = _no_preview


# Called with the session's folder, in a thread of its own: it may import what it likes.
# A ValueError is a sentence for the person at the editor.
MakeSetup = Callable[[str], Setup]
