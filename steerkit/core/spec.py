"""Spec, what is asked of a run, and Result, what it gives back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from attrs import field, frozen

from steerkit.core.checks import check_callable, check_kind, check_whole
from steerkit.core.errors import SpecError
from steerkit.core.message import Message, ToolCall
from steerkit.core.model import ModelRef, Usage
from steerkit.core.steer import Steer
from steerkit.core.tool import Tool

STEER_LABEL = "The user sent this while you were working; their earlier request still stands:"

# What every provider takes; Anthropic alone takes longer ones.
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _model_ref(model: str | ModelRef) -> ModelRef:
    return model if isinstance(model, ModelRef) else ModelRef(model)


def _tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    if isinstance(tools, Tool) or not isinstance(tools, Iterable):
        raise SpecError(f"Spec.tools is a list of tools, not {tools!r}.")
    return tuple(tools)


@frozen(eq=False)
class Spec:
    """What is asked of a run. Reusable, also by several runs at once.

    Attributes:
        model: a name, or a `ModelRef` for one with settings.
        pattern: the name of one of the runner's patterns.
        max_steps: the most model requests of one turn. It has no default: nobody's money is spent by accident.
        system: the system prompt.
        tools: what the model may call.
        steer_continuations: how many extra turns late steers may start.
        stream: ask for the answer in pieces, which makes `TextEvent`s.
        steer_label: the line before the text of a steer that arrives while the model works.
        approve: asked before each call of a tool that needs approval; True allows it, and nothing else does. Called in
            the worker thread.

    Raises:
        SpecError: a value with which no run can work.
    """

    model: ModelRef = field(converter=_model_ref)
    pattern: str
    max_steps: int
    system: str | None = None
    tools: tuple[Tool, ...] = field(default=(), converter=_tools)
    steer_continuations: int = 0
    stream: bool = True
    steer_label: str = STEER_LABEL
    approve: Callable[[ToolCall], bool] | None = None

    def __attrs_post_init__(self) -> None:
        try:
            check_kind("Spec.pattern", self.pattern, str, "the name of one of the runner's patterns")
            check_whole("Spec.max_steps", self.max_steps, 1)
            check_kind("Spec.system", self.system, (str, type(None)), "a text or None")
            check_whole("Spec.steer_continuations", self.steer_continuations, 0)
            check_kind("Spec.stream", self.stream, bool, "True or False")
            check_callable("Spec.approve", self.approve, "a function of a ToolCall")
        except ValueError as error:
            raise SpecError(str(error)) from None
        if not isinstance(self.steer_label, str) or not self.steer_label.strip():
            raise SpecError("Spec.steer_label is blank: without a line of its own a steer reads like old history.")
        self._check_tools()

    def _check_tools(self) -> None:
        names = set()
        for tool in self.tools:
            if not isinstance(tool, Tool):
                raise SpecError(f"Spec.tools holds {tool!r}, which is no Tool: decorate the function with @tool.")
            if not isinstance(tool.name, str) or not _TOOL_NAME.fullmatch(tool.name):
                raise SpecError(f"The tool name {tool.name!r} is not 1 to 64 letters, digits, '_' or '-'.")
            if tool.name in names:
                raise SpecError(f"Two tools are named {tool.name!r}, so the model could not choose between them.")
            if tool.needs_approval and self.approve is None:
                raise SpecError(f"The tool {tool.name!r} needs approval, but Spec.approve is not set.")
            names.add(tool.name)


@frozen(eq=False)
class Result:
    """What a run did, over all its turns.

    Attributes:
        output: what the pattern returned; on an error, the text that had arrived.
        messages: the whole conversation with the steers in it; fit to be handed to another run.
        usage: the tokens of every model request, summed.
        steps: how many model requests the pattern made.
        turns: how often the pattern ran: 1, and 1 more for each continuation.
        unapplied_steers: accepted steers that no model read, in order.
    """

    output: str
    messages: tuple[Message, ...]
    usage: Usage
    steps: int
    turns: int
    unapplied_steers: tuple[Steer, ...]
