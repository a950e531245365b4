"""What many tests need: a small start(), a pattern made of a function, and the check that no thread is left."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import settings

from steerkit import (
    EndEvent,
    Message,
    ModelError,
    Pattern,
    Response,
    Result,
    Run,
    RunFinished,
    Runner,
    Spec,
    Steer,
    SteerEvent,
    SteerkitError,
    SteerReturnedEvent,
    Turn,
    TurnEvent,
    user,
)
from steerkit.core.cancel import Cancellation
from steerkit.core.model import ModelClient, ModelRef, OnText, Request
from steerkit.core.pairing import check_pairs
from steerkit.patterns import ReAct
from steerkit.run import OnEvent
from steerkit.testing import Reply, ScriptedModel

PATIENCE = 20.0  # seconds after which a wait in a test has failed

# The machines that run the tests are shared: a slow example is no fault. And what CI says of a change shall be about
# that change: it tries the same examples each time; everybody else tries new ones.
settings.register_profile("steerkit", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("steerkit")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """A run that a test forgot, or that cannot end, fails the test that started it."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before and thread.name.startswith("steerkit-")]
    for thread in left:
        thread.join(PATIENCE)
    stuck = [thread.name for thread in left if thread.is_alive()]
    assert not stuck, f"these threads were left: {stuck}"


class FunctionPattern:
    """A pattern made of a function."""

    name = "function"

    def __init__(self, work: Callable[[Turn], Any]) -> None:
        self._work = work

    def run(self, turn: Turn) -> str:
        output: str = self._work(turn)
        return output


def start(
    client: ScriptedModel,
    work: Callable[[Turn], Any] | Pattern | None = None,
    *,
    messages: Sequence[Message] | None = None,
    on_event: OnEvent | None = None,
    max_steps: int = 20,
    **settings: Any,
) -> Run:
    """Start a run of `work`, a pattern or the function of one; ReAct if nothing is given."""
    pattern: Any = ReAct() if work is None else work if hasattr(work, "run") else FunctionPattern(work)
    spec = Spec(**{"model": "scripted", "pattern": pattern.name, "max_steps": max_steps, **settings})
    return Runner(client, [pattern]).start(spec, messages or [user("Q")], client.endpoint, on_event)


def accounted(run: Run, steers: Sequence[Steer], client: ScriptedModel) -> Result:
    """The result of a run that has ended; every steer in `steers` met one fate, and all that tells of it agrees."""
    try:
        result = run.wait(PATIENCE)
        error = None
    except SteerkitError as raised:
        assert raised.result is not None
        result, error = raised.result, raised
    events = list(run.events())
    assert [type(event) for event in events].count(EndEvent) == 1
    end = events[-1]
    assert isinstance(end, EndEvent)
    assert (end.result, end.error) == (result, error)
    assert run.pending_steers == ()
    assert run.messages == result.messages
    check_pairs(result.messages)

    applied = [event for event in events if isinstance(event, SteerEvent)]
    told = {
        "applied": [event.steer for event in applied],
        "continued": [steer for event in events if isinstance(event, TurnEvent) for steer in event.steers],
        "unapplied": [event.steer for event in events if isinstance(event, SteerReturnedEvent)],
    }
    for state, those in told.items():
        assert len(set(those)) == len(those), f"told twice: {state}"
        assert set(those) == {steer for steer in steers if steer.state == state}, state
    assert tuple(told["unapplied"]) == result.unapplied_steers
    assert {steer.state for steer in steers} <= {*told, "withdrawn"}

    kept = [message.meta["steer_id"] for message in result.messages if "steer_id" in message.meta]
    assert len(set(kept)) == len(kept)
    assert set(kept) == {steer.id for steer in steers if steer.state in ("applied", "continued")}
    for event in applied:
        assert client.requests[event.request].messages[event.index] is event.message
        assert (event.steer.request, event.steer.index) == (event.request, event.index)
        assert len(client.requests[event.request].messages) == event.size

    with pytest.raises(RunFinished) as refused:
        run.steer("late")
    assert refused.value.text == "late"
    return result


class Recorder:
    """A model client that keeps every request; `answer` makes the response, or raises."""

    def __init__(self, answer: Callable[[Request, OnText | None], Response]) -> None:
        self.requests: list[Request] = []
        self._answer = answer

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        self.requests.append(request)
        return self._answer(request, on_text)


def request_for(messages: Iterable[Message], cancellation: Cancellation | None = None, **options: Any) -> Request:
    return Request(ModelRef("m"), tuple(messages), cancellation=cancellation or Cancellation(), **options)


def ask(client: ModelClient, messages: Iterable[Message]) -> Response:
    return client.complete(request_for(messages))


def ask_until_answered(turn: Turn, attempts: int = 20) -> Response:
    """What a pattern does that tries again when a request fails."""
    for _ in range(attempts - 1):
        try:
            return turn.ask()
        except ModelError:
            continue
    return turn.ask()


def in_thread(work: Callable[[], object]) -> None:
    """Do it in another thread, and wait for it; what it raises is raised here."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=guarded, name="steerkit-test", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "a thread is stuck"
    if raised:
        raise raised[0]


class Held:
    """A step of a script: `asked` tells when the model is asked, and it answers when `go` is set."""

    def __init__(self, reply: Reply) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        self._reply = reply.after(self.go)

    def __call__(self, _: Request) -> Reply:
        self.asked.set()
        return self._reply

    def wait(self) -> None:
        assert self.asked.wait(PATIENCE), "the model was not asked"


class ToldCondition(threading.Condition):
    """A Condition that tells when a thread waits for it. Once it is taken after that, the thread is asleep."""

    def __init__(self) -> None:
        super().__init__(threading.RLock())
        self.waiting = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.waiting.set()
        return super().wait(PATIENCE if timeout is None else timeout)

    def when_waited_for(self, act: Callable[[], object]) -> None:
        assert self.waiting.wait(PATIENCE)
        with self:
            pass
        act()


def woken(changed: ToldCondition, wait: Callable[[], object], act: Callable[[], object]) -> bool:
    """Whether a thread that waits is woken by `act`, and not by its time-out."""
    waiter = threading.Thread(target=wait)
    waiter.start()
    changed.when_waited_for(act)
    waiter.join(PATIENCE / 2)
    in_time = not waiter.is_alive()
    waiter.join()
    return in_time


class LyingLock:
    """The lock of a Condition, which calls `when_taken` once, in the thread that has just taken it.

    Around a queue's lock it forces what a signal handler does: to come in while its own thread is inside. `before`
    and `after` force another thread's step just before the lock is taken, and just after it was let go.
    """

    def __init__(self, condition: threading.Condition) -> None:
        self._lock: Any = condition._lock  # type: ignore[attr-defined]
        self.when_taken: Callable[[], object] | None = None
        self.before: Callable[[], object] | None = None
        self.after: Callable[[], object] | None = None

    def acquire(self, *args: Any) -> bool:
        before, self.before = self.before, None
        if before is not None:
            before()
        taken: bool = self._lock.acquire(*(args or (True, PATIENCE)))
        assert taken, "a thread waits for itself"
        when_taken, self.when_taken = self.when_taken, None
        if when_taken is not None:
            when_taken()
        return taken

    def release(self) -> None:
        self._lock.release()
        if not self._lock._is_owned():
            after, self.after = self.after, None
            if after is not None:
                after()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)  # what a Condition asks of a reentrant lock

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()


def texts(messages: Iterable[Message]) -> list[str]:
    return [message.text for message in messages]


def said(messages: Iterable[Message]) -> list[str]:
    """What was said to the run while it worked, raw, in order."""
    return [
        "".join(part.text for part in message.meta["steer_content"])
        for message in messages
        if "steer_id" in message.meta
    ]
