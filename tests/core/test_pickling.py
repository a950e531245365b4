"""Results and errors can be copied, and sent to another process."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from steerkit import AnswerCutOff, ModelError, RunFailed, RunFinished, Steer, SteerkitError, SteerQueueFull, Text
from steerkit.testing import ScriptedModel, fail, say
from tests.conftest import start

ERRORS: list[SteerkitError] = [
    ModelError("no key", kind="auth", status=401, param="key", partial="He"),
    AnswerCutOff("Hel"),
    RunFinished("over", (Text("a"),)),
    SteerQueueFull("full", (Text("a"),)),
    RunFailed("the pattern"),
]
COPIES: list[Callable[[Any], Any]] = [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy]


@pytest.mark.parametrize("again", COPIES, ids=["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_afterwards(error: SteerkitError, again: Callable[[Any], Any]) -> None:
    other = again(error)
    assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))


def unapplied(outcome: Any) -> list[tuple[str, str, str]]:
    return [(steer.id, steer.text, steer.state) for steer in outcome.unapplied_steers]


@pytest.mark.parametrize("again", COPIES, ids=["pickle", "copy", "deepcopy"])
def test_the_error_of_a_run_keeps_its_result_and_the_steers_in_it(again: Callable[[Any], Any]) -> None:
    run = start(ScriptedModel([fail(400, "no")]), on_event=_steer_once)
    with pytest.raises(ModelError) as caught:
        run.wait()
    result = caught.value.result
    assert result is not None and unapplied(result)[0][1:] == ("S", "unapplied")
    other = again(caught.value)
    assert unapplied(other.result) == unapplied(result)
    assert other.result.messages == result.messages


def _steer_once(run: Any, event: Any) -> None:
    if type(event).__name__ == "StepEvent":
        run.steer("S", when="next_request")


def test_a_receipt_becomes_a_record_that_can_still_be_waited_for() -> None:
    steers: list[Steer] = []
    start(ScriptedModel([say("x")]), on_event=lambda run, event: _keep(steers, run, event)).wait()
    record = pickle.loads(pickle.dumps(steers[0]))
    assert (record.text, record.state, record.wait(1)) == ("S", steers[0].state, steers[0].state)


def _keep(steers: list[Steer], run: Any, event: Any) -> None:
    if type(event).__name__ == "TurnEvent":
        steers.append(run.steer("S"))


def refused() -> str:
    """Run in another process."""
    return start(ScriptedModel([fail(401, "no such key")])).wait().output


def test_an_error_comes_out_of_a_process_pool() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool, pytest.raises(ModelError) as caught:
        pool.submit(refused).result(60)
    assert (caught.value.kind, caught.value.status) == ("auth", 401)
    assert caught.value.result is not None
