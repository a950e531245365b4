"""Steering: what a request carries, when a steer is applied, and whole conversations of every kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit import Event, Image, Message, ModelError, Response, SteerEvent, ToolCall, assistant, tool_result, user
from steerkit.core.message import Text, parts
from steerkit.core.model import OnText, Request
from steerkit.core.pairing import check_pairs
from steerkit.core.steer_queue import SteerQueue
from steerkit.middleware.steering import Steering, steer_message
from tests.conftest import Recorder, ask, request_for, said, texts

Q, R = user("Q"), assistant("R")
LABEL = "While you worked:"


class Steered:
    """A Steering around a recorder, with its queue and what it emitted."""

    def __init__(self, answer: Callable[[Request, OnText | None], Response] = lambda *_: Response(R)) -> None:
        self.queue = SteerQueue()
        self.recorder = Recorder(answer)
        self.events: list[SteerEvent] = []
        self.answered: list[int] = []  # the numbers of the requests that did not fail
        self.client = Steering(self.recorder, self.queue, LABEL, itertools.count(), self._emit)

    def _emit(self, event: Event) -> None:
        assert isinstance(event, SteerEvent)
        self.events.append(event)

    @property
    def requests(self) -> list[tuple[Message, ...]]:
        return [request.messages for request in self.recorder.requests]


def failing(*_: object) -> Response:
    raise ModelError("no", kind="server")


# ---- one request


def test_a_request_carries_all_that_waits_each_in_its_own_message() -> None:
    steered = Steered()
    steered.queue.put(parts("a"))
    steered.queue.put(parts("b"))
    ask(steered.client, [Q])
    assert texts(steered.requests[0]) == ["Q", f"{LABEL}\na", f"{LABEL}\nb"]


def test_a_later_request_carries_it_at_the_same_place_as_the_same_object() -> None:
    steered = Steered()
    steered.queue.put(parts("a"))
    ask(steered.client, [Q])
    ask(steered.client, [Q, R, user("more")])
    first, second = steered.requests
    assert second[: len(first)] == first
    assert second[1] is first[1]


def test_a_steer_is_applied_when_the_reply_arrives_and_not_before() -> None:
    steered = Steered(lambda *_: Response(R) if steer.state == "pending" else failing())
    steer = steered.queue.put(parts("a"))
    ask(steered.client, [Q])
    assert (steer.state, steer.request, steer.index) == ("applied", 0, 1)


def test_a_steer_is_applied_with_the_first_piece_of_text() -> None:
    states: list[str] = []

    def answer(_: Request, on_text: OnText | None) -> Response:
        assert on_text
        on_text("R")
        return Response(R)

    steered = Steered(answer)
    steer = steered.queue.put(parts("a"))
    steered.client.complete(request_for([Q]), lambda _: states.append(steer.state))
    assert states == ["applied"]
    assert len(steered.events) == 1


def test_the_event_says_which_message_carried_it_and_where() -> None:
    steered = Steered()
    ask(steered.client, [Q])
    steer = steered.queue.put(parts("a"))
    ask(steered.client, [Q, R, Q])
    (event,) = steered.events
    assert (event.steer, event.request, event.index, event.size) == (steer, 1, 3, 4)
    assert event.message is steered.requests[1][3]
    assert (steer.request, steer.index) == (1, 3)


def test_the_index_of_a_new_steer_is_right_behind_older_ones() -> None:
    steered = Steered()
    steered.queue.put(parts("a"))
    ask(steered.client, [Q])
    b, c = steered.queue.put(parts("b")), steered.queue.put(parts("c"))
    ask(steered.client, [Q, R])
    assert texts(steered.requests[1]) == ["Q", f"{LABEL}\na", "R", f"{LABEL}\nb", f"{LABEL}\nc"]
    assert (b.index, c.index) == (3, 4)


def test_a_request_that_fails_gives_its_steers_back_in_order_ahead_of_later_ones() -> None:
    steered = Steered(failing)
    a, b = steered.queue.put(parts("a")), steered.queue.put(parts("b"))
    with pytest.raises(ModelError):
        ask(steered.client, [Q])
    c = steered.queue.put(parts("c"))
    assert steered.queue.take() == [a, b, c]
    assert (a.state, steered.events, steered.client.pins) == ("pending", [], ())


def test_a_retry_carries_a_steer_once() -> None:
    steered = Steered(lambda *_: Response(R) if len(steered.requests) > 1 else failing())
    steered.queue.put(parts("a"))
    with pytest.raises(ModelError):
        ask(steered.client, [Q])
    ask(steered.client, [Q])
    assert [said(request) for request in steered.requests] == [["a"], ["a"]]
    assert len(steered.events) == 1


def test_a_request_that_fails_after_its_first_text_has_applied_its_steers() -> None:
    def answer(_: Request, on_text: OnText | None) -> Response:
        assert on_text
        on_text("half")
        return failing()

    steered = Steered(answer)
    steer = steered.queue.put(parts("a"))
    with pytest.raises(ModelError):
        steered.client.complete(request_for([Q]), lambda _: None)
    assert (steer.state, steered.queue.pending, said(steered.client.place_in([Q]))) == ("applied", (), ["a"])


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ZeroDivisionError])
def test_whatever_breaks_a_request_its_steers_come_back(error: type[BaseException]) -> None:
    def answer(*_: object) -> Response:
        raise error

    steered = Steered(answer)
    steer = steered.queue.put(parts("a"))
    with pytest.raises(error):
        ask(steered.client, [Q])
    assert steered.queue.withdraw(steer)


def test_a_request_that_cannot_even_be_made_gives_its_steers_back() -> None:
    steered = Steered()
    steer = steered.queue.put(parts("a"))
    with pytest.raises(AttributeError):
        ask(steered.client, ["no message"])  # type: ignore[list-item]
    assert steered.queue.withdraw(steer)


def test_a_request_beside_the_conversation_neither_takes_nor_carries_steers() -> None:
    steered = Steered()
    steered.queue.put(parts("a"))
    ask(steered.client, [Q])
    waiting = steered.queue.put(parts("b"))
    steered.client.complete(request_for([Q], carry_steers=False))
    assert (said(steered.requests[1]), waiting.state) == ([], "pending")
    ask(steered.client, [Q, R])
    assert waiting.request == 2


def test_a_client_is_asked_to_stream_only_when_somebody_listens() -> None:
    streams: list[bool] = []

    def answer(_: Request, on_text: OnText | None) -> Response:
        streams.append(on_text is not None)
        return Response(R)

    steered = Steered(answer)
    steered.queue.put(parts("a"))
    ask(steered.client, [Q])
    steered.client.complete(request_for([Q]), lambda _: None)
    assert streams == [False, True]


def test_a_steer_that_arrives_while_the_model_is_asked_waits_for_the_next_request() -> None:
    steered = Steered(lambda *_: (steered.queue.put(parts("late")), Response(R))[1])
    ask(steered.client, [Q])
    assert [steer.text for steer in steered.queue.pending] == ["late"]
    ask(steered.client, [Q, R])
    assert said(steered.requests[1]) == ["late"]


# ---- the message


def test_the_label_is_a_line_before_the_text_and_the_raw_content_is_kept_beside_it() -> None:
    steer = SteerQueue().put(parts("a\nb"))
    message = steer_message(steer, LABEL)
    assert message.text == f"{LABEL}\na\nb"
    assert (message.role, message.meta["steer_id"], message.meta["steer_content"]) == ("user", steer.id, steer.content)


def test_a_steer_that_begins_with_an_image_has_the_label_as_a_text_of_its_own() -> None:
    image = Image(b"x", "image/png")
    message = steer_message(SteerQueue().put((image, Text("a"))), LABEL)
    assert message.content == (Text(LABEL), image, Text("a"))


def test_without_a_label_the_message_is_what_was_said() -> None:
    assert steer_message(SteerQueue().put(parts("a"))).content == (Text("a"),)


# ---- a look from another thread


def test_a_look_at_the_conversation_sees_pins_and_messages_of_one_moment() -> None:
    steered = Steered()
    live = [Q]

    class Live(list):  # type: ignore[type-arg]
        """The worker goes on while another thread copies its list."""

        def __iter__(self) -> object:  # type: ignore[override]
            seen = list.__iter__(list(live))
            if len(live) == 1:
                live.extend([R, Q])
                steered.queue.put(parts("a"))
                ask(steered.client, live)
            return seen

    assert texts(steered.client.place_in(Live())) == ["Q", "R", "Q", f"{LABEL}\na"]


# ---- whole conversations


class Conversation:
    """What a pattern may do to its list between two requests; it stays well formed."""

    def __init__(self) -> None:
        self.messages: list[Message] = [user("Q")]
        self._numbers = itertools.count()
        self.constant = user("Go on.")

    def append(self) -> None:
        self.messages.append(assistant(f"A{next(self._numbers)}"))

    def append_calls(self) -> None:
        ids = [f"c{next(self._numbers)}" for _ in range(2)]
        self.messages.append(assistant("", [ToolCall(call_id, "look") for call_id in ids]))
        self.messages += [tool_result(call_id, "seen") for call_id in ids]

    def append_constant(self) -> None:
        self.messages.append(self.constant)

    def nothing(self) -> None:
        pass

    def replace_last(self) -> None:
        self._drop(len(self.messages) - 1)
        self.append()

    def drop_start(self) -> None:
        del self.messages[0]
        while self.messages and self.messages[0].role == "tool":
            del self.messages[0]
        self.messages = self.messages or [user("Q again")]

    def _drop(self, index: int) -> None:
        while self.messages[index].role == "tool":
            index -= 1
        del self.messages[index:]

    def swap(self) -> None:
        self.messages = [user("a summary"), self.messages[0] if self.messages[0].role == "user" else user("Q")]

    def rebuild(self) -> None:
        self.messages = [Message(m.role, m.content, m.tool_calls, m.tool_call_id) for m in self.messages]

    def rebuild_but_the_first(self) -> None:
        first = self.messages[0]
        self.rebuild()
        self.messages[0] = first


GROWING = ["append", "append_calls", "append_constant", "nothing"]
BY_VALUE = [*GROWING, "rebuild", "rebuild_but_the_first"]
ANY = [*BY_VALUE, "replace_last", "drop_start", "swap"]


def steps(names: list[str]) -> st.SearchStrategy[list[tuple[str, int, bool]]]:
    """What is done to the list, how many steers arrive before the request, and whether the request fails."""
    return st.lists(st.tuples(st.sampled_from(names), st.integers(0, 2), st.booleans()), min_size=1, max_size=12)


def play(script: list[tuple[str, int, bool]]) -> tuple[Steered, Conversation, list[list[Message]]]:
    """Every answered request of a conversation that went that way, and the pattern's own list at each of them."""
    fails = False

    def answer(request: Request, _: OnText | None) -> Response:
        if fails:
            raise ModelError("no", kind="server")
        return Response(R)

    steered, conversation, numbers = Steered(answer), Conversation(), itertools.count()
    own: list[list[Message]] = []
    for number, (change, arrivals, fails) in enumerate(script):  # noqa: B007 - `answer` reads it
        getattr(conversation, change)()
        for _ in range(arrivals):
            steered.queue.put(parts(f"S{next(numbers)}"))
        try:
            ask(steered.client, conversation.messages)
        except ModelError:
            steered.recorder.requests.pop()
        else:
            steered.answered.append(number)
            own.append(list(conversation.messages))
    return steered, conversation, own


def without_steers(messages: tuple[Message, ...]) -> list[Message]:
    return [message for message in messages if "steer_id" not in message.meta]


@given(steps(ANY))
def test_calls_and_results_stay_together_whatever_a_pattern_does(script: list[tuple[str, int, bool]]) -> None:
    for request in play(script)[0].requests:
        check_pairs(request)


@given(steps(ANY))
def test_every_applied_steer_is_in_every_later_request_once_and_the_rest_is_the_patterns(
    script: list[tuple[str, int, bool]],
) -> None:
    steered, _, own = play(script)
    for number, request, messages in zip(steered.answered, steered.requests, own, strict=True):
        applied = [event.steer.text for event in steered.events if event.request <= number]
        assert sorted(said(request)) == sorted(applied)
        assert list(map(id, without_steers(request))) == list(map(id, messages))


@given(steps(ANY))
def test_a_steer_is_the_same_message_in_every_request(script: list[tuple[str, int, bool]]) -> None:
    steered = play(script)[0]
    seen: dict[str, Message] = {}
    for request in steered.requests:
        for message in request:
            if "steer_id" in message.meta:
                assert seen.setdefault(message.meta["steer_id"], message) is message


@given(steps(ANY))
def test_an_old_steer_is_never_the_last_word_of_a_conversation_that_has_grown(
    script: list[tuple[str, int, bool]],
) -> None:
    steered, _, own = play(script)
    first_size: dict[str, int] = {}
    for request, messages in zip(steered.requests, own, strict=True):
        for message in request:
            if "steer_id" in message.meta:
                first_size.setdefault(message.meta["steer_id"], len(messages))
        last = request[-1].meta.get("steer_id")
        if last is not None:
            assert len(messages) <= first_size[last]


@pytest.mark.parametrize("names", [GROWING, BY_VALUE], ids=["the same objects", "equal copies"])
@given(st.data())
def test_each_request_begins_with_the_one_before_it_when_a_pattern_only_appends(
    names: list[str], data: st.DataObject
) -> None:
    steered = play(data.draw(steps(names)))[0]
    for one, other in itertools.pairwise(steered.requests):
        assert other[: len(one)] == one


@given(steps(ANY))
def test_new_steers_are_the_last_words_in_the_order_in_which_they_were_said(
    script: list[tuple[str, int, bool]],
) -> None:
    steered = play(script)[0]
    carried: set[str] = set()
    for request in steered.requests:
        new = [text for text in said(request) if text not in carried]
        carried |= set(new)
        assert new == sorted(new, key=lambda text: int(text[1:]))
        assert said(request[len(request) - len(new) :]) == new


@given(steps(GROWING))
def test_the_result_shows_what_the_last_request_showed(script: list[tuple[str, int, bool]]) -> None:
    steered, conversation, _ = play([*script, ("nothing", 0, False)])
    assert steered.client.place_in(conversation.messages) == steered.requests[-1]


@given(steps(ANY))
def test_what_a_request_lost_waits_and_nothing_else_does(script: list[tuple[str, int, bool]]) -> None:
    steered, _, _ = play(script)
    arrived = {f"S{number}" for number in range(sum(arrivals for _, arrivals, _ in script))}
    applied = {event.steer.text for event in steered.events}
    pending = {steer.text for steer in steered.queue.pending}
    assert applied | pending == arrived
    assert not applied & pending
