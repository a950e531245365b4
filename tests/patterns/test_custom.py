"""A pattern of one's own: an object with a name and run(turn), and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import steerkit.patterns
from steerkit import PatternError, RunFailed, Runner, Spec, SpecError, TurnEvent, Usage, UsageEvent, tool, user
from steerkit.core.pattern import Turn
from steerkit.patterns import ReAct
from steerkit.testing import ScriptedModel, call, say
from tests.conftest import start, texts
from tests.steering.steered import label, steering_at

PATTERN_FILES = sorted(Path(steerkit.patterns.__file__).parent.glob("*.py"))


@tool
def look() -> str:
    """Look."""
    return "seen"


class TokenCeiling:
    """ReAct that stops when it has spent its tokens, and says so."""

    name = "token-ceiling"

    def __init__(self, most: int) -> None:
        self._most = most

    def run(self, turn: Turn) -> str:
        spent = Usage()
        while True:
            response = turn.ask()
            turn.messages.append(response.message)
            if not response.message.tool_calls:
                return response.message.text
            spent += response.usage or Usage()
            if spent.input_tokens + spent.output_tokens >= self._most:
                raise PatternError(f"The run has spent its {self._most} tokens.")
            turn.messages.extend([turn.answer(call) for call in response.message.tool_calls])


def test_a_pattern_with_a_token_ceiling_stops_at_it_and_keeps_what_was_done() -> None:
    model = ScriptedModel([call("look").using(60, 20)] * 9)
    with pytest.raises(PatternError, match="spent its 200 tokens") as ended:
        start(model, TokenCeiling(200), tools=[look]).wait()
    assert ended.value.result is not None
    assert (ended.value.result.steps, ended.value.result.usage) == (3, Usage(180, 60))
    assert "Not run" in ended.value.result.messages[-1].text


def test_a_pattern_of_ones_own_is_steered_without_knowing_it() -> None:
    model = ScriptedModel([call("look"), say("x")])
    start(model, TokenCeiling(1000), tools=[look], on_event=steering_at(UsageEvent, "S")).wait()
    assert texts(model.requests[1].messages)[-1] == label("S")


def test_a_pattern_may_ask_with_other_tools_another_prompt_and_other_messages() -> None:
    def run(turn: Turn) -> str:
        return turn.ask(messages=[user("Sum up.")], system="Sum up.", tools=(), tool_choice="none").message.text

    model = ScriptedModel([say("x")])
    result = start(model, run, tools=[look], system="Be terse.").wait()
    (request,) = model.requests
    assert (texts(request.messages), request.system, request.tools) == (["Sum up."], "Sum up.", ())
    assert texts(result.messages) == ["Q"]


def test_an_empty_system_prompt_of_a_pattern_is_not_the_specs() -> None:
    model = ScriptedModel([say("x")])
    start(model, lambda turn: turn.ask(system="").message.text, system="Be terse.").wait()
    assert model.requests[0].system == ""


def test_a_bug_in_a_pattern_ends_the_run_with_what_it_had_done() -> None:
    def run(turn: Turn) -> str:
        turn.messages.append(turn.ask().message)
        raise KeyError("plan")

    with pytest.raises(RunFailed, match="raised KeyError: 'plan'") as ended:
        start(ScriptedModel([say("x")]), run).wait()
    assert ended.value.result is not None
    assert texts(ended.value.result.messages) == ["Q", "x"]


def test_a_pattern_can_tell_events_of_its_own_steps() -> None:
    def run(turn: Turn) -> str:
        turn.ask()
        turn.emit(TurnEvent())
        return "x"

    handle = start(ScriptedModel([say("x")]), run)
    handle.wait()
    assert [(event.turn, event.step) for event in handle.events() if isinstance(event, TurnEvent)] == [(1, 0), (1, 1)]


def test_a_pattern_may_refuse_a_spec_before_anything_starts() -> None:
    class Picky(TokenCeiling):
        def check(self, spec: Spec) -> None:
            raise SpecError("I want two tools.")

    with pytest.raises(SpecError, match="I want two tools"):
        start(ScriptedModel([]), Picky(1))


def test_an_unknown_pattern_is_refused_with_the_known_ones() -> None:
    model = ScriptedModel([])
    runner = Runner(model, [TokenCeiling(1), ReAct()])
    with pytest.raises(SpecError, match=r"no pattern named 'raect'\. This runner has: react, token-ceiling"):
        runner.start(Spec("m", "raect", 3), [user("Q")], model.endpoint)


@pytest.mark.parametrize("pattern", [ReAct, "react", object()])
def test_what_is_no_pattern_object_is_refused_when_the_runner_is_built(pattern: Any) -> None:
    with pytest.raises(TypeError, match=r"such as ReAct\(\)"):
        Runner(ScriptedModel([]), [pattern])


@pytest.mark.parametrize("file", PATTERN_FILES, ids=lambda file: file.name)
def test_no_pattern_speaks_of_steering(file: Path) -> None:
    words = file.read_text().lower().replace("steerkit", "")
    assert "steer" not in words


def test_a_request_for_what_is_no_message_is_refused_in_words() -> None:
    class Wrong:
        name = "wrong"

        def run(self, turn: Turn) -> str:
            return turn.ask(messages=["hello"]).message.text  # type: ignore[list-item]

    model = ScriptedModel([say("never")])
    with pytest.raises(RunFailed, match="takes Message objects only"):
        Runner(model, [Wrong()]).run(Spec("m", "wrong", 2), [user("Q")], model.endpoint)
    assert model.requests == []
