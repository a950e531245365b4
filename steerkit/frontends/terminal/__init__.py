"""Type at a run while it works."""

from steerkit.frontends.terminal.stdin import steer_from_stdin

__all__ = ["steer_from_stdin"]
