"""Counting: requests, and the tokens of those that were answered."""

from __future__ import annotations

import pytest

from steerkit import ModelError, Response, Usage, assistant, user
from steerkit.middleware.counting import Counting
from tests.conftest import Recorder, ask


def test_requests_and_tokens_are_summed() -> None:
    counting = Counting(Recorder(lambda *_: Response(assistant("R"), usage=Usage(3, 2, 1))))
    ask(counting, [user("Q")])
    ask(counting, [user("Q")])
    assert (counting.requests, counting.usage) == (2, Usage(6, 4, 2))


def test_an_answer_without_usage_adds_nothing() -> None:
    counting = Counting(Recorder(lambda *_: Response(assistant("R"))))
    ask(counting, [user("Q")])
    assert counting.usage == Usage()


def test_a_request_that_fails_is_counted_too() -> None:
    def fails(*_: object) -> Response:
        raise ModelError("no", kind="server")

    counting = Counting(Recorder(fails))
    with pytest.raises(ModelError):
        ask(counting, [user("Q")])
    assert counting.requests == 1
