"""Placement modes: how a conversation with steers is shaped for a provider. Pure; the conversation stays as it is.

    raw      as it is: results, user message
    bridge   results, a fixed assistant text, user message; user messages in a row become one
    join     user messages in a row become one
    fold     a steer behind results becomes the end of the last result
    system   a steer behind results or a user message becomes a system message, at one place only one

What is made of messages is kept in the memo of the first of them. So it is the same object in every later request, and
its JSON is made once too. The fixed texts are part of prompts that servers keep in caches: changing them is a miss.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from steerkit.core.message import Image, Message, Part, Text, assistant
from steerkit.models.wire import Mode

NO_OUTPUT = "(no output)"
IMAGE_BELOW = "(image attached below)"
BRIDGE = assistant("Noted.")


def shape(messages: Sequence[Message], mode: Mode, *, images_in_results: bool = False) -> list[Message]:
    """`messages` as `mode` has them. Without `images_in_results`, images of tool results follow in a user message.

    An assistant message with neither text nor calls is left out: it says nothing, and providers refuse it.
    """
    shaped = [
        message for message in messages if message.role != "assistant" or message.tool_calls or message.text.strip()
    ]
    if mode == "fold":
        shaped = _fold(shaped)
    if not images_in_results and any(message.has_image for message in shaped):
        shaped = _images_behind_results(shaped)
    if mode == "system":
        shaped = _as_system(shaped)
    if mode in ("bridge", "join"):
        shaped = _merge_neighbours(shaped, "user")
    if mode == "bridge":
        shaped = _bridge(shaped)
    return shaped


def is_steer(message: Message) -> bool:
    return message.role == "user" and "steer_id" in message.meta


def short_id(call_id: str) -> str:
    """9 letters and digits, the same for the same id: what the strictest provider (Mistral) takes."""
    if len(call_id) == 9 and call_id.isalnum() and call_id.isascii():
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def _fold(messages: Iterable[Message]) -> list[Message]:
    folded: list[Message] = []
    for message in messages:
        if folded and folded[-1].role == "tool" and is_steer(message):
            folded[-1] = _made_of(_fold_two, folded[-1], message)
        else:
            folded.append(message)
    return folded


def _fold_two(result: Message, steer: Message) -> Message:
    parts = _joined(result.content if _has_content(result) else (Text(NO_OUTPUT),), steer.content)
    return Message("tool", parts, tool_call_id=result.tool_call_id)


def _has_content(message: Message) -> bool:
    return message.has_image or bool(message.text)


def _images_behind_results(messages: Sequence[Message]) -> list[Message]:
    """Only user messages may carry images on chat completions, so those of results follow behind the whole group."""
    shaped: list[Message] = []
    results: list[Message] = []
    for message in messages:
        if results and message.role != "tool":
            shaped.append(_made_of(_images_of, *results))
            results = []
        if message.role == "tool" and message.has_image:
            results.append(message)
            shaped.append(_made_of(_without_images, message))
        else:
            shaped.append(message)
    if results:
        shaped.append(_made_of(_images_of, *results))
    return shaped


def _images_of(*results: Message) -> Message:
    return Message("user", [part for result in results for part in result.content if isinstance(part, Image)])


def _without_images(result: Message) -> Message:
    text = result.text
    return Message("tool", f"{text}\n\n{IMAGE_BELOW}" if text else IMAGE_BELOW, tool_call_id=result.tool_call_id)


def _as_system(messages: Iterable[Message]) -> list[Message]:
    """A system message stands behind a user turn; an image cannot stand in one, so it precedes as that user turn."""
    shaped: list[Message] = []
    for message in messages:
        if is_steer(message) and shaped and (shaped[-1].role in ("user", "tool") or _made_system(shaped[-1])):
            if message.has_image:
                place = len(shaped) - 1 if _made_system(shaped[-1]) else len(shaped)
                shaped.insert(place, _made_of(_images_of, message))
            if message.text:
                shaped.append(_made_of(_system_text, message))
        else:
            shaped.append(message)
    return _merge_neighbours(shaped, "system")


def _system_text(steer: Message) -> Message:
    return Message("system", steer.text, meta=steer.meta)


def _made_system(message: Message) -> bool:
    return message.role == "system" and "steer_id" in message.meta


def _merge_neighbours(messages: Iterable[Message], role: str) -> list[Message]:
    """One message for each row of `role`; system messages that are no steers stay apart."""
    merged: list[Message] = []
    row: list[Message] = []
    for message in messages:
        if message.role == role and (role == "user" or _made_system(message)):
            row.append(message)
            continue
        if row:
            merged.append(_made_of(_merge, *row))
            row = []
        merged.append(message)
    if row:
        merged.append(_made_of(_merge, *row))
    return merged


def _merge(*row: Message) -> Message:
    parts: tuple[Part, ...] = ()
    for message in row:
        parts = _joined(parts, message.content)
    return Message(row[0].role, parts)


def _joined(first: tuple[Part, ...], second: tuple[Part, ...]) -> tuple[Part, ...]:
    """Both, with a blank line between texts that meet."""
    if first and second and isinstance(first[-1], Text) and isinstance(second[0], Text):
        return (*first[:-1], Text(f"{first[-1].text}\n\n{second[0].text}"), *second[1:])
    return first + second


def _bridge(messages: Iterable[Message]) -> list[Message]:
    shaped: list[Message] = []
    for message in messages:
        if message.role == "user" and shaped and shaped[-1].role == "tool":
            # Templates that want roles to alternate skip results and calls, so this is a plain text, and not empty.
            shaped.append(BRIDGE)
        shaped.append(message)
    return shaped


def _made_of(make: Callable[..., Message], first: Message, *rest: Message) -> Message:
    """`make(first, *rest)`, made once as long as `first` lives. One message in a row of one stays itself."""
    if make is _merge and not rest:
        return first
    key = (make, rest)
    made = first.memo.get(key)
    if made is None:
        made = first.memo.setdefault(key, make(first, *rest))
    assert isinstance(made, Message)
    return made
