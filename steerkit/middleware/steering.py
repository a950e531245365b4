"""Steering: every request of a run carries what was said to it, so no pattern has to think of it.

For one request, in this order:

1. take all that waits (it is in flight now), each pinned behind the last message of this request;
2. place every pin, old and new, and ask the client within;
3. the model begins to answer (first text, or the reply): the new ones are applied, and told as SteerEvents;
4. or the request fails before that: they go back to the head of the queue, and their pins are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import evolve

from steerkit.core.event import Event, SteerEvent
from steerkit.core.message import Message, Part, Text
from steerkit.core.model import ModelClient, OnText, Request, Response
from steerkit.core.placement import Pin, place
from steerkit.core.steer import Steer
from steerkit.core.steer_queue import SteerQueue


class Steering:
    """A model client that joins the queue (threads) with placement (messages), for one turn.

    `numbers` counts the requests of the run; `emit` is called in the worker, with no lock held.
    """

    def __init__(
        self,
        inner: ModelClient,
        queue: SteerQueue,
        label: str,
        numbers: Iterator[int],
        emit: Callable[[Event], None],
    ) -> None:
        self._inner = inner
        self._queue = queue
        self._label = label
        self._numbers = numbers
        self._emit = emit
        self.pins: tuple[Pin, ...] = ()  # of applied steers; replaced, never changed, so any thread may read it

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        number = next(self._numbers)
        if not request.carry_steers:
            return self._inner.complete(request, on_text)
        taken = self._queue.take()
        begun = not taken

        def begin() -> None:
            nonlocal begun
            if not begun:
                begun = True
                self._apply(number, taken, new, messages, indexes[-len(new) :])

        def heard(text: str) -> None:
            begin()
            if on_text:
                on_text(text)

        try:
            new = tuple(Pin(steer_message(steer, self._label), request.messages) for steer in taken)
            messages, indexes = place(request.messages, self.pins + new)
            response = self._inner.complete(evolve(request, messages=messages), heard if on_text else None)
        except BaseException:
            if not begun:
                self._queue.put_back(taken)
            raise
        begin()
        return response

    def place_in(self, live: list[Message]) -> tuple[Message, ...]:
        """What `live` holds now, with every applied steer in its place. Any thread."""
        while True:
            pins, messages = self.pins, tuple(live)
            # Pins made between the two reads belong to a longer list: they would move forward in this one.
            if pins is self.pins:
                # A pattern may have appended anything; the run tells it so when it has returned.
                return place([message for message in messages if isinstance(message, Message)], pins)[0]

    def _apply(
        self,
        number: int,
        taken: Sequence[Steer],
        new: tuple[Pin, ...],
        messages: Sequence[Message],
        indexes: Sequence[int],
    ) -> None:
        self.pins += new
        self._queue.settle(taken, number, indexes)
        for steer, pin, index in zip(taken, new, indexes, strict=True):
            self._emit(SteerEvent(steer=steer, message=pin.message, request=number, index=index, size=len(messages)))


def steer_message(steer: Steer, label: str = "") -> Message:
    """The user message that carries a steer; with the label on a line before its text."""
    content: tuple[Part, ...] = steer.content
    if label:
        first = content[0]
        content = (Text(f"{label}\n{first.text}"), *content[1:]) if isinstance(first, Text) else (Text(label), *content)
    return Message("user", content, meta={"steer_id": steer.id, "steer_content": steer.content})
