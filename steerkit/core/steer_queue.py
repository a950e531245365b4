"""SteerQueue: what callers said and no request has carried yet.

    put() ──► waiting ──take()──► in flight ──settle()──► applied
               │  ▲                   │
               │  └────put_back()─────┘           the request failed before the model began to answer
               ├──withdraw()───────────► withdrawn
               ├──end_turn(more=True)──► continued
               └──end_turn(more=False), close()──► unapplied, and the queue takes no more

`take` passes over the steers that wait for `idle`. Each arrow is one locked step, so a steer stands in one place at a
time and meets one fate. Nothing in here calls anybody else's code, and nothing in here waits.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterable, Sequence
from typing import Literal

from steerkit.core.cancel import Flag
from steerkit.core.errors import RunFinished, SteerQueueFull
from steerkit.core.message import Part
from steerkit.core.steer import Steer, SteerState, When

Stage = Literal["next_request", "idle", "in_flight"]


class SteerQueue:
    """The one lock between callers and the worker; knows nothing of messages or models.

    Owns `_pending` (every steer without a fate, in the order of acceptance, and where it stands), `_closed`,
    `unapplied` and the state of every Steer that it made, all under `_changed`. The lock is reentrant, and `put` and
    `withdraw` change `_pending` in one step of the interpreter each: a signal handler may call them while its thread
    is in here.
    """

    def __init__(self, limit: int = 1000) -> None:
        self._limit = limit
        self._changed = threading.Condition(threading.RLock())
        self._pending: dict[Steer, Stage] = {}
        self._closed: str | None = None
        self.unapplied: tuple[Steer, ...] = ()  # handed back when it closed, in order
        # One random name a queue, one number a steer: unique, and cheaper than a random name for each.
        self._name = os.urandom(6).hex()
        self._numbers = itertools.count()
        self.steer_pending = Flag(self._changed, lambda: "next_request" in self._pending.values())
        self.worker: threading.Thread | None = None

    def put(self, content: tuple[Part, ...], when: When = "next_request") -> Steer:
        """Accept a steer.

        Raises:
            RunFinished: the queue is closed.
            SteerQueueFull: `limit` steers are pending; this one was not queued and none was dropped.
        """
        with self._changed:
            if self._closed is not None:
                raise RunFinished(f"{self._closed} This steer was not queued.", content)
            if len(self._pending) >= self._limit:
                raise SteerQueueFull(
                    f"{self._limit} steers are pending already, so this one was not queued: "
                    "wait until a request has carried them, or withdraw some.",
                    content,
                )
            steer = Steer(f"{self._name}-{next(self._numbers)}", content, when, self._changed, worker=self.worker)
            self._pending[steer] = when
            self._changed.notify_all()
            return steer

    def withdraw(self, steer: Steer) -> bool:
        """Take a waiting steer back. False if it is in flight, has met its fate, or is another run's."""
        with self._changed:
            if self._pending.get(steer, "in_flight") == "in_flight":
                return False
            self._leave([steer], "withdrawn")
            return True

    @property
    def pending(self) -> tuple[Steer, ...]:
        """All without a fate, in the order of acceptance; those in flight too."""
        with self._changed:
            return tuple(self._pending)

    def take(self) -> list[Steer]:
        """All that wait for a request, in order; they are in flight until `settle` or `put_back`."""
        with self._changed:
            taken = [steer for steer, stage in self._pending.items() if stage == "next_request"]
            self._move(taken, "in_flight")
            return taken

    def settle(self, taken: Sequence[Steer], request: int, indexes: Iterable[int]) -> None:
        """The model began to answer the request that carried `taken` at `indexes`: they are applied."""
        with self._changed:
            for steer, index in zip(taken, indexes, strict=True):
                if steer.state == "pending":
                    steer.request, steer.index = request, index
            self._leave(taken, "applied")

    def put_back(self, taken: Sequence[Steer]) -> None:
        """The request failed before the model began to answer: `taken` waits again, ahead of what came later."""
        with self._changed:
            self._move(taken, "next_request")
            self._changed.notify_all()

    def end_turn(self, *, more: bool, reason: str) -> list[Steer]:
        """The pattern has returned: the steers for an extra turn, in order.

        With `more`, and something pending, the queue stays open and all of it is `continued`. Otherwise, and once
        `refuse` was called, there are none, and the queue is closed for `reason`.
        """
        with self._changed:
            continued = list(self._pending) if more and self._closed is None else []
            self._leave(continued, "continued")
            if not continued:
                self.close(reason)
            return continued

    def refuse(self, reason: str) -> None:
        """Accept nothing more; what is pending stays until `end_turn` or `close`. The first reason stands."""
        with self._changed:
            if self._closed is None:
                self._closed = reason

    def close(self, reason: str) -> None:
        """Accept nothing more (`reason` says why, as a sentence); what is pending becomes `unapplied`."""
        with self._changed:
            self.refuse(reason)
            self.unapplied += tuple(self._pending)
            self._leave(list(self._pending), "unapplied")

    def _move(self, steers: Iterable[Steer], stage: Stage) -> None:
        for steer in steers:
            if steer in self._pending:
                self._pending[steer] = stage

    def _leave(self, steers: Iterable[Steer], state: SteerState) -> None:
        for steer in steers:
            if self._pending.pop(steer, None) is not None:
                steer.state = state
        self._changed.notify_all()
