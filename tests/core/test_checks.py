"""Values of the wrong kind are refused by a sentence that says what was expected, before anything is started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steerkit import Endpoint, Message, ModelRef, Runner, Spec, SpecError, Tool, dump_messages, user
from steerkit.patterns import ReAct
from steerkit.testing import ScriptedModel, say

URL = "http://localhost/v1"


def spec(**settings: Any) -> Spec:
    return Spec(**{"model": "m", "pattern": "react", "max_steps": 2, **settings})


def started(*arguments: Any) -> None:
    model = ScriptedModel([say("never")])
    Runner(model, [ReAct()]).start(*arguments)


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ModelRef("m", max_tokens="3"), ValueError, "max_tokens is a whole number"),  # type: ignore[arg-type]
    (lambda: ModelRef("m", max_tokens=0), ValueError, "max_tokens is a whole number, 1 or more, not 0"),
    (lambda: ModelRef("m", temperature="hot"), ValueError, "temperature is a number or None"),  # type: ignore[arg-type]
    (lambda: ModelRef("m", extra=[1]), ValueError, "extra is a dict"),  # type: ignore[arg-type]
    (lambda: ModelRef("m", images="no"), ValueError, "images is True or False"),  # type: ignore[arg-type]
    (lambda: Endpoint(URL, connect_timeout="3"), ValueError, "connect_timeout is a number of seconds"),  # type: ignore[arg-type]
    (lambda: Endpoint(URL, read_timeout=0), ValueError, "read_timeout is a number of seconds, above 0, not 0"),
    (lambda: Endpoint(URL, read_timeout=True), ValueError, "read_timeout is a number of seconds"),
    (lambda: Endpoint(URL, max_retries=-1), ValueError, "max_retries is a whole number, 0 or more"),
    (lambda: Endpoint(URL, placement="below"), ValueError, "one of auto, raw, bridge"),  # type: ignore[arg-type]
    (lambda: spec(pattern=None), SpecError, "Spec.pattern is the name"),
    (lambda: spec(max_steps=True), SpecError, "Spec.max_steps is a whole number"),
    (lambda: spec(system=b"x"), SpecError, "Spec.system is a text or None"),
    (lambda: spec(steer_continuations=-1), SpecError, "Spec.steer_continuations is a whole number"),
    (lambda: spec(stream="yes"), SpecError, "Spec.stream is True or False"),
    (lambda: spec(approve=True), SpecError, "Spec.approve is a function"),
    (lambda: spec(tools=None), SpecError, "Spec.tools is a list of tools, not None"),
    (lambda: spec(tools=Tool("t", "", {}, print)), SpecError, "Spec.tools is a list of tools"),
    (lambda: Tool("t", "", {}, None), TypeError, "cannot be called"),  # type: ignore[arg-type]
    (lambda: Runner("openai", [ReAct()]), TypeError, "a function of an Endpoint"),  # type: ignore[arg-type]
    (lambda: started({}, [user("Q")], Endpoint(URL)), SpecError, "spec is a Spec"),
    (lambda: started(spec(), [user("Q")], URL), SpecError, "endpoint is an Endpoint"),
    (lambda: started(spec(), [user("Q")], Endpoint(URL), "print"), SpecError, "on_event is a function"),
    (lambda: started(spec(), [user("Q"), user(" \n")], Endpoint(URL)), SpecError, r"messages\[1\] is blank"),
    (lambda: dump_messages(["x"]), TypeError, "Only messages can be dumped"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("make", "error", "words"), WRONG, ids=[words for _, _, words in WRONG])
def test_a_wrong_value_is_refused_in_words(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_values_that_look_odd_and_are_right_are_taken() -> None:
    assert ModelRef("m", temperature=0, extra={}).temperature == 0
    assert spec(approve=None, system="", tools=iter([])).tools == ()
    assert Message("user").text == ""
