"""What is said to a run at a forced moment, and how it looks in a request."""

from __future__ import annotations

from steerkit import Event, Message, Run, Turn
from steerkit.core.spec import STEER_LABEL
from steerkit.run import OnEvent
from steerkit.testing import ScriptedModel
from tests.conftest import ask_until_answered


def steering_at(kind: type[Event], *texts: str, number: int = 1) -> OnEvent:
    """An on_event that says `texts` to the run, in the worker, at the event of this kind with this number."""
    seen = 0

    def on_event(run: Run, event: Event) -> None:
        nonlocal seen
        if isinstance(event, kind):
            seen += 1
            if seen == number:
                for text in texts:
                    run.steer(text)

    return on_event


def label(text: str) -> str:
    """The text of the message that carries a steer."""
    return f"{STEER_LABEL}\n{text}"


def asked(model: ScriptedModel, number: int) -> tuple[Message, ...]:
    """The messages of one request, counted from 0."""
    return model.requests[number].messages


def answer_after_failures(turn: Turn) -> str:
    """A pattern of one request, which is made again when it fails."""
    return ask_until_answered(turn).message.text
