"""steerkit: run LLM agents from plain synchronous Python, and say something to them while they work.

To read it, begin with `run.py` (the handle, and how a run ends), then `core/pattern.py` and `patterns/react.py` (an
agent in ten lines), then the three files that make steering: `core/steer_queue.py`, `core/placement.py` and
`middleware/steering.py`, which joins them.
"""

from steerkit.core.codec import dump_messages, load_messages
from steerkit.core.errors import (
    AnswerCutOff,
    CritiqueError,
    ModelError,
    PatternError,
    PlanError,
    RunCancelled,
    RunFailed,
    RunFinished,
    SpecError,
    SteerkitError,
    SteerQueueFull,
    SteerRefused,
    StepLimitReached,
)
from steerkit.core.event import (
    EndEvent,
    Event,
    SteerEvent,
    SteerReturnedEvent,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnEvent,
    UsageEvent,
)
from steerkit.core.message import Image, Message, Text, ToolCall, assistant, tool_result, user
from steerkit.core.model import Endpoint, ModelClient, ModelRef, Request, Response, Usage
from steerkit.core.pattern import Pattern, Turn
from steerkit.core.spec import Result, Spec
from steerkit.core.steer import Steer
from steerkit.core.tool import Tool, ToolContext
from steerkit.run import Run
from steerkit.runner import Runner
from steerkit.tools.function import tool

__all__ = [
    "AnswerCutOff",
    "CritiqueError",
    "EndEvent",
    "Endpoint",
    "Event",
    "Image",
    "Message",
    "ModelClient",
    "ModelError",
    "ModelRef",
    "Pattern",
    "PatternError",
    "PlanError",
    "Request",
    "Response",
    "Result",
    "Run",
    "RunCancelled",
    "RunFailed",
    "RunFinished",
    "Runner",
    "Spec",
    "SpecError",
    "Steer",
    "SteerEvent",
    "SteerQueueFull",
    "SteerRefused",
    "SteerReturnedEvent",
    "SteerkitError",
    "StepEvent",
    "StepLimitReached",
    "Text",
    "TextEvent",
    "Tool",
    "ToolCall",
    "ToolCallEvent",
    "ToolContext",
    "ToolResultEvent",
    "Turn",
    "TurnEvent",
    "Usage",
    "UsageEvent",
    "assistant",
    "dump_messages",
    "load_messages",
    "tool",
    "tool_result",
    "user",
]
