"""Reflection: answer, criticise the answer, rewrite it."""

from __future__ import annotations

from attrs import frozen

from steerkit.core.errors import CritiqueError, SpecError
from steerkit.core.message import Message, ToolCall, tool_result, user
from steerkit.core.pattern import Turn
from steerkit.core.spec import Spec
from steerkit.core.tool import Tool
from steerkit.patterns.react import ReAct

CRITICISING = "Now criticise your answer as a strict reviewer would, and submit it with one call of submit_critique."
REWRITING = "Noted. Write the whole answer again, with this mended."
SATISFIED = "Noted. The answer stands."

SUBMIT_CRITIQUE = Tool(
    "submit_critique",
    "Submit what is wrong with the answer, or that it is good.",
    {
        "type": "object",
        "properties": {
            "good": {"type": "boolean", "description": "Whether the answer can stand as it is."},
            "critique": {"type": "string", "description": "What is wrong with it and how to mend it."},
        },
        "required": ["good", "critique"],
    },
    function=lambda **critique: critique,
)


@frozen
class Critique:
    good: bool
    text: str


class Reflection:
    """Answer as ReAct does; then, at most `cycles` times, ask for a critique and, unless it is good, for a rewrite.

    (Shinn et al. 2023, "Reflexion"; Madaan et al. 2023, "Self-Refine".)
    """

    name = "reflection"

    def __init__(self, cycles: int = 1) -> None:
        if isinstance(cycles, bool) or not isinstance(cycles, int) or cycles < 1:
            raise ValueError(f"Reflection(cycles) is a whole number, 1 or more, not {cycles!r}.")
        self._cycles = cycles
        self._answer = ReAct()

    def check(self, spec: Spec) -> None:
        """Raises: SpecError, when a tool is named like the pattern's own."""
        if any(tool.name == SUBMIT_CRITIQUE.name for tool in spec.tools):
            raise SpecError("The pattern 'reflection' has a tool named 'submit_critique' of its own: rename yours.")

    def run(self, turn: Turn) -> str:
        """Raises: CritiqueError, when the model submits no critique; the answer so far is in the messages."""
        answer = self._answer.run(turn)
        for _ in range(self._cycles):
            turn.messages.append(user(CRITICISING))
            reply = turn.ask(tools=[SUBMIT_CRITIQUE]).message
            critique = read_critique(reply)
            turn.messages.append(reply)
            verdict = SATISFIED if critique.good else REWRITING
            turn.messages.append(tool_result(reply.tool_calls[0].id, verdict))
            if critique.good:
                break
            rewritten = turn.ask(tools=[SUBMIT_CRITIQUE], tool_choice="none").message
            turn.messages.append(rewritten)
            answer = rewritten.text
        return answer


def read_critique(reply: Message) -> Critique:
    """The critique in the model's call of submit_critique.

    Raises:
        CritiqueError: there is none, or it does not say whether the answer is good.
    """
    calls: tuple[ToolCall, ...] = reply.tool_calls
    if len(calls) != 1 or calls[0].name != SUBMIT_CRITIQUE.name:
        raise CritiqueError("The model did not submit a critique with one call of submit_critique.")
    try:
        arguments = calls[0].parse()
        critique = Critique(arguments["good"], arguments["critique"])
    except (ValueError, KeyError) as error:
        raise CritiqueError(f"The model's critique says not whether the answer is good, and why: {error}") from error
    if not isinstance(critique.good, bool) or not isinstance(critique.text, str):
        raise CritiqueError("The model's critique is not a boolean 'good' and a text 'critique'.")
    return critique
