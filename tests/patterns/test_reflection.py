"""Reflection: answer, criticise, rewrite."""

from __future__ import annotations

from typing import Any

import pytest

from steerkit import AnswerCutOff, CritiqueError, SpecError, SteerkitError, StepLimitReached, tool
from steerkit.core.pairing import check_pairs
from steerkit.patterns import Reflection
from steerkit.patterns.reflection import CRITICISING, REWRITING, SATISFIED
from steerkit.testing import Answer, ScriptedModel, call, fail, say
from tests.conftest import start, texts


@tool
def look() -> str:
    """Look."""
    return "seen"


def critique(good: bool, text: str = "Too long.") -> Answer:
    return call("submit_critique", good=good, critique=text)


def _messages(error: SteerkitError) -> list[str]:
    assert error.result is not None
    check_pairs(error.result.messages)
    return texts(error.result.messages)


def test_a_bad_answer_is_written_again_and_the_rewrite_is_the_output() -> None:
    model = ScriptedModel([call("look"), say("draft"), critique(False), say("better")])
    result = start(model, Reflection(), tools=[look]).wait()
    assert (result.output, result.steps) == ("better", 4)
    assert texts(result.messages)[3:] == ["draft", CRITICISING, "", REWRITING, "better"]


def test_a_good_answer_is_the_output_and_no_rewrite_is_asked_for() -> None:
    model = ScriptedModel([say("draft"), critique(True, "")])
    result = start(model, Reflection(cycles=5)).wait()
    assert (result.output, len(model.requests)) == ("draft", 2)
    assert texts(result.messages)[-1] == SATISFIED
    check_pairs(result.messages)


def test_no_more_cycles_than_asked_for_are_made() -> None:
    model = ScriptedModel([say("1"), critique(False), say("2"), critique(False), say("3")])
    assert start(model, Reflection(cycles=2)).wait().output == "3"


def test_the_critique_can_only_be_submitted_and_the_rewrite_only_written() -> None:
    model = ScriptedModel([say("draft"), critique(False), say("better")])
    start(model, Reflection(), tools=[look]).wait()
    offered = [([tool.name for tool in request.tools], request.tool_choice) for request in model.requests]
    assert offered == [(["look"], "auto"), (["submit_critique"], "auto"), (["submit_critique"], "none")]


@pytest.mark.parametrize(
    "reply",
    [say("It is fine."), say(""), call("look"), critique(True) + critique(True), critique(True) + call("look")],
    ids=["text", "nothing", "another tool", "two critiques", "a critique and a call"],
)
def test_no_critique_is_an_error_and_the_answer_is_in_the_messages(reply: Answer) -> None:
    with pytest.raises(CritiqueError, match="did not submit a critique") as ended:
        start(ScriptedModel([say("draft"), reply]), Reflection(), tools=[look]).wait()
    assert _messages(ended.value) == ["Q", "draft", CRITICISING]


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "{}",
        '{"good": true}',
        '{"critique": "x"}',
        '{"good": "yes", "critique": "x"}',
        '{"good": 1, "critique": "x"}',
        '{"good": null, "critique": "x"}',
        '{"good": true, "critique": 3}',
        '{"good": tr',
        "[true]",
    ],
)
def test_a_critique_that_does_not_say_whether_the_answer_is_good_is_an_error(arguments: str) -> None:
    with pytest.raises(CritiqueError) as ended:
        start(ScriptedModel([say("draft"), call("submit_critique", arguments)]), Reflection()).wait()
    assert _messages(ended.value) == ["Q", "draft", CRITICISING]


@pytest.mark.parametrize(
    "script",
    [
        [say("dra").finishing("length")],
        [say("draft"), critique(True).finishing("length")],
        [say("draft"), critique(False), say("bett").finishing("length")],
    ],
    ids=["answer", "critique", "rewrite"],
)
def test_an_answer_that_was_cut_off_is_an_error_wherever_it_comes(script: list[Answer]) -> None:
    with pytest.raises(AnswerCutOff) as ended:
        start(ScriptedModel(script), Reflection()).wait()
    assert _messages(ended.value)[0] == "Q"


def test_when_the_rewrite_fails_the_draft_and_its_critique_are_in_the_messages() -> None:
    with pytest.raises(SteerkitError) as ended:
        start(ScriptedModel([say("draft"), critique(False), fail(500)]), Reflection()).wait()
    assert _messages(ended.value) == ["Q", "draft", CRITICISING, "", REWRITING]


def test_critique_and_rewrite_take_steps() -> None:
    with pytest.raises(StepLimitReached) as ended:
        start(ScriptedModel([say("draft"), critique(False)]), Reflection(), max_steps=2).wait()
    assert _messages(ended.value)[1] == "draft"


@pytest.mark.parametrize("cycles", [0, -1, 1.5, True, "2", None])
def test_cycles_are_a_whole_number_above_none(cycles: Any) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        Reflection(cycles)


def test_a_tool_named_like_the_patterns_own_is_refused() -> None:
    @tool
    def submit_critique() -> None:
        """Submit."""

    with pytest.raises(SpecError, match="rename yours"):
        start(ScriptedModel([]), Reflection(), tools=[submit_critique])
