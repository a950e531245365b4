"""Checks of values that users give, each with a sentence that says what was expected instead."""

from __future__ import annotations

from typing import Any


def check_kind(what: str, value: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Raises: ValueError, unless `value` is of `kind`; `expected` names what it should be."""
    if not isinstance(value, kind):
        raise ValueError(f"{what} is {expected}, not {value!r}.")


def check_whole(what: str, value: Any, least: int) -> None:
    """Raises: ValueError, unless `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{what} is a whole number, {least} or more, not {value!r}.")


def check_seconds(what: str, value: Any) -> None:
    """Raises: ValueError, unless `value` is a number above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"{what} is a number of seconds, above 0, not {value!r}.")


def check_callable(what: str, value: object, expected: str) -> None:
    """Raises: ValueError, unless `value` can be called, or is None."""
    if value is not None and not callable(value):
        raise ValueError(f"{what} is {expected}, not {value!r}.")
