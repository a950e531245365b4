"""Runner: what is refused before a thread starts, and what runs share."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from steerkit import Endpoint, Image, Message, Runner, Spec, SpecError, Tool, ToolCall, assistant, tool_result, user
from steerkit.core.model import ModelRef
from steerkit.patterns import ReAct, ReWOO
from steerkit.testing import ScriptedModel, call, say
from tests.conftest import start

SPEC = Spec("m", "react", 3)


def answering() -> ScriptedModel:
    return ScriptedModel(lambda _: say("A"))


def refused(spec: Spec, messages: Any, *patterns: Any) -> str:
    """What `start` says; no thread was started, and nothing was sent."""
    model = answering()
    threads = threading.active_count()
    with pytest.raises(SpecError) as error:
        Runner(model, patterns or [ReAct()]).start(spec, messages, model.endpoint)
    assert (threading.active_count(), model.requests) == (threads, [])
    return str(error.value)


def test_a_run_is_a_start_and_a_wait() -> None:
    model = answering()
    assert Runner(model, [ReAct()]).run(SPEC, [user("Q")], model.endpoint).output == "A"


def test_an_unknown_pattern_is_refused_with_the_known_ones() -> None:
    message = refused(Spec("m", "plan", 3, tools=[]), [user("Q")], ReWOO(), ReAct())
    assert message == "There is no pattern named 'plan'. This runner has: react, rewoo."


def test_a_spec_that_the_pattern_cannot_work_with_is_refused() -> None:
    assert "Spec.tools is empty" in refused(Spec("m", "rewoo", 3), [user("Q")], ReWOO())


CALLING = assistant("", [ToolCall("c1", "look")])


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ("Q", "messages is a list of messages"),
        (user("Q"), "messages is a list of messages"),
        ([], "messages is empty"),
        ([user("Q"), "Q"], r"messages[1] is a str, not a Message"),
        ([user("Q"), CALLING], "Every provider refuses such a conversation"),
        ([user("Q"), tool_result("c1", "seen")], "Every provider refuses such a conversation"),
    ],
)
def test_messages_that_nobody_can_answer_are_refused(messages: Any, reason: str) -> None:
    assert reason in refused(SPEC, messages)


def test_images_for_a_model_that_takes_none_are_refused() -> None:
    spec = Spec(ModelRef("m", images=False), "react", 3)
    assert "takes none" in refused(spec, [user("Q", Image(b"x", "image/png"))])


def test_a_tool_schema_that_is_no_schema_is_refused() -> None:
    tool = Tool("look", "", {"type": "nonsense"}, lambda: None)
    assert "The tool 'look'" in refused(Spec("m", "react", 3, tools=[tool]), [user("Q")])


def test_the_arguments_of_a_hand_made_tool_are_checked_against_its_schema() -> None:
    ran: list[object] = []
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = Tool("look", "", schema, lambda n: ran.append(n))
    model = ScriptedModel([call("look", n="one"), call("look", n=1), say("A")])
    start(model, tools=[tool]).wait()
    assert ran == [1]


@pytest.mark.parametrize("pattern", [ReAct, object(), None])
def test_what_is_no_pattern_is_refused(pattern: Any) -> None:
    with pytest.raises(TypeError, match=r"such as ReAct\(\)"):
        Runner(answering(), [pattern])


def test_two_patterns_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Two patterns are named 'react'"):
        Runner(answering(), [ReAct(), ReAct()])


def test_runs_with_one_endpoint_share_one_client() -> None:
    made: list[Endpoint] = []
    model = answering()

    def client_for(endpoint: Endpoint) -> ScriptedModel:
        made.append(endpoint)
        return model

    runner = Runner(client_for, [ReAct()])
    here, there = Endpoint("http://here.invalid"), Endpoint("http://there.invalid")
    for endpoint in (here, there, Endpoint("http://here.invalid")):
        runner.run(SPEC, [user("Q")], endpoint)
    assert made == [here, there]


def test_two_threads_that_both_make_a_client_use_the_same_one() -> None:
    both = threading.Barrier(2)
    models: list[ScriptedModel] = []

    def client_for(_: Endpoint) -> ScriptedModel:
        both.wait(20)
        models.append(answering())
        return models[-1]

    runner = Runner(client_for, [ReAct()])
    endpoint = Endpoint("http://here.invalid")
    threads = [threading.Thread(target=lambda: runner.run(SPEC, [user("Q")], endpoint)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(model.requests) for model in models) == [0, 2]


def test_a_run_has_its_own_copy_of_the_messages() -> None:
    model = answering()
    messages: list[Message] = [user("Q")]
    result = Runner(model, [ReAct()]).run(SPEC, messages, model.endpoint)
    assert len(messages) == 1
    assert len(result.messages) == 2
