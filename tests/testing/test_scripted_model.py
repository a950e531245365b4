from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit.core.cancel import Cancelled
from steerkit.core.errors import ModelError
from steerkit.core.message import Message, assistant, tool_result, user
from steerkit.core.model import ModelRef, Request, Response
from steerkit.core.spec import Spec
from steerkit.patterns import ReAct
from steerkit.runner import Runner
from steerkit.testing import Reply, ScriptedModel, ScriptOver, call, cut, fail, raw, say
from tests.testing.asking import PATIENCE, WatchedGate


def request(*messages: Message) -> Request:
    return Request(ModelRef("m"), messages or (user("Why?"),))


class Asking:
    """Asks in a thread of its own, and tells when each piece of text arrives."""

    def __init__(self, model: ScriptedModel, asked: Request, *, stream: bool = True) -> None:
        self.heard: list[str] = []
        self.heard_all = threading.Event()
        self.outcome: Response | BaseException | None = None
        self._expected = ""
        self._thread = threading.Thread(target=self._ask, args=(model, asked, stream))

    def start(self, expected: str = "") -> Asking:
        self._expected = expected
        self._thread.start()
        return self

    def end(self) -> Response | BaseException | None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.outcome

    def _ask(self, model: ScriptedModel, asked: Request, stream: bool) -> None:
        try:
            self.outcome = model.complete(asked, self._hear if stream else None)
        except BaseException as error:
            self.outcome = error

    def _hear(self, text: str) -> None:
        self.heard.append(text)
        if "".join(self.heard) == self._expected:
            self.heard_all.set()


def test_replies_come_in_the_order_of_the_script() -> None:
    model = ScriptedModel([say("one"), say("two")])

    assert [model.complete(request()).message.text for _ in range(2)] == ["one", "two"]


def test_it_can_be_passed_to_a_runner_as_the_way_to_reach_models() -> None:
    model = ScriptedModel([say("Because.")])

    assert Runner(model, [ReAct()]).run(Spec("m", "react", 1), [user("Why?")], model.endpoint).output == "Because."


def test_it_keeps_the_requests_as_they_came() -> None:
    model = ScriptedModel([say("one"), say("two")])
    asked = [request(), request(user("And?"))]
    for one in asked:
        model.complete(one)

    assert model.requests == asked


def test_a_step_may_be_a_function_of_the_request() -> None:
    model = ScriptedModel([lambda asked: say(asked.messages[-1].text.upper())])

    assert model.complete(request(user("hush"))).message.text == "HUSH"


def test_one_function_may_answer_every_request() -> None:
    model = ScriptedModel(lambda asked: say(f"{len(asked.messages)}"))

    assert [model.complete(request()).message.text for _ in range(3)] == ["1", "1", "1"]


def test_a_function_that_gives_no_reply_is_told() -> None:
    with pytest.raises(TypeError, match="which is no reply"):
        ScriptedModel(lambda _: "text").complete(request())  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("script", ["text", say("x"), ["text"]])
def test_what_is_no_script_is_refused_at_once(script: object) -> None:
    with pytest.raises(TypeError, match="say"):
        ScriptedModel(script)  # type: ignore[arg-type]


def test_an_exception_in_the_script_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        ScriptedModel([ZeroDivisionError()]).complete(request())


def test_the_end_of_the_script_is_told_with_its_length() -> None:
    model = ScriptedModel([say("one"), say("two")])
    for _ in range(2):
        model.complete(request())

    with pytest.raises(ScriptOver, match="2 replies"):
        model.complete(request())


def test_calls_get_ids_that_are_stable_within_a_script() -> None:
    model = ScriptedModel([call("a") + call("b"), call("c").with_id("own"), call("d")])
    ids = [one.id for _ in range(3) for one in model.complete(request()).message.tool_calls]

    assert ids == ["call_1", "call_2", "own", "call_3"]


def test_an_answer_arrives_whole_with_its_finish_and_usage() -> None:
    response = ScriptedModel([say("cut").finishing("length").using(7, 3)]).complete(request())

    assert (response.message.text, response.finish, response.usage) == ("cut", "length", say("x").using(7, 3).usage)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_pieces_of_a_streamed_text_add_up_to_it(text: str) -> None:
    heard: list[str] = []
    ScriptedModel([say(text) + call("search", query=text)]).complete(request(), heard.append)

    assert "".join(heard) == text


def test_a_long_text_is_streamed_in_several_pieces() -> None:
    heard: list[str] = []
    ScriptedModel([say("It is in run.py.")]).complete(request(), heard.append)

    assert len(heard) > 2


def test_an_answer_waits_for_its_gate_before_the_first_piece() -> None:
    gate = WatchedGate()
    asking = Asking(ScriptedModel([say("late").after(gate)]), request()).start()
    assert gate.looked_at.wait(PATIENCE)
    assert not asking.heard

    gate.set()
    response = asking.end()
    assert isinstance(response, Response)
    assert response.message.text == "late"


def test_an_answer_pauses_exactly_where_it_was_told_to() -> None:
    gate = threading.Event()
    asking = Asking(ScriptedModel([say("Hello there").pausing(gate, after=6)]), request()).start("Hello ")
    assert asking.heard_all.wait(PATIENCE)
    assert asking.outcome is None

    gate.set()
    assert isinstance(asking.end(), Response)
    assert "".join(asking.heard) == "Hello there"


def test_a_pause_holds_an_answer_that_is_not_streamed() -> None:
    gate = WatchedGate()
    asked = request()
    asking = Asking(ScriptedModel([say("Hello").pausing(gate, after=2)]), asked, stream=False).start()
    assert gate.looked_at.wait(PATIENCE)
    asked.cancellation.request()

    assert isinstance(asking.end(), Cancelled)


@pytest.mark.parametrize(
    "hold", [lambda gate: say("Hello").after(gate), lambda gate: say("Hello").pausing(gate, after=3)]
)
def test_a_cancel_ends_the_wait_at_a_closed_gate_within_milliseconds(hold: Callable[[threading.Event], Reply]) -> None:
    gate = WatchedGate()
    asked = request()
    asking = Asking(ScriptedModel([hold(gate)]), asked).start()
    assert gate.looked_at.wait(PATIENCE)
    began = time.monotonic()
    asked.cancellation.request()

    assert isinstance(asking.end(), Cancelled)
    assert time.monotonic() - began < 0.5


def test_a_cancelled_request_uses_up_no_reply_before_it_is_made() -> None:
    model = ScriptedModel([say("one")])
    cancelled = request()
    cancelled.cancellation.request()
    with pytest.raises(Cancelled):
        model.complete(cancelled)

    assert model.complete(request()).message.text == "one"


def test_a_reply_to_a_request_that_was_cancelled_meanwhile_does_not_come_back() -> None:
    gate = WatchedGate()
    asked = request()
    model = ScriptedModel([say("one").after(gate), say("two")])
    asking = Asking(model, asked).start()
    assert gate.looked_at.wait(PATIENCE)
    asked.cancellation.request()
    asking.end()

    assert model.complete(request()).message.text == "two"


def test_a_cut_loses_the_rest_and_keeps_what_was_heard() -> None:
    with pytest.raises(ModelError) as caught:
        ScriptedModel([say("Hello").cut(2)]).complete(request(), lambda _text: None)

    assert (caught.value.kind, caught.value.partial) == ("truncated", "He")


def test_a_cut_behind_the_last_character_is_still_before_the_end() -> None:
    with pytest.raises(ModelError) as caught:
        ScriptedModel([say("Hello").cut(99)]).complete(request(), lambda _text: None)

    assert caught.value.partial == "Hello"


def test_a_cut_before_a_pause_is_not_held_by_it() -> None:
    with pytest.raises(ModelError) as caught:
        ScriptedModel([say("Hello").pausing(threading.Event(), after=4).cut(2)]).complete(request(), lambda _text: None)

    assert caught.value.partial == "He"


def test_a_connection_that_is_dropped_before_the_answer_may_be_tried_again() -> None:
    with pytest.raises(ModelError) as caught:
        ScriptedModel([cut()]).complete(request())

    assert (caught.value.kind, caught.value.retryable) == ("connection", True)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "bad_request", False),
        (401, "auth", False),
        (402, "quota", False),
        (408, "timeout", True),
        (429, "rate_limit", True),
        (500, "server", True),
        (529, "overloaded", True),
    ],
)
def test_a_failure_is_the_model_error_of_its_status(status: int, kind: str, retryable: bool) -> None:
    with pytest.raises(ModelError, match="slow") as caught:
        ScriptedModel([fail(status, "slow", headers={"Retry-After": "2"})]).complete(request())

    error = caught.value
    assert (error.status, error.kind, error.retryable, error.retry_after) == (status, kind, retryable, 2.0)


def test_a_verbatim_http_answer_is_refused() -> None:
    with pytest.raises(TypeError, match="use the Gateway"):
        ScriptedModel([raw("{}")]).complete(request())


CALLS = assistant("", call("search").with_id("a").calls)


@pytest.mark.parametrize(
    "messages",
    [
        (user("Why?"), CALLS),
        (user("Why?"), CALLS, user("steer"), tool_result("a", "x")),
        (user("Why?"), tool_result("a", "x")),
        (user("Why?"), CALLS, tool_result("b", "x")),
    ],
    ids=["missing result", "message between", "result without call", "result for another call"],
)
def test_calls_and_results_that_do_not_belong_together_are_refused_and_use_up_no_reply(
    messages: tuple[Message, ...],
) -> None:
    model = ScriptedModel([say("one")])
    with pytest.raises(ModelError) as caught:
        model.complete(request(*messages))
    assert (caught.value.kind, caught.value.status) == ("bad_request", 400)

    assert model.complete(request()).message.text == "one"


def test_a_request_without_messages_is_refused() -> None:
    with pytest.raises(ModelError, match="empty"):
        ScriptedModel([say("one")]).complete(Request(ModelRef("m"), ()))


def test_many_threads_get_every_reply_once() -> None:
    model = ScriptedModel([say(str(number)) + call("a") for number in range(500)])
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: model.complete(request()).message, range(500)))

    assert sorted(int(answer.text) for answer in answers) == list(range(500))
    assert len({answer.tool_calls[0].id for answer in answers}) == 500
