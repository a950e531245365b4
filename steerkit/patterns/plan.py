"""Plan-then-act: a plan first, perhaps approved, then the work."""

from __future__ import annotations

from collections.abc import Callable

from steerkit.core.errors import PlanError
from steerkit.core.message import assistant, user
from steerkit.core.pattern import Turn
from steerkit.patterns.react import ReAct

PLANNING = "First write a short numbered plan for the user's task. Do not carry it out yet."
ACTING = "Carry out this plan now. Change it where what you find calls for that."


class Plan:
    """One planning request without tools; then act on the plan with tools, as ReAct does.

    Args:
        approve: called in the worker with the text of the plan, before anything is done. Anything but True ends the
            run with the plan as its output.
    """

    name = "plan"

    def __init__(self, approve: Callable[[str], bool] | None = None) -> None:
        self._approve = approve
        self._act = ReAct()

    def run(self, turn: Turn) -> str:
        """Raises: PlanError, when the model calls a tool where the plan should be, or writes nothing."""
        system = f"{turn.spec.system}\n\n{PLANNING}" if turn.spec.system else PLANNING
        reply = turn.ask(system=system, tools=()).message
        if reply.tool_calls:
            called = ", ".join(call.name for call in reply.tool_calls)
            raise PlanError(
                f"The model called {called} in the planning request, which offers no tools; nothing was run."
            )
        if not reply.text.strip():
            raise PlanError("The model wrote no plan, so there is nothing to act on.")
        # Its text alone: some providers bind their reasoning to the tools and system prompt of the request it was
        # made for, and those of the next request are others.
        turn.messages.append(assistant(reply.text))
        if self._approve is not None and self._approve(reply.text) is not True:
            return reply.text
        turn.messages.append(user(ACTING))
        return self._act.run(turn)
