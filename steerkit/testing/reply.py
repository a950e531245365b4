"""Replies: what a scripted model is to answer, whichever format carries it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from attrs import evolve, field, frozen

from steerkit.core.message import ToolCall
from steerkit.core.model import Finish, Usage

Framing = Literal["length", "chunked", "close"]

DEFAULT_USAGE = Usage(input_tokens=10, output_tokens=5)

_Kind = TypeVar("_Kind", bound="Reply")


def _header_pairs(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(headers.items() if isinstance(headers, Mapping) else headers)


@frozen(kw_only=True)
class Reply:
    """The base of `Answer`, `Failure` and `Raw`. Frozen: every option returns a new one.

    Attributes:
        gate: the reply is held back until this is set.
    """

    gate: threading.Event | None = None

    def after(self: _Kind, gate: threading.Event) -> _Kind:
        """Hold the whole reply back, its first byte too, until `gate` is set."""
        return evolve(self, gate=gate)


@frozen(kw_only=True)
class Answer(Reply):
    """Text, tool calls or both. `say` and `call` make them, and `+` joins them into one answer.

    Where something happens in the middle of an answer, `after` counts the characters of its text and then of the
    arguments of its calls; more than there are means just before the end mark. An answer that is not streamed is held
    or cut in the middle of its body.

    Attributes:
        text: what the model says.
        calls: what it asks to be run; an empty id is filled in by the script (call_1, call_2, ...).
        finish: None is `tool_calls` if there are calls, else `stop`.
        usage: None is `DEFAULT_USAGE`.
        pause: with this gate closed, the answer stops after so many characters.
        cut_after: the connection is dropped after so many characters.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish | None = None
    usage: Usage | None = None
    pause: tuple[threading.Event, int] | None = None
    cut_after: int | None = None

    def pausing(self, gate: threading.Event, after: int) -> Answer:
        """Hold the rest back after so many characters until `gate` is set."""
        return evolve(self, pause=(gate, after))

    def cut(self, after: int) -> Answer:
        """Drop the connection after so many characters."""
        return evolve(self, cut_after=after)

    def finishing(self, finish: Finish) -> Answer:
        """Give `finish` as the reason why the answer ended."""
        return evolve(self, finish=finish)

    def using(self, input_tokens: int, output_tokens: int, cached: int = 0) -> Answer:
        """Give this usage; `cached` is the part of `input_tokens` that was read from a cache."""
        return evolve(self, usage=Usage(input_tokens, output_tokens, cached))

    def with_id(self, call_id: str) -> Answer:
        """Give the last call this id.

        Raises:
            ValueError: there is no call.
        """
        if not self.calls:
            raise ValueError("with_id() names the last tool call, and this answer has none.")
        return evolve(self, calls=(*self.calls[:-1], evolve(self.calls[-1], id=call_id)))

    def __add__(self, other: Answer) -> Answer:
        """One answer with the text and the calls of both; of an option that both have, the later one counts."""
        if not isinstance(other, Answer):
            return NotImplemented
        options = {
            name: getattr(self, name) if getattr(other, name) is None else getattr(other, name)
            for name in ("gate", "finish", "usage", "pause", "cut_after")
        }
        return Answer(text=self.text + other.text, calls=self.calls + other.calls, **options)

    @property
    def reason(self) -> Finish:
        """Why it ended, as given or as it follows from the calls."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    @property
    def tokens(self) -> Usage:
        """The usage, as given or the default."""
        return DEFAULT_USAGE if self.usage is None else self.usage


@frozen(kw_only=True)
class Failure(Reply):
    """The request fails.

    Attributes:
        status: the HTTP status; None drops the connection before the first byte.
        message: the provider's words.
        headers: further response headers, such as `retry-after`.
        body: a verbatim body in place of the provider's error shape.
    """

    status: int | None
    message: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), converter=_header_pairs)
    body: bytes | None = None


@frozen(kw_only=True)
class Raw(Reply):
    """A verbatim HTTP answer, only for the Gateway.

    Attributes:
        body: as it is sent, before framing.
        status: the HTTP status.
        headers: those of the body; the framing adds its own.
        write_size: bytes of one write; None sends all at once.
        framing: `length`, `chunked`, or `close` (the end of the connection is the end of the body).
        abort: drop the connection behind the body, without the end that `length` (one byte more) or `chunked` promise.
        pause: with this gate closed, the body stops after so many bytes.
    """

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = field(default=(), converter=_header_pairs)
    write_size: int | None = None
    framing: Framing = "length"
    abort: bool = False
    pause: tuple[threading.Event, int] | None = None

    def pausing(self, gate: threading.Event, after: int) -> Raw:
        """Hold the rest of the body back after so many bytes until `gate` is set."""
        return evolve(self, pause=(gate, after))


def say(text: str) -> Answer:
    """An answer with this text."""
    return Answer(text=text)


def call(tool: str, arguments_text: str | None = None, /, **arguments: Any) -> Answer:
    """An answer that calls a tool: `call("search", query="steer")`.

    Args:
        tool: its name.
        arguments_text: the arguments verbatim, for what is no JSON: `call("search", '{"query": ')`.
        arguments: the arguments by name.
    """
    text = json.dumps(arguments, ensure_ascii=False) if arguments_text is None else arguments_text
    return Answer(calls=(ToolCall("", tool, text),))


def fail(status: int, message: str = "", *, headers: Mapping[str, str] | None = None, body: Any = None) -> Failure:
    """An HTTP error, in the shape that the provider of the asked format gives it.

    Args:
        status: 400 or more.
        message: the provider's words.
        headers: further response headers, such as `retry-after`.
        body: sent in place of that shape: bytes or a str as they are, anything else as JSON.
    """
    if isinstance(body, str):
        body = body.encode()
    elif body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return Failure(
        status=status, message=message or f"The script answers HTTP {status}.", headers=headers or {}, body=body
    )


def cut() -> Failure:
    """The connection is dropped before the first byte of an answer."""
    return Failure(status=None, message="The connection was dropped.")


def raw(
    body: bytes | str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    write_size: int | None = None,
    framing: Framing = "length",
    abort: bool = False,
) -> Raw:
    """A verbatim HTTP answer, only for the Gateway; see `Raw`. Without headers it is `application/json`."""
    return Raw(
        body=body.encode() if isinstance(body, str) else body,
        status=status,
        headers={"content-type": "application/json"} if headers is None else headers,
        write_size=write_size,
        framing=framing,
        abort=abort,
    )
