"""Shipped fakes: run an agent without a provider, in tests and in examples.

`ScriptedModel` answers in process; `Gateway` is a real HTTP server on loopback that speaks the providers' formats. Both
play a script of replies: `[say("Let me look.") + call("search", query="steer"), say("It is in run.py.")]`.
"""

from steerkit.testing.demo import gateway_or_env
from steerkit.testing.gateway import Gateway, Recorded
from steerkit.testing.model_contract import ModelContract
from steerkit.testing.reply import Answer, Failure, Raw, Reply, call, cut, fail, raw, say
from steerkit.testing.script import ScriptOver
from steerkit.testing.scripted_model import ScriptedModel

__all__ = [
    "Answer",
    "Failure",
    "Gateway",
    "ModelContract",
    "Raw",
    "Recorded",
    "Reply",
    "ScriptOver",
    "ScriptedModel",
    "call",
    "cut",
    "fail",
    "gateway_or_env",
    "raw",
    "say",
]
