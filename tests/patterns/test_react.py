"""ReAct: ask, run what is called, ask again."""

from __future__ import annotations

import pytest

from steerkit import AnswerCutOff, ModelError, StepLimitReached, ToolResultEvent, tool
from steerkit.testing import ScriptedModel, call, fail, say
from tests.conftest import start, texts


@tool
def look(at: str) -> str:
    """Look."""
    return f"seen {at}"


def test_the_answer_without_a_call_is_the_output() -> None:
    model = ScriptedModel([say("x")])
    result = start(model, tools=[look]).wait()
    assert (result.output, result.steps, texts(result.messages)) == ("x", 1, ["Q", "x"])


def test_each_call_is_answered_in_order_before_the_next_request() -> None:
    model = ScriptedModel([call("look", at="1") + call("look", at="2"), call("look", at="3"), say("x")])
    result = start(model, tools=[look]).wait()
    assert [texts(request.messages) for request in model.requests] == [
        ["Q"],
        ["Q", "", "seen 1", "seen 2"],
        ["Q", "", "seen 1", "seen 2", "", "seen 3"],
    ]
    assert result.messages == (*model.requests[2].messages, result.messages[-1])


def test_text_beside_a_call_is_kept_and_is_not_the_output() -> None:
    model = ScriptedModel([say("Let me look.") + call("look", at="1"), say("x")])
    result = start(model, tools=[look]).wait()
    assert (result.output, texts(result.messages)[1]) == ("x", "Let me look.")


def test_an_empty_answer_is_an_output() -> None:
    assert start(ScriptedModel([say("")])).wait().output == ""


def test_every_request_offers_the_tools_and_the_system_prompt_of_the_spec() -> None:
    model = ScriptedModel([call("look", at="1"), say("x")])
    start(model, tools=[look], system="Be terse.").wait()
    offered = [([tool.name for tool in request.tools], request.system) for request in model.requests]
    assert offered == [(["look"], "Be terse.")] * 2


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (call("find"), "There is no tool named 'find'. The tools are: look."),
        (call("look", '{"at": '), "not valid JSON"),
        (call("look", "[1]"), "are a JSON list, not an object"),
        (call("look"), "at: "),
    ],
)
def test_what_is_wrong_with_a_call_is_told_to_the_model_and_on_the_event(reply, told: str) -> None:
    run = start(ScriptedModel([reply, say("x")]), tools=[look])
    assert told in run.wait().messages[2].text
    (event,) = [event for event in run.events() if isinstance(event, ToolResultEvent)]
    assert event.error is not None


def test_at_the_step_limit_everything_done_so_far_is_on_the_error() -> None:
    model = ScriptedModel([call("look", at="1"), call("look", at="2"), say("never asked for")])
    with pytest.raises(StepLimitReached, match="max_steps=2") as ended:
        start(model, tools=[look], max_steps=2).wait()
    assert ended.value.result is not None
    assert texts(ended.value.result.messages) == ["Q", "", "seen 1", "", "seen 2"]


def test_the_calls_of_an_answer_that_was_cut_off_are_not_run() -> None:
    ran: list[str] = []

    @tool
    def note(text: str) -> None:
        """Note."""
        ran.append(text)

    half = (say("I will") + call("note", text="all")).finishing("length")
    with pytest.raises(AnswerCutOff) as ended:
        start(ScriptedModel([half]), tools=[note]).wait()
    assert (ran, ended.value.partial) == ([], "I will")
    assert ended.value.result is not None
    assert (ended.value.result.output, texts(ended.value.result.messages)) == ("I will", ["Q"])


def test_a_model_error_in_a_later_step_keeps_the_steps_before_it() -> None:
    with pytest.raises(ModelError) as ended:
        start(ScriptedModel([call("look", at="1"), fail(500)]), tools=[look]).wait()
    assert ended.value.result is not None
    assert texts(ended.value.result.messages) == ["Q", "", "seen 1"]
    assert ended.value.result.usage.output_tokens == 5
