"""Pattern, when to call the model, and Turn, all that a pattern needs for it. Neither knows of steering."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from attrs import define, evolve, field, setters
from attrs.validators import instance_of

from steerkit.core.cancel import Cancellation, Flag
from steerkit.core.errors import AnswerCutOff, ModelError, StepLimitReached
from steerkit.core.event import Event, StepEvent, TextEvent, ToolCallEvent, ToolResultEvent, UsageEvent
from steerkit.core.message import Message, ToolCall
from steerkit.core.model import ModelClient, Request, Response, ToolChoice
from steerkit.core.spec import Spec
from steerkit.core.tool import Tool, ToolContext, run_tool


class Pattern(Protocol):
    """When to call the model. One object serves many runs at once, so it keeps nothing of a run on itself.

    It may have a method `check(spec)` that raises SpecError for a spec it cannot work with.
    """

    @property
    def name(self) -> str: ...

    def run(self, turn: Turn) -> str:
        """Work until there is an answer, and return its text.

        What it appends to `turn.messages` is kept, also when it raises.
        """
        ...


@define(eq=False)
class Turn:
    """One run of a pattern, used by the worker thread alone.

    Attributes:
        spec: what was asked for.
        messages: the conversation so far, a live list: append what shall be in the result.
        model: the client, for requests of which `ask` is not capable.
        number: which turn of the run this is, from 1.
        step: how many model requests `ask` has made in it.
    """

    spec: Spec
    messages: list[Message] = field(validator=instance_of(list), on_setattr=setters.validate)
    model: ModelClient
    number: int
    _cancellation: Cancellation
    _steer_pending: Flag
    _emit: Callable[[Event], None]
    step: int = field(default=0, init=False)

    def ask(
        self,
        *,
        messages: Iterable[Message] | None = None,
        system: str | None = None,
        tools: Iterable[Tool] | None = None,
        tool_choice: ToolChoice = "auto",
        carry_steers: bool = True,
    ) -> Response:
        """Make one model request: one step. What is not given is the turn's own; nothing is appended.

        Args:
            messages: another conversation than `self.messages`.
            system: another system prompt than the spec's.
            tools: other tools than the spec's; `()` for none.
            tool_choice: `none` offers the tools but asks for text.
            carry_steers: False for a request beside the conversation, such as a summary.

        Raises:
            StepLimitReached: `max_steps` requests were made already.
            AnswerCutOff: the answer reached the token limit.
            ModelError: there is no whole answer.
        """
        self._cancellation.raise_if_requested()
        asked = tuple(self.messages if messages is None else messages)
        if messages is not None and not all(isinstance(message, Message) for message in asked):
            raise TypeError("ask(messages=...) takes Message objects only: see user() and assistant()")
        if self.step >= self.spec.max_steps:
            raise StepLimitReached(
                f"The pattern wanted another model request after max_steps={self.spec.max_steps}: "
                "raise Spec.max_steps, or ask for less."
            )
        self.step += 1
        self._emit(StepEvent(turn=self.number, step=self.step))
        request = Request(
            model=self.spec.model,
            messages=asked,
            system=self.spec.system if system is None else system,
            tools=self.spec.tools if tools is None else tuple(tools),
            tool_choice=tool_choice,
            carry_steers=carry_steers,
            cancellation=self._cancellation,
        )
        response = self.model.complete(request, self._heard if self.spec.stream else None)
        self._emit(UsageEvent(usage=response.usage, turn=self.number, step=self.step))
        if response.finish == "length":
            raise AnswerCutOff(response.message.text)
        if response.finish == "content_filter":
            raise ModelError(
                "The provider's content filter stopped the answer: rephrase what was asked.",
                kind="filtered",
                partial=response.message.text,
            )
        return response

    def answer(self, call: ToolCall) -> Message:
        """Run the tool that `call` asks for and return the message that answers it.

        Whatever goes wrong in it is text in that message.
        """
        self._cancellation.raise_if_requested()
        self._emit(ToolCallEvent(call=call, turn=self.number, step=self.step))
        context = ToolContext(call, self._cancellation.requested, self._steer_pending)
        outcome = run_tool(self.spec.tools, call, self.spec.approve, context)
        message = outcome.message(call)
        self._emit(ToolResultEvent(call=call, message=message, error=outcome.error, turn=self.number, step=self.step))
        return message

    def emit(self, event: Event) -> None:
        """Tell an event, with this turn and step on it. A handler that raises ends nothing."""
        self._emit(evolve(event, turn=self.number, step=self.step))

    def _heard(self, text: str) -> None:
        self._emit(TextEvent(text=text, turn=self.number, step=self.step))
