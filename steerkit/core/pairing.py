"""Calls and their results: every provider wants each tool call answered at once, by exactly one result.

A *group* is an assistant message with tool calls and the tool messages straight behind it. Nothing may stand inside
a group; a provider answers HTTP 400 if it does.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from steerkit.core.message import Message, tool_result


@frozen
class Group:
    """`messages[start]` calls, `messages[start+1:end]` answer, `open_calls` are the ids nobody answered yet."""

    start: int
    end: int
    open_calls: tuple[str, ...]


def group_at(messages: Sequence[Message], index: int) -> Group | None:
    """The group that `messages[index]` belongs to; None if it is no part of one."""
    start = index
    while start >= 0 and messages[start].role == "tool":
        start -= 1
    if start < 0 or not messages[start].tool_calls:
        return None
    end = start + 1
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    answered = {message.tool_call_id for message in messages[start + 1 : end]}
    return Group(start, end, tuple(call.id for call in messages[start].tool_calls if call.id not in answered))


def close_open_calls(messages: Sequence[Message], reason: str) -> tuple[Message, ...]:
    """`messages` with every unanswered tool call answered by a result that gives `reason`."""
    closed: list[Message] = []
    index = 0
    while index < len(messages):
        group = group_at(messages, index) if messages[index].tool_calls else None
        if group is None:
            closed.append(messages[index])
            index += 1
            continue
        closed.extend(messages[group.start : group.end])
        closed.extend(tool_result(call_id, reason) for call_id in group.open_calls)
        index = group.end
    return tuple(closed)


def check_pairs(messages: Sequence[Message]) -> None:
    """Refuse a conversation that every provider would refuse.

    Raises:
        ValueError: a call without a result straight behind it, or a result without its call.
    """
    index = 0
    while index < len(messages):
        message = messages[index]
        if message.role == "tool":
            raise ValueError(
                f"messages[{index}] answers tool call {message.tool_call_id!r}, but no call stands straight before it."
            )
        group = group_at(messages, index) if message.tool_calls else None
        if group is None:
            index += 1
            continue
        called = {call.id for call in message.tool_calls}
        if group.open_calls:
            raise ValueError(
                f"messages[{index}] has tool calls without results straight behind them: "
                f"{', '.join(map(repr, group.open_calls))}. Add a tool_result for each."
            )
        # None is open, so as many results as calls are exactly theirs.
        if group.end - group.start - 1 != len(called):
            raise ValueError(f"The results behind messages[{index}] do not match its tool calls one to one.")
        index = group.end
