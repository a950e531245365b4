"""Cancelling: nothing is asked after a cancel, and what it breaks is the cancel."""

from __future__ import annotations

import pytest

from steerkit import Response, assistant, user
from steerkit.core.cancel import Cancellation, Cancelled
from steerkit.middleware.cancelling import Cancelling
from tests.conftest import Recorder, request_for

DONE = Response(assistant("R"))


def test_nothing_is_asked_after_a_cancel() -> None:
    cancellation, recorder = Cancellation(), Recorder(lambda *_: DONE)
    cancellation.request()
    with pytest.raises(Cancelled):
        Cancelling(recorder).complete(request_for([user("Q")], cancellation))
    assert recorder.requests == []


def test_what_a_cancel_breaks_is_the_cancel_whatever_the_client_calls_it() -> None:
    cancellation = Cancellation()

    def broken(*_: object) -> Response:
        cancellation.request()
        raise OSError("the socket is gone")

    with pytest.raises(Cancelled) as raised:
        Cancelling(Recorder(broken)).complete(request_for([user("Q")], cancellation))
    assert isinstance(raised.value.__cause__, OSError)


def test_what_breaks_without_a_cancel_is_what_it_is() -> None:
    def broken(*_: object) -> Response:
        raise OSError("the socket is gone")

    with pytest.raises(OSError, match="gone"):
        Cancelling(Recorder(broken)).complete(request_for([user("Q")]))


def test_an_answer_that_arrived_whole_is_passed_on_though_the_cancel_came_meanwhile() -> None:
    cancellation = Cancellation()

    def meanwhile(*_: object) -> Response:
        cancellation.request()
        return DONE

    recorder = Recorder(meanwhile)
    assert Cancelling(recorder).complete(request_for([user("Q")], cancellation)) is DONE
