"""EventLog: every reader gets every event, whenever it begins."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from steerkit import EndEvent, Event, Result, StepEvent, TextEvent, Usage
from steerkit.core.event_log import EventLog
from tests.conftest import PATIENCE, ToldCondition, woken

END = EndEvent(result=Result("", (), Usage(), 0, 1, ()))


def test_a_reader_that_comes_late_gets_all_events() -> None:
    log = EventLog()
    events = [StepEvent(), TextEvent(text="a"), END]
    assert all(map(log.append, events))
    assert list(log.read()) == list(log.read()) == events


def test_a_reader_gets_events_as_they_come() -> None:
    log = EventLog()
    log.append(StepEvent())
    reader = log.read()
    first = next(reader)
    assert isinstance(first, StepEvent)
    log.append(END)
    assert list(reader) == [END]


@pytest.mark.parametrize("end", [lambda log: log.append(END), lambda log: log.close()], ids=["append", "close"])
def test_a_reader_that_waits_is_woken(end: Callable[[EventLog], object]) -> None:
    log = EventLog()
    log._changed = changed = ToldCondition()
    assert woken(changed, lambda: list(log.read()), lambda: end(log))


def test_many_readers_get_the_same_events() -> None:
    log = EventLog()
    seen: list[list[Event]] = [[], [], []]
    readers = [threading.Thread(target=lambda mine=mine: mine.extend(log.read())) for mine in seen]
    for reader in readers:
        reader.start()
    events = [StepEvent() for _ in range(100)]
    for event in events:
        log.append(event)
    log.close()
    for reader in readers:
        reader.join(PATIENCE)
    assert seen == [events] * 3


def test_nothing_follows_the_end() -> None:
    log = EventLog()
    log.append(END)
    assert not log.append(StepEvent())
    assert list(log.read()) == [END]


def test_a_reader_may_append_while_it_reads_as_no_lock_is_held() -> None:
    log = EventLog()
    log.append(StepEvent())
    seen = []
    for event in log.read():
        seen.append(event)
        log.append(END)
    assert seen[-1] is END
