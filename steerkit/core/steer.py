"""Steer: the receipt for a message said to a run that has started."""

from __future__ import annotations

import threading
from typing import Any, Literal

from attrs import define, field

from steerkit.core.message import Content, Part, Text, parts

SteerState = Literal["pending", "applied", "continued", "withdrawn", "unapplied"]
When = Literal["next_request", "idle"]


def steer_content(content: Content) -> tuple[Part, ...]:
    """`content` as parts, if a steer can carry it.

    Blank is what `str.strip()` calls blank; a zero-width space is not. NUL and every script are taken as they are.

    Raises:
        TypeError: it is not text or images.
        ValueError: it is blank, or has a lone surrogate.
    """
    result = parts(content)
    if all(isinstance(part, Text) and not part.text.strip() for part in result):
        raise ValueError("The steer is blank: providers refuse an empty message, so it was not queued.")
    return result


@define(eq=False)
class Steer:
    """One accepted steer. Read it from any thread; only the run's queue changes it.

    Attributes:
        id: unique among all steers.
        content: what was said, as parts, without a label.
        when: `next_request`, or `idle` for one that waits until the pattern has returned.
        state: `pending` until its one fate is known: `applied` (the model began to answer a request that carried it),
            `continued` (it became the user message of an extra turn), `withdrawn` (by the caller) or `unapplied`
            (handed back on the result).
        request: once applied, which of the run's model requests carried it first, counted from 0.
        index: once applied, its index among the messages of that request.
    """

    id: str
    content: tuple[Part, ...]
    when: When
    _changed: threading.Condition = field(repr=False)
    state: SteerState = "pending"
    request: int | None = None
    index: int | None = None
    _worker: threading.Thread | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process, or as a copy, it is a record: nobody changes it any more.
        return _record, (self.id, self.content, self.when, self.state, self.request, self.index)

    @property
    def text(self) -> str:
        """The text of `content`; images are left out."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    def wait(self, timeout: float | None = None) -> SteerState:
        """Wait until its fate is known, at most `timeout` seconds; returns the state, `pending` on a time-out.

        Raises:
            RuntimeError: called in the run's own worker (a tool, a handler), which would wait for itself.
        """
        if threading.current_thread() is self._worker:
            raise RuntimeError("Steer.wait() in the run's own worker would wait for itself: call it in another thread.")
        with self._changed:
            self._changed.wait_for(lambda: self.state != "pending", timeout)
            return self.state


def _record(
    steer_id: str, content: tuple[Part, ...], when: When, state: SteerState, request: int | None, index: int | None
) -> Steer:
    return Steer(steer_id, content, when, threading.Condition(), state, request, index)
