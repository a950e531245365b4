"""What a run tells while it works. Every event says in which turn and step it happened, both counted from 1."""

from __future__ import annotations

from attrs import field, fields, frozen

from steerkit.core.errors import SteerkitError
from steerkit.core.message import Message, ToolCall
from steerkit.core.model import Usage
from steerkit.core.spec import Result
from steerkit.core.steer import Steer


@frozen(eq=False, kw_only=True, repr=False)
class Event:
    """The base of them all. `step` is 0 before the turn's first model request."""

    turn: int = 0
    step: int = 0

    def __repr__(self) -> str:
        # One for all of them: a generated one for each kind is a part of the import that can be felt.
        shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(type(self)))
        return f"{type(self).__name__}({shown})"


@frozen(eq=False, repr=False)
class TurnEvent(Event):
    """The pattern starts. `steers` are those that this turn continues for; none in the first."""

    steers: tuple[Steer, ...] = ()


@frozen(eq=False, repr=False)
class StepEvent(Event):
    """A model request is about to be made."""


@frozen(eq=False, repr=False)
class TextEvent(Event):
    """A piece of the model's text has arrived; only with `Spec.stream`."""

    text: str


@frozen(eq=False, repr=False)
class UsageEvent(Event):
    """The answer to a model request is whole; `usage` is its tokens, if the provider said."""

    usage: Usage | None


@frozen(eq=False, repr=False)
class ToolCallEvent(Event):
    """A tool is about to be run."""

    call: ToolCall


@frozen(eq=False, repr=False)
class ToolResultEvent(Event):
    """A tool has ended. `message` is what the model will read; `error` is set when it did not do what was asked."""

    call: ToolCall
    message: Message
    error: BaseException | None = None


@frozen(eq=False, repr=False)
class SteerEvent(Event):
    """The model began to answer a request that carries this steer for the first time.

    `message` is what carried it, and `index` where it stands among the `size` messages of that request.
    """

    steer: Steer
    message: Message
    request: int
    index: int
    size: int


@frozen(eq=False, repr=False)
class SteerReturnedEvent(Event):
    """The run ends and no model has read this steer: it is on `Result.unapplied_steers`."""

    steer: Steer


@frozen(eq=False, repr=False)
class EndEvent(Event):
    """The last event of a run: its result, and the error that `wait()` raises, if any."""

    result: Result
    error: SteerkitError | None = field(default=None)
