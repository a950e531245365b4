"""ReWOO: reason without observation. All tool calls are planned in one request, run, and solved from in a second."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from steerkit.core.errors import PlanError, SpecError
from steerkit.core.message import ToolCall, tool_result
from steerkit.core.pattern import Turn
from steerkit.core.spec import Spec
from steerkit.core.tool import Tool

PLANNING = """\
Plan every tool call that the task needs, then submit them all with one call of submit_plan. The tools for the plan:

{tools}

Steps run in order. In the arguments of a later step, #E1 stands for the result of step 1, #E2 for that of step 2."""

SOLVING = "These are the results. Answer the user's task from them."

SUBMIT_PLAN = Tool(
    "submit_plan",
    "Submit the whole plan: the tool calls in the order in which they are to run.",
    {
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string", "description": "The name of the tool."},
                        "arguments": {"type": "object", "description": "Its arguments; #E1 is the result of step 1."},
                    },
                    "required": ["tool", "arguments"],
                },
            }
        },
        "required": ["steps"],
    },
    function=lambda steps: steps,
)

_REFERENCE = re.compile(r"#E[0-9]+")
_NO_STEPS = "The model's plan is no list of steps with a tool and arguments, so no tool was run"


@frozen
class PlanStep:
    tool: str
    arguments: dict[str, Any]


class ReWOO:
    """Two model requests, however many tools: one that plans them all, and one that solves from their results.

    (Xu et al. 2023, "ReWOO: Decoupling Reasoning from Observations for Efficient Augmented Language Models".)
    """

    name = "rewoo"

    def check(self, spec: Spec) -> None:
        """Raises: SpecError, when there is no tool to plan with, or one is named like the pattern's own."""
        if not spec.tools:
            raise SpecError("The pattern 'rewoo' plans tool calls, and Spec.tools is empty: add tools, or use 'react'.")
        if any(tool.name == SUBMIT_PLAN.name for tool in spec.tools):
            raise SpecError("The pattern 'rewoo' has a tool named 'submit_plan' of its own: rename yours.")

    def run(self, turn: Turn) -> str:
        """Raises: PlanError, when there is no plan, an empty one, or one of more steps than `max_steps`."""
        listed = "\n".join(
            f"{tool.name}: {tool.description}\n  arguments: {json.dumps(tool.parameters)}" for tool in turn.spec.tools
        )
        planning = PLANNING.format(tools=listed)
        system = f"{turn.spec.system}\n\n{planning}" if turn.spec.system else planning

        reply = turn.ask(system=system, tools=[SUBMIT_PLAN]).message
        if len(reply.tool_calls) != 1 or reply.tool_calls[0].name != SUBMIT_PLAN.name:
            raise PlanError("The model did not submit a plan with one call of submit_plan, so no tool was run.")
        turn.messages.append(reply)
        submitted = reply.tool_calls[0]

        results: dict[str, str] = {}
        for number, step in enumerate(read_plan(submitted, turn.spec.max_steps), 1):
            arguments = json.dumps(fill_in(step.arguments, results), ensure_ascii=False)
            # A call of the pattern's own: the model sees its result inside that of submit_plan.
            call = ToolCall(f"{submitted.id}-E{number}", step.tool, arguments)
            results[f"#E{number}"] = turn.answer(call).text
        evidence = "\n\n".join(f"{reference}: {result}" for reference, result in results.items())
        turn.messages.append(tool_result(submitted.id, f"{SOLVING}\n\n{evidence}"))

        # The same system prompt and tools again, so that what the provider bound or cached for them still holds.
        answer = turn.ask(system=system, tools=[SUBMIT_PLAN], tool_choice="none").message
        turn.messages.append(answer)
        return answer.text


def read_plan(submitted: ToolCall, most: int) -> list[PlanStep]:
    """The steps in the call of submit_plan.

    Raises:
        PlanError: they are not of that form, there are none, or more than `most`.
    """
    try:
        planned = submitted.parse()["steps"]
        steps = [PlanStep(step["tool"], step["arguments"]) for step in planned]
    except (ValueError, KeyError, TypeError) as error:
        raise PlanError(f"{_NO_STEPS}: {error}") from error
    if not isinstance(planned, list) or not all(map(_is_well_formed, steps)):
        raise PlanError(f"{_NO_STEPS}.")
    if not steps:
        raise PlanError("The model's plan is empty, so no tool was run.")
    if len(steps) > most:
        raise PlanError(f"The model's plan has {len(steps)} steps and max_steps is {most}, so no tool was run.")
    return steps


def _is_well_formed(step: PlanStep) -> bool:
    return isinstance(step.tool, str) and isinstance(step.arguments, dict)


def fill_in(value: Any, results: Mapping[str, str]) -> Any:
    """`value` with every `#E1` in its texts replaced by `results["#E1"]`. Text only: nothing is ever evaluated.

    A step that has not run has no result; what stands in its place says so, for the tool and the model to read.
    """
    if isinstance(value, str):
        return _REFERENCE.sub(
            lambda found: results.get(found[0], f"({found[0]} has not run, so it has no result)"), value
        )
    if isinstance(value, list):
        return [fill_in(item, results) for item in value]
    if isinstance(value, dict):
        return {key: fill_in(item, results) for key, item in value.items()}
    return value
