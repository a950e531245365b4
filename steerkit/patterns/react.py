"""ReAct: reason and act, in turns."""

from __future__ import annotations

from steerkit.core.pattern import Turn


class ReAct:
    """Ask; run the tools that the model calls; ask again; the answer without a call is the output.

    (Yao et al. 2022, "ReAct: Synergizing Reasoning and Acting in Language Models".)
    """

    name = "react"

    def run(self, turn: Turn) -> str:
        while True:
            reply = turn.ask().message
            turn.messages.append(reply)
            if not reply.tool_calls:
                return reply.text
            for call in reply.tool_calls:
                turn.messages.append(turn.answer(call))
