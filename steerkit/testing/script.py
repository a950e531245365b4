"""Script: which reply comes next, and how an answer is played: in pieces, held, or cut."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from attrs import evolve, frozen

from steerkit.core.cancel import Cancellation
from steerkit.core.message import ToolCall
from steerkit.testing.reply import Answer, Reply

Asked = TypeVar("Asked")
Step = Reply | BaseException | Callable[[Asked], Reply]

# Characters of one piece. Arguments are cut where no JSON token ends, as providers do.
_TEXT_PIECE = 4
_ARGUMENTS_PIECE = 3


class ScriptOver(AssertionError):
    """The model was asked once more than the script has replies."""


class ConnectionCut(Exception):
    """The script drops the connection here."""


class Script(Generic[Asked]):
    """Gives out replies in order, to any number of threads. A reply that was given out does not come back.

    Owns `_steps`, `_taken` and `_calls`, under `_lock`; nobody's function is called under it.
    """

    def __init__(self, script: Iterable[Step[Asked]] | Callable[[Asked], Reply]) -> None:
        self._lock = threading.Lock()
        self._function = script if callable(script) else None
        self._steps: list[Step[Asked]] = [] if callable(script) else _checked_steps(script)
        self._taken = 0
        self._calls = 0

    def take(self, asked: Asked) -> Reply:
        """The reply to `asked`. A step that is an exception is raised.

        Raises:
            ScriptOver: there is none left.
        """
        step = self._function or self._next_step()
        if isinstance(step, BaseException):
            raise step
        reply = step if isinstance(step, Reply) else step(asked)
        if not isinstance(reply, Reply):
            raise TypeError(f"The script's function returned {reply!r}, which is no reply: see say() and call().")
        return self._with_ids(reply) if isinstance(reply, Answer) else reply

    def _next_step(self) -> Step[Asked]:
        with self._lock:
            if self._taken == len(self._steps):
                raise ScriptOver(
                    f"The script is over: it has {self._taken} replies, and the model was asked once more."
                )
            self._taken += 1
            return self._steps[self._taken - 1]

    def _with_ids(self, answer: Answer) -> Answer:
        if all(call.id for call in answer.calls):
            return answer
        with self._lock:
            return evolve(answer, calls=tuple(self._with_id(call) for call in answer.calls))

    def _with_id(self, call: ToolCall) -> ToolCall:
        if call.id:
            return call
        self._calls += 1
        return evolve(call, id=f"call_{self._calls}")


def _checked_steps(script: Iterable[Step[Asked]]) -> list[Step[Asked]]:
    if isinstance(script, (str, Reply)):
        raise TypeError(f"A script is a list of replies or a function, such as [say('Done.')], not {script!r}.")
    steps = list(script)
    for number, step in enumerate(steps):
        if not isinstance(step, (Reply, BaseException)) and not callable(step):
            raise TypeError(f"script[{number}] is {step!r}, which is no reply: see say() and call().")
    return steps


@frozen
class Piece:
    """A piece of an answer: of its text, or of the arguments of `calls[call]`."""

    text: str
    call: int | None = None


def wait_for(gate: threading.Event | None, cancellation: Cancellation) -> None:
    """Wait until `gate` is set; no gate is an open one.

    Raises:
        Cancelled: `cancellation` was requested before, or meanwhile.
    """
    if gate is not None and not gate.is_set():
        # Two things end this wait, and an Event tells of one. Its condition is private, but the same in every Python
        # from 3.10 on; the ways around it are to look up again and again, or a thread that outlives the wait.
        changed: threading.Condition = gate._cond  # type: ignore[attr-defined]

        def wake() -> None:
            with changed:
                changed.notify_all()

        with cancellation.calling(wake), changed:
            changed.wait_for(lambda: gate.is_set() or cancellation.requested.is_set())
    cancellation.raise_if_requested()


def pieces(answer: Answer, cancellation: Cancellation) -> Iterator[Piece]:
    """The pieces of `answer`. It is paused and cut between two of them, when the next one is asked for.

    Raises:
        ConnectionCut: the script drops the connection here.
        Cancelled: `cancellation` was requested while the answer paused.
    """
    marks: list[tuple[int, threading.Event | None]] = []
    if answer.pause is not None:
        marks.append((answer.pause[1], answer.pause[0]))
    if answer.cut_after is not None:
        marks.append((answer.cut_after, None))
    marks.sort(key=lambda mark: mark[0])

    def act(gate: threading.Event | None) -> None:
        if gate is None:
            raise ConnectionCut
        wait_for(gate, cancellation)

    sent = 0
    for piece in _slices(answer):
        text = piece.text
        while marks and marks[0][0] < sent + len(text):
            at, gate = marks.pop(0)
            if at > sent:
                yield Piece(text[: at - sent], piece.call)
                text, sent = text[at - sent :], at
            act(gate)
        yield Piece(text, piece.call)
        sent += len(text)
    for _, gate in marks:
        act(gate)


def _slices(answer: Answer) -> Iterator[Piece]:
    for start in range(0, len(answer.text), _TEXT_PIECE):
        yield Piece(answer.text[start : start + _TEXT_PIECE])
    for number, call in enumerate(answer.calls):
        # A call without arguments has one empty piece: it is announced all the same.
        for start in range(0, max(len(call.arguments), 1), _ARGUMENTS_PIECE):
            yield Piece(call.arguments[start : start + _ARGUMENTS_PIECE], number)
