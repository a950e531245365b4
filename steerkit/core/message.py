"""The conversation: frozen values, tuples all the way down.

A message never changes once it is made. That is what lets a steer be pinned to a message, a wire format encode a
message once for the whole run, and any thread read a conversation while the worker extends it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from attrs import field, frozen

Role = Literal["system", "user", "assistant", "tool"]


def _whole_text(value: str) -> str:
    """`value` with surrogate pairs joined; a lone surrogate is refused here, not when a request is encoded."""
    if not isinstance(value, str):
        raise TypeError(f"Text takes a str, not {type(value).__name__}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise ValueError(
                "The text has a lone surrogate, which no request can carry: remove or replace it."
            ) from None
    return value


@frozen
class Text:
    """A piece of text; any Unicode but lone surrogates."""

    text: str = field(converter=_whole_text)


@frozen
class Image:
    """A picture: its bytes as they are in the file, and their media type (`image/png`)."""

    data: bytes = field(repr=lambda data: f"<{len(data)} bytes>")
    media_type: str

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise TypeError(f"Image data is bytes, not {type(self.data).__name__}.")
        if not self.data:
            raise ValueError("Image data is empty.")
        if not (isinstance(self.media_type, str) and self.media_type.startswith("image/")):
            raise ValueError(f"Image media_type is like 'image/png', not {self.media_type!r}.")


Part = Text | Image
Content = str | Part | Iterable[str | Part]


def parts(content: Content) -> tuple[Part, ...]:
    """`content` as the tuple of parts that a message holds.

    Raises:
        TypeError: it is neither a str, a Text, an Image nor a series of these.
        ValueError: a text has a lone surrogate.
    """
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, (Text, Image)):
        return (content,)
    if isinstance(content, (bytes, Mapping)) or not isinstance(content, Iterable):
        raise TypeError(f"Content is a str, Text, Image or a list of these, not {type(content).__name__}.")
    return tuple(part for item in content for part in (_one_part(item),))


def _one_part(item: object) -> Part:
    if isinstance(item, str):
        return Text(item)
    if isinstance(item, (Text, Image)):
        return item
    raise TypeError(f"A part of a message is a str, Text or Image, not {type(item).__name__}.")


@frozen
class ToolCall:
    """What the model asks to be run. `arguments` is the JSON text as the model wrote it, which may not be JSON."""

    id: str
    name: str
    arguments: str = "{}"

    def parse(self) -> dict[str, Any]:
        """The arguments as a dict; an empty text is no arguments.

        Raises:
            ValueError: they are not a JSON object; the sentence is fit for the model to read.
        """
        if not self.arguments.strip():
            return {}
        try:
            value = json.loads(self.arguments, strict=False)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"The arguments are not valid JSON ({error}). Send one JSON object.") from None
        if not isinstance(value, dict):
            raise ValueError(f"The arguments are a JSON {type(value).__name__}, not an object. Send one JSON object.")
        return value


@frozen
class Echo:
    """Provider fields that must come back unmodified with the message: reasoning, signatures.

    `origin` says who made them (a wire and a model); `json` is theirs as text, so it cannot be changed by accident.
    """

    origin: str
    json: str


def _frozen_mapping(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(value))


def _calls(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    return tuple(calls)


@frozen
class Message:
    """One message of a conversation.

    Attributes:
        role: `system`, `user`, `assistant` or `tool`.
        content: a tuple of `Text` and `Image`; a str or one part is taken too.
        tool_calls: what an assistant message asks to be run.
        tool_call_id: on a `tool` message, the call that it answers.
        echo: provider fields that are sent back to the model that made them.
        meta: local notes, never sent: a steer's `steer_id` and raw `steer_content`.
    """

    role: Role
    content: tuple[Part, ...] = field(default=(), converter=parts)
    tool_calls: tuple[ToolCall, ...] = field(default=(), converter=_calls)
    tool_call_id: str | None = None
    echo: Echo | None = None
    meta: Mapping[str, Any] = field(factory=dict, converter=_frozen_mapping, hash=False)
    # Looked at for every message of every request, so it is found out once.
    has_image: bool = field(init=False, repr=False, eq=False)
    # Where each wire format keeps the JSON it made of this message; no part of its value.
    memo: dict[Any, Any] = field(factory=dict, init=False, repr=False, eq=False)

    @has_image.default
    def _look_for_an_image(self) -> bool:
        return any(isinstance(part, Image) for part in self.content)

    def __attrs_post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise ValueError(f"A message's role is one of {', '.join(get_args(Role))}, not {self.role!r}.")
        if (self.tool_call_id is not None) != (self.role == "tool"):
            raise ValueError("A tool message, and no other, has a tool_call_id: the id of the call that it answers.")
        if self.tool_calls and self.role != "assistant":
            raise ValueError(f"Only an assistant message has tool_calls; this one is a {self.role} message.")

    def __reduce__(self) -> tuple[Any, ...]:
        # For copy.deepcopy and pickle, which cannot take the read-only view that `meta` is.
        return Message, (self.role, self.content, self.tool_calls, self.tool_call_id, self.echo, dict(self.meta))

    @property
    def text(self) -> str:
        """All its text in one string; images are left out."""
        return "".join(part.text for part in self.content if isinstance(part, Text))


def user(*content: str | Part) -> Message:
    """A user message of one or more texts and images."""
    return Message("user", content)


def assistant(text: str = "", tool_calls: Iterable[ToolCall] = ()) -> Message:
    """An assistant message: text, tool calls or both."""
    return Message("assistant", text or (), tool_calls)


def tool_result(call_id: str, content: Content) -> Message:
    """The message that answers the tool call with this id."""
    return Message("tool", content, tool_call_id=call_id)
