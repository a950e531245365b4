"""A steered ReAct run with a real model: its answer shows that it read the steer.

    python -m tests.live.llamacpp BASE_URL MODEL

A small model is asked, so each check may be tried a few times; one success shows that everything on the way works.
"""

from __future__ import annotations

import sys

from steerkit import Endpoint, Event, Run, Runner, Spec, ToolCallEvent, tool, user
from steerkit.models import openai_chat
from steerkit.patterns import ReAct
from tests.live.checks import run_checks

TRIES = 4
SYSTEM = "Use the tool to look the weather up, then answer in one short sentence."
STEER = "Also say the word PELICAN in your answer."


@tool
def get_weather(city: str) -> str:
    """The weather in a city now."""
    return f"{city}: 4 degrees, rain"


def steered(stream: bool) -> str:
    for attempt in range(1, TRIES + 1):
        applied: list[str] = []

        def speak(run: Run, event: Event) -> None:
            if isinstance(event, ToolCallEvent) and not applied:  # noqa: B023
                applied.append(run.steer(STEER).id)  # noqa: B023

        spec = Spec(sys.argv[2], "react", max_steps=6, tools=[get_weather], system=SYSTEM, stream=stream)
        endpoint = Endpoint(sys.argv[1], read_timeout=300)
        question = [user("What is the weather in Oslo?")]
        result = Runner(openai_chat, [ReAct()]).run(spec, question, endpoint, speak)
        carried = [message for message in result.messages if message.meta.get("steer_id") in applied]
        if applied and len(carried) == 1 and "pelican" in result.output.lower():
            return f"try {attempt}: {result.output.strip()!r}, {result.steps} steps, {result.usage}"
    raise AssertionError(f"no answer in {TRIES} tries shows the steer; the last one: {result.output!r}")


def a_steered_run_plain() -> str:
    return steered(stream=False)


def a_steered_run_streamed() -> str:
    return steered(stream=True)


if __name__ == "__main__":
    run_checks(f"llama.cpp with {sys.argv[2]}", [a_steered_run_plain, a_steered_run_streamed])
