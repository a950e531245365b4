"""Session: one conversation, its turns one after another, and what is said while one runs.

"This steer joins the turn" and "the turn ends" are decided under one lock:

1. a turn runs and its run takes the steer: `injected`; whatever comes of it belongs to that turn;
2. its run takes no more (it ends, or was cancelled): `promptRequired` with the opt-in; else the steer waits behind
   the turn, as it does, with or without the opt-in, when a prompt waits there already;
3. no turn runs: `promptRequired` with the opt-in, else it starts one.

The run's last event, in its worker, ends the turn: record, then under the lock answer the prompt and start what
waits. A cancelled run that does not end within `PATIENCE` (a tool that hangs) is left alone and never heard again.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from attrs import evolve

from steerkit.core.errors import RunFinished, SpecError, SteerkitError
from steerkit.core.event import EndEvent, Event, StepEvent, TurnEvent
from steerkit.core.message import Message, Part
from steerkit.core.model import Usage
from steerkit.core.pairing import close_open_calls
from steerkit.core.steer import Steer
from steerkit.frontends.acp.connection import Connection, Reply, internal_error
from steerkit.frontends.acp.permission import MODES, Questions
from steerkit.frontends.acp.protocol import (
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    RpcError,
    bad_params,
    unknown_session,
)
from steerkit.frontends.acp.setup import Setup
from steerkit.frontends.acp.store import Saved, SessionLog
from steerkit.frontends.acp.turn import RefusalNoting, Turn, Waiting
from steerkit.frontends.acp.updates import SAID, ToolCalls, Update, chunk, event_update
from steerkit.run import Run
from steerkit.runner import Runner

logger = logging.getLogger(__name__)

# Each extra turn needs a message that a person sent while the agent was about to end, so no honest client gets near
# it; it keeps a client that steers in a loop from spending money for ever in one prompt.
CONTINUATIONS = 100

# Seconds from a cancel to its answer when the run does not end: the tool in flight may hang.
PATIENCE = 1.0


class Session:
    """Owns everything about one session, under `_lock`. Methods may be called from any thread and never wait.

    `_log_lock` is held while the file is written, by whoever does that for a turn; never by the reading thread.
    """

    def __init__(
        self, session_id: str, setup: Setup, connection: Connection, log: SessionLog, saved: Saved, notice: str = ""
    ) -> None:
        self.id = session_id
        self.calls = ToolCalls(setup.preview)
        self._setup = setup
        spec = setup.spec
        self._spec = evolve(spec, stream=True, steer_continuations=spec.steer_continuations or CONTINUATIONS)
        self._connection = connection
        self._log = log
        self._log_lock = threading.Lock()
        self._lock = threading.RLock()
        self._messages = saved.messages
        self._held = saved.held  # said to a turn that ended without reading it
        self._notice = notice  # told in the first turn
        self._turn: Turn | None = None
        self._waiting: deque[Waiting] = deque()
        self._closing: list[Callable[[], None]] = []
        self._closed = False
        tools = {tool.name: tool for tool in spec.tools}
        self._questions = Questions(session_id, connection, self._lock, tools, self.calls, self._tell)

    # ---- what the client does

    @property
    def takes_images(self) -> bool:
        return self._spec.model.images

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, with what the running turn has done."""
        with self._lock:
            turn = self._turn
            return self._messages if turn is None else close_open_calls(turn.run.messages, "Not run yet.")

    def prompt(self, reply: Reply, parts: tuple[Part, ...]) -> None:
        """Start a turn, or wait for the one that runs."""
        with self._lock:
            self._refuse_if_closed()
            self._waiting.append(Waiting("prompt", reply, parts))
            self._start_next()

    def steer(self, reply: Reply, parts: tuple[Part, ...], *, opted_in: bool) -> None:
        """Join the running turn, or do what the opt-in says; see the rules above."""
        with self._lock:
            self._refuse_if_closed()
            self._steer(Waiting("steer", reply, parts, opted_in))

    def cancel(self) -> None:
        """End the running turn, and what waits behind it; of no effect otherwise."""
        with self._lock:
            self._cancel("The session was cancelled before the steer could start a turn.")

    def cancel_request(self, request_id: Any) -> bool:
        """Cancel the prompt that was asked with this id; whether it is one of this session's."""
        with self._lock:
            for waiting in self._waiting:
                if waiting.reply.answers(request_id):
                    self._waiting.remove(waiting)
                    waiting.reply.error(RpcError(REQUEST_CANCELLED, "The request was cancelled."))
                    return True
            turn = self._turn
            if turn is None or turn.reply is None or not turn.reply.answers(request_id):
                return False
            self._stop(turn)
            return True

    def close(self, ended: Callable[[], None]) -> None:
        """Cancel and take nothing more. `ended` is called, and must not wait, once the running prompt is answered."""
        with self._lock:
            self._closed = True
            self._cancel("The session is closing.")
            self._closing.append(ended)
            if self._turn is None:
                self._tell_closed()

    @property
    def run(self) -> Run | None:
        """The running turn's run."""
        with self._lock:
            return self._turn.run if self._turn else None

    def set_mode(self, mode: str) -> None:
        """Raises: RpcError, if there is no such mode."""
        if mode not in MODES:
            raise bad_params(f"modeId is one of {', '.join(MODES)}, not {mode!r}.")
        self._questions.mode = mode

    @property
    def mode(self) -> str:
        return self._questions.mode

    # ---- under the lock

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise unknown_session(self.id)

    def _send(self, update: Update) -> None:
        self._connection.notify("session/update", {"sessionId": self.id, "update": update})

    def _steer(self, steer: Waiting) -> None:
        turn = self._turn
        if turn is not None and not (turn.plan_waits and steer.opted_in):
            try:
                turn.run.steer(steer.parts)
            except RunFinished:
                pass
            except Exception:
                logger.exception("A steer could not be queued.")
                steer.reply.result({"outcome": "failed"})
                return
            else:
                steer.reply.result({"outcome": "injected"})
                return
        prompt_waits = not (turn and turn.plan_waits) and any(waiting.kind == "prompt" for waiting in self._waiting)
        if steer.opted_in and not prompt_waits:
            steer.reply.result({"outcome": "promptRequired", "reason": "noRunningTurn"})
            return
        self._waiting.append(steer)
        self._start_next()

    def _start_next(self) -> None:
        """Start the first of what waits, if no turn runs; steers that waited behind it join it."""
        while self._turn is None and self._waiting:
            waiting = self._waiting.popleft()
            try:
                self._start(waiting)
            except SpecError as error:
                waiting.reply.error(RpcError(INVALID_REQUEST, str(error)))
            except Exception as error:
                logger.exception("A turn could not be started.")
                waiting.reply.error(internal_error(error))
            else:
                self._join_steers()

    def _join_steers(self) -> None:
        steers = [waiting for waiting in self._waiting if waiting.kind == "steer"]
        for steer in steers:
            self._waiting.remove(steer)
        for steer in steers:
            self._steer(steer)

    def _start(self, waiting: Waiting) -> None:
        said = (Message("user", waiting.parts, meta={SAID: True}),) if waiting.parts else ()
        if not self._held and not said:
            waiting.reply.result({"stopReason": "end_turn"})
            return
        turn = Turn(waiting.reply if waiting.kind == "prompt" else None)
        turn.run = self._start_run(turn, (*self._messages, *self._held, *said))
        self._turn, self._held = turn, ()
        if self._notice:
            self._send(chunk("agent_message_chunk", self._notice))
            self._notice = ""
        if waiting.kind == "steer":
            waiting.reply.result({"outcome": "startedNewTurn"})

    def _start_run(self, turn: Turn, messages: Sequence[Message]) -> Run:
        setup = self._setup
        # A runner a turn is cheap, and binds what the run calls back to its own turn.
        runner = Runner(
            lambda endpoint: RefusalNoting(setup.client_for(endpoint), turn),
            setup.patterns(partial(self._questions.plan, turn, setup.approve_plan)),
        )
        spec = evolve(self._spec, approve=partial(self._questions.tool, turn))
        return runner.start(spec, messages, setup.endpoint, partial(self._on_event, turn))

    def _cancel(self, why: str) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if waiting.kind == "prompt":
                waiting.reply.result({"stopReason": "cancelled"})
            else:
                waiting.reply.error(RpcError(INVALID_REQUEST, why))
        if self._turn is not None:
            self._stop(self._turn)

    def _stop(self, turn: Turn) -> None:
        if not turn.over:
            turn.cancel(partial(self._abandon, turn), PATIENCE)

    def _tell_closed(self) -> None:
        for ended in self._closing:
            ended()
        self._closing.clear()

    # ---- how a turn goes on and ends: in its worker

    def _on_event(self, turn: Turn, run: Run, event: Event) -> None:
        if isinstance(event, EndEvent):
            result = event.result
            self._end(turn, result.messages, result.unapplied_steers, result.usage, event.error)
            return
        if isinstance(event, (TurnEvent, StepEvent)):
            self._record(turn, run)
        update = event_update(event, self.calls, self._questions.asks_first)
        if update is not None:
            self._tell(turn, update)

    def _tell(self, turn: Turn, update: Update) -> None:
        """Send an update of a turn, unless its end is being told. Waits while the client is far behind."""
        self._connection.wait_for_room()
        with self._lock:
            if not turn.over:
                self._send(update)

    def _record(self, turn: Turn, run: Run) -> None:
        with self._log_lock:
            if not turn.over:
                self._log.record(run.messages)

    def _abandon(self, turn: Turn) -> None:
        """The cancelled run does not end: go on without it. In a timer's thread."""
        messages = close_open_calls(turn.run.messages, "Not finished: the run was cancelled meanwhile.")
        self._end(turn, messages, (), None, None)

    def _end(
        self,
        turn: Turn,
        messages: tuple[Message, ...],
        unread: Sequence[Steer],
        usage: Usage | None,
        error: SteerkitError | None,
    ) -> None:
        with self._lock:
            if turn.over:
                return
            turn.over = True
        if turn.patience is not None:
            turn.patience.cancel()
        # What was not read when the turn was cancelled is dropped: the person stopped what it was said to.
        kept = () if turn.cancelled else unread
        held = tuple(Message("user", steer.content, meta={SAID: True}) for steer in kept)
        with self._log_lock:
            self._log.record(messages, held)
        with self._lock:
            for update in turn.last_updates(self.calls, len(held), error):
                self._send(update)
            self._messages, self._held, self._turn = messages, held, None
            turn.answer(usage, error)
            self._tell_closed()
            self._start_next()
