"""Steers through real clients and real sockets: they reach every provider format, once, in a shape that it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from steerkit import Endpoint, ModelClient, Run, RunCancelled, Runner, Spec, StepEvent, ToolCallEvent, tool, user
from steerkit.models import anthropic_messages, openai_chat, openai_responses
from steerkit.patterns import ReAct
from steerkit.run import OnEvent
from steerkit.testing import Gateway, call, fail, say
from tests.conftest import PATIENCE, said
from tests.steering.steered import steering_at

CLIENTS = [anthropic_messages, openai_chat, openai_responses]
Client = Callable[[Endpoint], ModelClient]


@tool
def look() -> str:
    """Look."""
    return "seen"


def start(gateway: Gateway, client: Client, on_event: OnEvent | None = None, **settings: Any) -> Run:
    spec = Spec("some-model", "react", 5, tools=[look], **settings)
    return Runner(client, [ReAct()]).start(spec, [user("Q")], gateway.endpoint, on_event)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
@pytest.mark.parametrize("stream", [True, False])
def test_a_steer_is_in_the_json_of_every_provider_format_once(client: Client, stream: bool) -> None:  # B14, B31
    with Gateway([call("look"), call("look"), say("x")]) as gateway:
        result = start(gateway, client, steering_at(ToolCallEvent, "S-1 größer"), stream=stream).wait()
        bodies = [recorded.raw.decode() for recorded in gateway.requests]
    assert [body.count("S-1 ") for body in bodies] == [0, 1, 1]
    assert said(result.messages) == ["S-1 größer"]


@pytest.mark.parametrize("strict", ["mistral", "alternate"])
def test_where_no_user_message_may_follow_a_result_the_steer_still_arrives(strict: Any) -> None:  # B29
    with Gateway([call("look"), call("look"), say("x")], strict=strict) as gateway:
        result = start(gateway, openai_chat, steering_at(ToolCallEvent, "S-1")).wait()
        last = gateway.requests[-1].raw.decode()
    assert (result.output, last.count("S-1")) == ("x", 1)
    # The transcript shows it as the user's, whatever the wire made of it.
    assert [message.role for message in result.messages] == [
        "user", "assistant", "tool", "user", "assistant", "tool", "assistant",
    ]  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_request_that_the_client_sends_again_carries_the_steer_once(client: Client) -> None:  # B70
    script = [call("look"), fail(503, headers={"retry-after-ms": "1", "retry-after": "0"}), say("x")]
    with Gateway(script) as gateway:
        result = start(gateway, client, steering_at(StepEvent, "S-1", number=2)).wait()
        bodies = [recorded.raw.decode() for recorded in gateway.requests]
    assert [body.count("S-1") for body in bodies] == [0, 1, 1]
    assert (result.steps, said(result.messages)) == (2, ["S-1"])


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_cancel_breaks_a_request_that_hangs_and_hands_the_steer_back(client: Client) -> None:  # B71
    never = threading.Event()
    with Gateway([say("x").after(never)]) as gateway:
        run = start(gateway, client)
        gateway.wait_for_requests(1, PATIENCE)
        steer = run.steer("S-1")
        run.cancel()
        with pytest.raises(RunCancelled) as cancelled:
            run.wait(PATIENCE)
    assert cancelled.value.result is not None
    assert cancelled.value.result.unapplied_steers == (steer,)
