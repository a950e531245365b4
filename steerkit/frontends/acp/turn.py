"""Turn: one turn of a session while it goes on, what its end means to the client, and what waits behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Literal

from attrs import define, field, frozen

from steerkit.core.errors import AnswerCutOff, ModelError, RunCancelled, SteerkitError, StepLimitReached
from steerkit.core.message import Part
from steerkit.core.model import ModelClient, OnText, Request, Response, Usage
from steerkit.frontends.acp.connection import Reply
from steerkit.frontends.acp.protocol import INTERNAL_ERROR, RpcError
from steerkit.frontends.acp.updates import ToolCalls, Update, chunk, plan_update
from steerkit.run import Run

_UNREAD = "\n\n({} of your messages came too late for this turn to be read: the next one begins with them.)"


@frozen(eq=False)
class Waiting:
    """A prompt or a steer that waits for the running turn to end."""

    kind: Literal["prompt", "steer"]
    reply: Reply
    parts: tuple[Part, ...]
    opted_in: bool = False


@define(eq=False)
class Turn:
    """What a session knows of its running turn. Its fields change under the session's lock.

    Attributes:
        reply: the prompt that owns the turn's result; None for a turn that a steer started.
        run: set before the lock under which the turn was made is released.
        cancelled: by the client; whatever ends the run then, the turn was cancelled.
        over: its end is being told, so nothing else of it may be.
        refused: the last answer was the model's refusal.
        plan_waits: the client is asked to approve the plan.
        plan: the text of the last plan, or "".
        questions: permissions that the client is asked for.
        patience: ends the turn if a cancelled run does not.
    """

    reply: Reply | None
    run: Run = field(init=False)
    cancelled: bool = False
    over: bool = False
    refused: bool = False
    plan_waits: bool = False
    plan: str = ""
    questions: set[Future[Any]] = field(factory=set)
    patience: threading.Timer | None = None

    def cancel(self, abandon: Callable[[], None], patience: float) -> None:
        """Cancel the run, and call `abandon` if it has not ended `patience` seconds later."""
        if self.cancelled:
            return
        self.cancelled = True
        self.run.cancel()
        for question in tuple(self.questions):
            question.cancel()
        self.patience = threading.Timer(patience, abandon)
        self.patience.daemon = True
        self.patience.start()

    def last_updates(self, calls: ToolCalls, held: int, error: SteerkitError | None) -> list[Update]:
        """What the client is told before the answer; `held` messages were not read."""
        updates = calls.give_up()
        if self.plan and not self.cancelled and error is None:
            updates.append(plan_update(self.plan, "completed"))
        if held:
            updates.append(chunk("agent_message_chunk", _UNREAD.format(held)))
        return updates

    def answer(self, usage: Usage | None, error: SteerkitError | None) -> None:
        """Answer the prompt that owns the turn, if there is one."""
        if self.reply is None:
            return
        reason = "cancelled" if self.cancelled else _stop_reason(error, self.refused)
        if reason is None:
            self.reply.error(RpcError(INTERNAL_ERROR, str(error)))
        else:
            counted = {} if usage is None else {"usage": _usage(usage)}
            self.reply.result({"stopReason": reason, **counted})


def _stop_reason(error: SteerkitError | None, refused: bool) -> str | None:
    """None for an error that is no way to stop."""
    if error is None:
        return "refusal" if refused else "end_turn"
    if isinstance(error, AnswerCutOff):
        return "max_tokens"
    if isinstance(error, StepLimitReached):
        return "max_turn_requests"
    if isinstance(error, RunCancelled):
        return "cancelled"
    if isinstance(error, ModelError) and error.kind == "filtered":
        return "refusal"
    return None


def _usage(usage: Usage) -> dict[str, int]:
    counted = {
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
    }
    if usage.cached_input_tokens:
        counted["cachedReadTokens"] = usage.cached_input_tokens
    if usage.cache_write_tokens:
        counted["cachedWriteTokens"] = usage.cache_write_tokens
    return counted


class RefusalNoting:
    """A model client that notes on the turn whether its latest answer was a refusal: no event tells that."""

    def __init__(self, inner: ModelClient, turn: Turn) -> None:
        self._inner = inner
        self._turn = turn

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        response = self._inner.complete(request, on_text)
        self._turn.refused = bool(response.refusal)
        return response
