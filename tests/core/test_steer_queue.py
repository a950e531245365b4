"""SteerQueue: each arrow of its drawing, who may come between two of them, and what is refused."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from steerkit import RunFinished, Steer, SteerQueueFull
from steerkit.core.message import parts
from steerkit.core.steer_queue import SteerQueue
from tests.conftest import LyingLock, ToldCondition, in_thread, woken

OVER = "The run has ended."


def put(queue: SteerQueue, *texts: str) -> list[Steer]:
    return [queue.put(parts(text)) for text in texts]


def lying(queue: SteerQueue) -> LyingLock:
    """Put a lock that lies around the lock of `queue`."""
    lock = LyingLock(queue._changed)
    queue._changed = queue.steer_pending._changed = threading.Condition(lock)  # type: ignore[arg-type]
    return lock


# ---- the arrows


def test_what_is_put_waits_in_order() -> None:
    queue = SteerQueue()
    steers = put(queue, "a", "b")
    assert queue.pending == tuple(steers)
    assert [steer.state for steer in steers] == ["pending", "pending"]


def test_all_that_waits_is_taken_at_once_and_stays_pending() -> None:
    queue = SteerQueue()
    steers = put(queue, "a", "b")
    assert queue.take() == steers
    assert queue.pending == tuple(steers)
    assert queue.take() == []


def test_what_waits_for_idle_is_not_taken() -> None:
    queue = SteerQueue()
    idle = queue.put(parts("later"), "idle")
    steers = put(queue, "now")
    assert queue.take() == steers
    assert queue.pending == (idle, *steers)


def test_what_is_settled_is_applied_and_knows_where() -> None:
    queue = SteerQueue()
    one, two = put(queue, "a", "b")
    queue.settle(queue.take(), 3, [5, 6])
    assert [(s.state, s.request, s.index) for s in (one, two)] == [("applied", 3, 5), ("applied", 3, 6)]
    assert queue.pending == ()


def test_only_what_was_taken_is_settled() -> None:
    queue = SteerQueue()
    put(queue, "a")
    taken = queue.take()
    (late,) = put(queue, "late")
    queue.settle(taken, 0, [1])
    assert queue.pending == (late,)
    assert late.state == "pending"


def test_what_is_put_back_goes_ahead_of_what_came_later() -> None:
    queue = SteerQueue()
    first = put(queue, "a", "b")
    taken = queue.take()
    later = put(queue, "c")
    queue.put_back(taken)
    assert queue.take() == first + later


def test_what_waits_can_be_withdrawn() -> None:
    queue = SteerQueue()
    one, two = put(queue, "a", "b")
    assert queue.withdraw(one)
    assert one.state == "withdrawn"
    assert queue.take() == [two]


def test_what_waits_for_idle_can_be_withdrawn() -> None:
    queue = SteerQueue()
    steer = queue.put(parts("a"), "idle")
    assert queue.withdraw(steer)
    assert queue.pending == ()


def test_of_two_that_say_the_same_the_one_that_is_meant_is_withdrawn() -> None:
    queue = SteerQueue()
    one, two = put(queue, "a", "a")
    assert queue.withdraw(two)
    assert (one.state, two.state) == ("pending", "withdrawn")
    assert queue.take() == [one]


def test_what_is_in_flight_cannot_be_withdrawn() -> None:
    queue = SteerQueue()
    (steer,) = put(queue, "a")
    queue.take()
    assert not queue.withdraw(steer)
    assert steer.state == "pending"


def test_what_was_put_back_can_be_withdrawn() -> None:
    queue = SteerQueue()
    (steer,) = put(queue, "a")
    queue.put_back(queue.take())
    assert queue.withdraw(steer)


def test_a_steer_is_withdrawn_once() -> None:
    queue = SteerQueue()
    (steer,) = put(queue, "a")
    assert [queue.withdraw(steer), queue.withdraw(steer)] == [True, False]


def test_the_steer_of_another_queue_cannot_be_withdrawn() -> None:
    (steer,) = put(SteerQueue(), "a")
    assert not SteerQueue().withdraw(steer)
    assert steer.state == "pending"


def test_a_turn_that_ends_with_another_to_come_continues_all_that_is_pending_in_order() -> None:
    queue = SteerQueue()
    (one,) = put(queue, "a")
    idle = queue.put(parts("b"), "idle")
    (two,) = put(queue, "c")
    assert queue.end_turn(more=True, reason=OVER) == [one, idle, two]
    assert {steer.state for steer in (one, idle, two)} == {"continued"}
    put(queue, "the queue is open")


def test_a_turn_that_ends_with_nothing_pending_closes_the_queue() -> None:
    queue = SteerQueue()
    assert queue.end_turn(more=True, reason=OVER) == []
    with pytest.raises(RunFinished):
        put(queue, "late")


def test_a_turn_that_ends_with_none_to_come_hands_back_what_is_pending() -> None:
    queue = SteerQueue()
    steers = put(queue, "a", "b")
    assert queue.end_turn(more=False, reason=OVER) == []
    assert queue.unapplied == tuple(steers)
    assert {steer.state for steer in steers} == {"unapplied"}


def test_a_turn_that_ends_after_a_cancel_continues_nothing() -> None:
    queue = SteerQueue()
    (steer,) = put(queue, "a")
    queue.refuse("The run was cancelled.")
    assert queue.end_turn(more=True, reason=OVER) == []
    assert steer.state == "unapplied"


def test_a_queue_that_closes_hands_back_what_waits_and_what_is_in_flight_in_order() -> None:
    queue = SteerQueue()
    steers = put(queue, "a")
    queue.take()
    steers += put(queue, "b")
    steers.append(queue.put(parts("c"), "idle"))
    queue.close(OVER)
    assert queue.unapplied == tuple(steers)
    assert queue.pending == ()


def test_a_second_close_changes_nothing() -> None:
    queue = SteerQueue()
    steers = put(queue, "a")
    queue.close(OVER)
    queue.close("Again.")
    assert queue.unapplied == tuple(steers)
    with pytest.raises(RunFinished, match="The run has ended"):
        put(queue, "late")


def test_the_fate_of_a_steer_stays() -> None:
    queue = SteerQueue()
    (steer,) = put(queue, "a")
    taken = queue.take()
    queue.close(OVER)
    queue.settle(taken, 0, [1])
    queue.put_back(taken)
    assert (steer.state, steer.request, queue.pending) == ("unapplied", None, ())


# ---- what is refused


def test_a_closed_queue_refuses_and_gives_the_content_back() -> None:
    queue = SteerQueue()
    queue.close(OVER)
    with pytest.raises(RunFinished, match=r"The run has ended\. This steer was not queued") as refused:
        put(queue, "late")
    assert (refused.value.text, refused.value.content) == ("late", parts("late"))
    assert queue.unapplied == ()


def test_a_queue_that_refuses_keeps_what_is_pending() -> None:
    queue = SteerQueue()
    steers = put(queue, "a")
    queue.refuse("The run was cancelled.")
    with pytest.raises(RunFinished, match="was cancelled"):
        put(queue, "late")
    assert queue.pending == tuple(steers)
    assert queue.withdraw(steers[0])


def test_a_full_queue_refuses_and_drops_nothing() -> None:
    queue = SteerQueue(limit=2)
    steers = put(queue, "a", "b")
    with pytest.raises(SteerQueueFull, match="2 steers are pending already") as refused:
        put(queue, "c")
    assert refused.value.text == "c"
    assert queue.take() == steers


def test_what_is_in_flight_counts_against_the_limit_as_it_may_come_back() -> None:
    queue = SteerQueue(limit=1)
    put(queue, "a")
    queue.take()
    with pytest.raises(SteerQueueFull):
        put(queue, "b")


def test_a_fate_makes_room() -> None:
    queue = SteerQueue(limit=1)
    (steer,) = put(queue, "a")
    queue.withdraw(steer)
    put(queue, "b")


def test_a_queue_holds_a_thousand() -> None:
    queue = SteerQueue()
    put(queue, *map(str, range(1000)))
    with pytest.raises(SteerQueueFull):
        put(queue, "one more")


# ---- who waits


def test_the_flag_tells_of_what_waits_for_the_next_request_only() -> None:
    queue = SteerQueue()
    queue.put(parts("later"), "idle")
    assert not queue.steer_pending
    put(queue, "now")
    assert queue.steer_pending
    taken = queue.take()
    assert not queue.steer_pending
    queue.put_back(taken)
    assert queue.steer_pending


@pytest.mark.parametrize("way", ["put", "put_back"])
def test_the_flag_wakes_who_waits_for_it(way: str) -> None:
    queue = SteerQueue()
    taken = []
    if way == "put_back":
        put(queue, "a")
        taken = queue.take()
    queue._changed = queue.steer_pending._changed = changed = ToldCondition()
    assert woken(changed, queue.steer_pending.wait, lambda: put(queue, "a") if way == "put" else queue.put_back(taken))


FATES: dict[str, Callable[[SteerQueue, Steer], object]] = {
    "applied": lambda queue, _: queue.settle(queue.take(), 0, [1]),
    "continued": lambda queue, _: queue.end_turn(more=True, reason=OVER),
    "withdrawn": lambda queue, steer: queue.withdraw(steer),
    "unapplied": lambda queue, _: queue.close(OVER),
}


@pytest.mark.parametrize("fate", FATES)
def test_its_fate_wakes_who_waits_for_a_steer(fate: str) -> None:
    queue = SteerQueue()
    queue._changed = changed = ToldCondition()
    (steer,) = put(queue, "a")
    assert woken(changed, steer.wait, lambda: FATES[fate](queue, steer))
    assert steer.state == fate


# ---- who comes between

Change = Callable[[SteerQueue, Steer], object]
INSIDE: dict[str, Change] = {
    "put": lambda queue, _: put(queue, "mine"),
    "take": lambda queue, _: queue.take(),
    "withdraw": lambda queue, steer: queue.withdraw(steer),
    "pending": lambda queue, _: queue.pending,
    "flag": lambda queue, _: queue.steer_pending.wait(0),
}


@pytest.mark.parametrize("inside", INSIDE)
def test_a_signal_handler_may_steer_and_withdraw_while_its_own_thread_is_inside(inside: str) -> None:
    queue = SteerQueue()
    first, second = put(queue, "first", "second")
    lock = lying(queue)
    steered: list[Steer] = []

    def handler(*_: object) -> None:
        steered.extend(put(queue, "from the handler"))
        assert queue.withdraw(second)

    previous = signal.signal(signal.SIGINT, handler)
    try:
        lock.when_taken = lambda: signal.raise_signal(signal.SIGINT)
        INSIDE[inside](queue, first)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert len(steered) == 1
    assert steered[0] in queue.pending
    assert second.state == "withdrawn"


@pytest.mark.parametrize("withdrawn_first", [True, False])
def test_a_withdrawal_and_a_request_never_both_get_a_steer(withdrawn_first: bool) -> None:
    queue = SteerQueue()
    (steer,) = put(queue, "a")
    lock = lying(queue)
    got: dict[str, object] = {}
    if withdrawn_first:
        lock.before = lambda: in_thread(lambda: got.update(withdrawn=queue.withdraw(steer)))
        got["taken"] = queue.take()
        assert got == {"withdrawn": True, "taken": []}
    else:
        lock.before = lambda: in_thread(lambda: got.update(taken=queue.take()))
        got["withdrawn"] = queue.withdraw(steer)
        assert got == {"withdrawn": False, "taken": [steer]}


@pytest.mark.parametrize("more", [True, False])
def test_a_steer_that_gets_in_just_before_the_end_of_a_turn_is_part_of_it(more: bool) -> None:
    queue = SteerQueue()
    lock = lying(queue)
    steers: list[Steer] = []
    lock.before = lambda: in_thread(lambda: steers.extend(put(queue, "a")))
    assert queue.end_turn(more=more, reason=OVER) == (steers if more else [])
    assert steers[0].state == ("continued" if more else "unapplied")


def test_a_steer_that_comes_just_after_the_queue_closed_is_refused() -> None:
    queue = SteerQueue()
    lock = lying(queue)
    lock.before = lambda: in_thread(lambda: queue.close(OVER))
    with pytest.raises(RunFinished):
        put(queue, "late")
    assert queue.unapplied == ()


# ---- any order


class AnyOrder(RuleBasedStateMachine):
    """Whatever the order of the calls: a steer stands in one place, and its one fate never changes."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = SteerQueue(limit=5)
        self.accepted: list[Steer] = []
        self.fates: dict[Steer, str] = {}
        self.taken: list[Steer] = []
        self.open = True

    @rule(idle=st.booleans())
    def put(self, idle: bool) -> None:
        pending = len(self.queue.pending)
        try:
            steer = self.queue.put(parts("a"), "idle" if idle else "next_request")
        except RunFinished:
            assert not self.open
        except SteerQueueFull:
            assert pending == 5
        else:
            assert self.open
            assert pending < 5
            self.accepted.append(steer)

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        steer = data.draw(st.sampled_from(self.accepted))
        waits = steer in self.queue.pending and steer not in self.taken
        assert self.queue.withdraw(steer) == waits

    @precondition(lambda self: not self.taken)
    @rule()
    def take(self) -> None:
        self.taken = self.queue.take()
        assert self.taken == [s for s in self.queue.pending if s.when == "next_request"]

    @rule(answered=st.booleans())
    def end_request(self, answered: bool) -> None:
        if answered:
            self.queue.settle(self.taken, 0, range(len(self.taken)))
        else:
            self.queue.put_back(self.taken)
        self.taken = []

    @precondition(lambda self: not self.taken)
    @rule(more=st.booleans())
    def end_turn(self, more: bool) -> None:
        pending = list(self.queue.pending)
        continued = self.queue.end_turn(more=more, reason=OVER)
        assert continued == (pending if more and self.open else [])
        self.open = self.open and bool(continued)

    @rule()
    def refuse(self) -> None:
        self.queue.refuse("The run was cancelled.")
        self.open = False

    @rule()
    def close(self) -> None:
        self.queue.close(OVER)
        self.open, self.taken = False, []

    @invariant()
    def every_steer_is_pending_or_has_one_fate(self) -> None:
        assert [s for s in self.accepted if s.state == "pending"] == list(self.queue.pending)
        assert [s for s in self.accepted if s.state == "unapplied"] == list(self.queue.unapplied)
        for steer in self.accepted:
            if steer.state != "pending":
                assert self.fates.setdefault(steer, steer.state) == steer.state


TestAnyOrder = AnyOrder.TestCase
