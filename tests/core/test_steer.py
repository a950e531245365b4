"""Steer: what can be said, and the receipt for it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit import Image, Text
from steerkit.core.message import parts
from steerkit.core.steer import steer_content
from steerkit.core.steer_queue import SteerQueue
from tests.conftest import in_thread


@given(st.text().filter(str.strip))
def test_any_text_that_is_not_blank_can_be_said(text: str) -> None:
    assert steer_content(text) == (Text(text),)


@pytest.mark.parametrize("content", ["", " \n\t", "\u00a0\u3000", [], ["", " "], Text(" ")])
def test_what_is_blank_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match="blank"):
        steer_content(content)


@pytest.mark.parametrize("text", ["\u200b", "\x00", "\u2060"])
def test_what_only_looks_blank_is_taken(text: str) -> None:
    assert steer_content(text) == (Text(text),)


def test_an_image_alone_can_be_said() -> None:
    image = Image(b"x", "image/png")
    assert steer_content(image) == (image,)


@pytest.mark.parametrize("content", [None, 7, b"x", {"a": 1}, [None]])
def test_what_is_no_content_is_refused(content: Any) -> None:
    with pytest.raises(TypeError):
        steer_content(content)


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        steer_content("a\ud83d")


def test_the_text_of_a_steer_leaves_images_out() -> None:
    steer = SteerQueue().put(parts(["a", Image(b"x", "image/png"), "b"]))
    assert steer.text == "ab"


def test_two_steers_that_say_the_same_are_two() -> None:
    queue = SteerQueue()
    one, other = queue.put(parts("a")), queue.put(parts("a"))
    assert one != other
    assert one.id != other.id


def test_the_ids_of_two_queues_differ() -> None:
    assert SteerQueue().put(parts("a")).id != SteerQueue().put(parts("a")).id


def test_a_wait_that_takes_too_long_says_pending() -> None:
    assert SteerQueue().put(parts("a")).wait(0) == "pending"


def test_a_wait_in_the_worker_is_refused_as_it_would_wait_for_itself() -> None:
    queue = SteerQueue()

    def work() -> None:
        queue.worker = threading.current_thread()
        steer = queue.put(parts("a"))
        with pytest.raises(RuntimeError, match="would wait for itself"):
            steer.wait()

    in_thread(work)


def test_the_repr_of_a_steer_says_what_and_how_far() -> None:
    steer = SteerQueue().put(parts("stop"))
    assert "stop" in repr(steer)
    assert "pending" in repr(steer)
    assert "Condition" not in repr(steer)
