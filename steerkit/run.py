"""Run: the handle on a run that has started. It owns the worker thread.

How a run ends, whichever way it does (answer, step limit, model error, pattern bug, cancel, BaseException):

1. the queue closes, in one locked step that also takes what is pending: after it `steer()` raises RunFinished;
2. the conversation is completed: applied steers in their places, open tool calls closed by a result that says so;
3. a SteerReturnedEvent for each steer handed back, then the one EndEvent;
4. `done` becomes true and `wait()` returns.

A pattern that returns while something is pending, and has continuations left, does not end: it takes all of that in
the same locked step, and runs again.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from steerkit.core.cancel import Cancellation
from steerkit.core.errors import ModelError, SteerkitError, ending
from steerkit.core.event import EndEvent, Event, SteerReturnedEvent, TurnEvent
from steerkit.core.event_log import EventLog
from steerkit.core.message import Content, Image, Message
from steerkit.core.model import ModelClient
from steerkit.core.pairing import close_open_calls
from steerkit.core.pattern import Pattern, Turn
from steerkit.core.spec import Result, Spec
from steerkit.core.steer import Steer, When, steer_content
from steerkit.core.steer_queue import SteerQueue
from steerkit.middleware.cancelling import Cancelling
from steerkit.middleware.counting import Counting
from steerkit.middleware.steering import Steering, steer_message

OnEvent = Callable[["Run", Event], None]

# A wait without a time-out cannot be interrupted by Ctrl-C on Windows, so `wait` looks up this often (seconds).
_LOOK_UP = 0.2


class Run:
    """One run of a pattern, on a worker thread of its own. `Runner.start` makes it.

    Every method works from any thread; `steer`, `withdraw`, `cancel` and `pending_steers` never wait for a model or a
    tool, and may be called from a tool, an event handler or a signal handler.
    """

    def __init__(
        self, spec: Spec, messages: Sequence[Message], pattern: Pattern, client: ModelClient, on_event: OnEvent | None
    ) -> None:
        self._spec = spec
        self._pattern = pattern
        self._on_event = on_event
        self._queue = SteerQueue()
        self._cancellation = Cancellation()
        self._counting = Counting(client)
        self._request_numbers = itertools.count()
        self._log = EventLog()
        self._ended = threading.Event()
        self._outcome_told = False
        self._faulty_events: set[type[Event]] = set()
        self.event_errors = 0  # how often `on_event` raised

        # What the worker has done so far; it replaces these, and others only read them.
        self._now = self._new_turn(list(messages), number=1)
        self._settled: tuple[Message, ...] | None = None  # the conversation between two turns, and at the end
        self._result: Result | None = None
        self._error: SteerkitError | None = None
        self._traceback: TracebackType | None = None

        context = contextvars.copy_context()
        # Else it would be a daemon when its starter is one, and die in the middle of a tool when the program ends.
        name = f"steerkit-{pattern.name}"
        self._worker = threading.Thread(target=context.run, args=(self._work,), name=name, daemon=False)
        self._queue.worker = self._worker
        self._worker.start()

    # ---- what callers do

    def steer(self, content: Content, *, when: When = "next_request") -> Steer:
        """Say something to the run: it goes out with the next model request, in a user message of its own.

        Args:
            content: a text, an Image, or a list of these.
            when: `idle` waits until the pattern has returned, and starts an extra turn; for that the spec needs
                `steer_continuations`.

        Raises:
            RunFinished: there is no request left to carry it. The error holds the content.
            SteerQueueFull: too many are pending.
            TypeError, ValueError: it is no content, is blank, or can never be carried. Nothing was queued.
        """
        parts = steer_content(content)
        if when not in ("next_request", "idle"):
            raise ValueError(f"steer(when=...) is 'next_request' or 'idle', not {when!r}.")
        if when == "idle" and not self._spec.steer_continuations:
            raise ValueError("steer(when='idle') starts an extra turn, and this run has none: set steer_continuations.")
        if not self._spec.model.images and any(isinstance(part, Image) for part in parts):
            raise ValueError(f"The model {self._spec.model.name!r} takes no images, so this steer was not queued.")
        return self._queue.put(parts, when)

    def withdraw(self, steer: Steer) -> bool:
        """Take a steer back. False if a request carries it already, it has met its fate, or is another run's."""
        if not isinstance(steer, Steer):
            raise TypeError(f"withdraw() takes the receipt that steer() returned, not {steer!r}.")
        return self._queue.withdraw(steer)

    @property
    def pending_steers(self) -> tuple[Steer, ...]:
        """Accepted steers without a fate, in order; empty once the run has ended."""
        return self._queue.pending

    def cancel(self) -> None:
        """End the run. A blocked model request is broken; a tool in flight finishes; no steer is accepted any more."""
        self._queue.refuse("The run was cancelled.")
        self._cancellation.request()
        self._queue.steer_pending.wake()  # for a tool in `ToolContext.wait`

    @property
    def done(self) -> bool:
        """Whether it has ended; then `wait()` returns at once."""
        return self._ended.is_set()

    def wait(self, timeout: float | None = None) -> Result:
        """Wait for the end, at most `timeout` seconds, and return the result. May be called again.

        Ctrl-C in here cancels the run and raises KeyboardInterrupt.

        Raises:
            TimeoutError: the run has not ended yet; it goes on.
            SteerkitError: what ended the run; its `result` holds what was done.
            RuntimeError: called in the run's own worker (a tool, a handler), which would wait for itself.
        """
        self._refuse_worker("wait()")
        try:
            if not self._wait_for_end(timeout):
                raise TimeoutError(f"The run has not ended within {timeout} s; it goes on.")
            self._worker.join()
        except KeyboardInterrupt:
            self.cancel()
            raise
        self._outcome_told = True
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)
        assert self._result is not None
        return self._result

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, applied steers in their places."""
        settled = self._settled
        turn, steering = self._now
        return steering.place_in(turn.messages) if settled is None else settled

    def events(self) -> Iterator[Event]:
        """Every event from the first one on, as they come; ends with the run. Any number of readers, any thread.

        Raises:
            RuntimeError: called in the run's own worker, which would wait for itself.
        """
        self._refuse_worker("events()")
        return self._log.read()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for the end; an exception that leaves the block cancels the run first.

        The run's own error is raised here if `wait()` has not raised it already.
        """
        if kind is not None:
            self.cancel()
            if threading.current_thread() is not self._worker:
                self._wait_for_end(None)
        elif not self._outcome_told:
            self.wait()

    def __repr__(self) -> str:
        return f"<Run of {self._pattern.name} {'ended' if self.done else 'working'}, turn {self._now[0].number}>"

    def _refuse_worker(self, what: str) -> None:
        if threading.current_thread() is self._worker:
            raise RuntimeError(f"{what} in the run's own worker would wait for itself: call it in another thread.")

    def _wait_for_end(self, timeout: float | None) -> bool:
        if timeout is not None:
            return self._ended.wait(timeout)
        while not self._ended.wait(_LOOK_UP):
            pass
        return True

    # ---- what the worker does

    def _work(self) -> None:
        output = ""
        try:
            try:
                output = self._run_turns()
            finally:
                self._queue.close("The run has ended.")
            self._cancellation.raise_if_requested()
        except BaseException as error:
            self._error = ending(error, self._worker, self._pattern.name)
            output = error.partial if isinstance(error, ModelError) else output
        try:
            self._finish(output)
        finally:
            self._log.close()
            self._ended.set()

    def _run_turns(self) -> str:
        steers: list[Steer] = []
        while True:
            turn, steering = self._now
            turn.emit(TurnEvent(steers=tuple(steers)))
            try:
                output = self._pattern.run(turn)
            finally:
                messages = self._settle_messages(turn, steering)
            if not isinstance(output, str):
                raise TypeError(f"run() returned {type(output).__name__}, not the output as a str")
            more = turn.number <= self._spec.steer_continuations
            steers = self._queue.end_turn(more=more, reason="The run has ended.")
            if not steers:
                return output
            self._now = self._new_turn([*messages, *map(steer_message, steers)], turn.number + 1)
            self._settled = None

    def _new_turn(self, messages: list[Message], number: int) -> tuple[Turn, Steering]:
        def tell(event: Event) -> None:
            turn.emit(event)

        client = Cancelling(self._counting)
        steering = Steering(client, self._queue, self._spec.steer_label, self._request_numbers, tell)
        turn = Turn(
            self._spec, messages, steering, number, self._cancellation, self._queue.steer_pending, emit=self._tell
        )
        return turn, steering

    def _settle_messages(self, turn: Turn, steering: Steering) -> tuple[Message, ...]:
        """The conversation after a turn: steers are part of it now, and no tool call is left open."""
        reason = "was cancelled" if self._cancellation.requested else "ended"
        settled = close_open_calls(steering.place_in(turn.messages), f"Not run: the run {reason} before this call.")
        self._settled = settled
        foreign = next((item for item in turn.messages if not isinstance(item, Message)), None)
        if foreign is not None:
            raise TypeError(f"turn.messages holds a {type(foreign).__name__}; it takes Message objects only")
        return settled

    def _finish(self, output: str) -> None:
        turn, _ = self._now
        result = Result(
            output=output,
            messages=self.messages,
            usage=self._counting.usage,
            steps=self._counting.requests,
            turns=turn.number,
            unapplied_steers=self._queue.unapplied,
        )
        if self._error is not None:
            self._error.result = result
            self._traceback = self._error.__traceback__
        self._result = result
        for steer in result.unapplied_steers:
            turn.emit(SteerReturnedEvent(steer=steer))
        turn.emit(EndEvent(result=result, error=self._error))

    def _tell(self, event: Event) -> None:
        kept = self._log.append(event)
        if self._on_event is None or not kept:
            return
        try:
            self._on_event(self, event)
        except BaseException:
            self.event_errors += 1
            if type(event) not in self._faulty_events:
                self._faulty_events.add(type(event))
                import logging  # not at the top: it is a tenth of what `import steerkit` takes

                logging.getLogger(__name__).exception(
                    "on_event failed on a %s; the run goes on. Logged once a kind.", type(event).__name__
                )
