"""When to call the model: one pattern a file, and ReAct reads like its own definition."""

from steerkit.patterns.plan import Plan
from steerkit.patterns.react import ReAct
from steerkit.patterns.reflection import Reflection
from steerkit.patterns.rewoo import ReWOO

__all__ = ["Plan", "ReAct", "ReWOO", "Reflection"]
