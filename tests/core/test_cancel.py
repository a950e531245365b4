"""Cancel: every callback runs once, whichever of the two came first, and in whichever thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from steerkit.core.cancel import Cancellation, Cancelled
from tests.conftest import LyingLock, ToldCondition, in_thread, woken


def lying(cancellation: Cancellation) -> LyingLock:
    """Put a lock that lies around the lock of `cancellation`."""
    lock = LyingLock(cancellation._changed)
    cancellation._changed = threading.Condition(lock)  # type: ignore[arg-type]
    return lock


def test_a_cancel_calls_back_in_the_thread_that_cancels() -> None:
    cancellation = Cancellation()
    called: list[threading.Thread] = []
    with cancellation.calling(lambda: called.append(threading.current_thread())):
        in_thread(cancellation.request)
    assert len(called) == 1
    assert called[0] is not threading.current_thread()


def test_a_callback_that_comes_after_the_cancel_is_called_at_once() -> None:
    cancellation, called = Cancellation(), []
    cancellation.request()
    with cancellation.calling(lambda: called.append(1)):
        assert called == [1]


def test_a_second_cancel_does_nothing() -> None:
    cancellation, called = Cancellation(), []
    with cancellation.calling(lambda: called.append(1)):
        cancellation.request()
        cancellation.request()
    assert called == [1]


def test_a_callback_is_forgotten_when_its_block_ends() -> None:
    cancellation, called = Cancellation(), []
    with cancellation.calling(lambda: called.append(1)):
        pass
    cancellation.request()
    assert called == []


def test_a_callback_that_fails_spares_the_others(caplog: pytest.LogCaptureFixture) -> None:
    cancellation, called = Cancellation(), []

    def fails() -> None:
        raise OSError("the socket is gone")

    with caplog.at_level(logging.ERROR), cancellation.calling(fails), cancellation.calling(lambda: called.append(1)):
        cancellation.request()
    assert called == [1]
    assert "A callback of cancel() failed" in caplog.text


def test_a_callback_runs_while_no_lock_is_held() -> None:
    cancellation = Cancellation()
    with cancellation.calling(lambda: in_thread(lambda: cancellation.requested.wait(0))):
        cancellation.request()


def test_a_signal_handler_may_cancel_while_its_thread_enters_a_block() -> None:
    cancellation, called = Cancellation(), []
    lock = lying(cancellation)
    lock.when_taken = cancellation.request
    with cancellation.calling(lambda: called.append(1)):
        assert called == [1]


class Interrupted(Cancellation):
    """Runs `handler` once, just after its flag was looked at."""

    handler: Callable[[], None] | None = None
    raised = False

    @property
    def _requested(self) -> bool:
        value = self.raised
        handler, self.handler = self.handler, None
        if handler is not None:
            handler()
        return value

    @_requested.setter
    def _requested(self, value: bool) -> None:
        self.raised = value


def test_a_signal_handler_that_cancels_just_after_the_flag_was_looked_at_is_heard_once() -> None:
    cancellation, called = Interrupted(), []
    cancellation.handler = cancellation.request
    with cancellation.calling(lambda: called.append(1)):
        assert called == [1]


def test_a_signal_handler_that_cancels_just_after_a_callback_was_kept_is_heard_once() -> None:
    cancellation, called = Cancellation(), []

    class Callbacks(dict):  # type: ignore[type-arg]
        def __setitem__(self, key: object, value: object) -> None:
            super().__setitem__(key, value)
            cancellation.request()

    cancellation._callbacks = Callbacks()
    with cancellation.calling(lambda: called.append(1)):
        assert called == [1]


def test_a_cancelled_run_is_unwound_by_what_no_pattern_catches_by_accident() -> None:
    cancellation = Cancellation()
    cancellation.raise_if_requested()
    cancellation.request()
    with pytest.raises(Cancelled):
        cancellation.raise_if_requested()
    assert not issubclass(Cancelled, Exception)


def test_a_cancel_wakes_who_waits_for_its_flag() -> None:
    cancellation = Cancellation()
    assert not cancellation.requested
    assert cancellation.requested.wait(0) is False
    cancellation._changed = cancellation.requested._changed = changed = ToldCondition()
    assert woken(changed, cancellation.requested.wait, cancellation.request)
    assert cancellation.requested
    assert cancellation.requested.wait(0) is True
