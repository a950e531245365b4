"""Ways to make tools."""

from steerkit.tools.function import tool

__all__ = ["tool"]
