"""Placement: where steers stand in a conversation. Pure; knows nothing of threads or queues.

A steer is pinned behind the message that it followed in the first request that carried it. For a conversation that
only grows, that is one index for ever. A pattern may also send another list, replace its last answer or shorten its
history; then the steer

1. follows the latest message still there of those that stood before it, or leads if none of them is left,
2. is kept out of a call and its results: it moves behind a finished group, and before an unfinished one,
3. does not become the last word of a conversation that has grown: the model would take it for a new instruction
   in every step, and never conclude.

The same function places steers in requests and in the result, so the two cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from steerkit.core.message import Message
from steerkit.core.pairing import group_at


@frozen(eq=False)
class Pin:
    """`message` carries a steer; `before` is the conversation that it followed, other steers left out."""

    message: Message
    before: Sequence[Message]


def place(messages: Sequence[Message], pins: Sequence[Pin]) -> tuple[tuple[Message, ...], tuple[int, ...]]:
    """`messages` with every pinned message in its place, and the index at which each pin now stands.

    Pins at one place keep their order. Linear in messages plus pins.
    """
    if not pins:
        return tuple(messages), ()
    first_index: dict[int, int] = {}
    for index in range(len(messages) - 1, -1, -1):
        first_index[id(messages[index])] = index
    slots = [_slot(messages, pin, first_index) for pin in pins]

    placed: list[Message] = []
    indexes = [0] * len(pins)
    done = 0
    for number in sorted(range(len(pins)), key=slots.__getitem__):
        placed += messages[done : slots[number]]
        done = slots[number]
        indexes[number] = len(placed)
        placed.append(pins[number].message)
    placed += messages[done:]
    return tuple(placed), tuple(indexes)


def _slot(messages: Sequence[Message], pin: Pin, first_index: dict[int, int]) -> int:
    """How many of `messages` stand before this pin."""
    slot = _outside_groups(messages, _behind_the_latest_left(messages, pin.before, first_index))
    if slot == len(messages) and slot > len(pin.before):
        slot -= 1
        group = group_at(messages, slot)
        return group.start if group else slot
    return slot


def _behind_the_latest_left(messages: Sequence[Message], before: Sequence[Message], first_index: dict[int, int]) -> int:
    count = len(before)
    if count == 0 or (count <= len(messages) and messages[count - 1] is before[-1]):
        return count
    # What both begin with may be equal and not the same: a pattern that builds its list anew makes equal messages.
    alike = 0
    while alike < min(count, len(messages)) and (messages[alike] is before[alike] or messages[alike] == before[alike]):
        alike += 1
    for message in reversed(before[alike:]):
        index = first_index.get(id(message), -1)
        if index >= alike:
            return index + 1
    return alike


def _outside_groups(messages: Sequence[Message], slot: int) -> int:
    group = group_at(messages, slot - 1) if slot else None
    if group is None:
        return slot
    return group.start if group.open_calls else group.end
