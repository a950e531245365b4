"""What a model is asked and what it answers, and the one method through which every pattern asks it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, get_args

from attrs import Factory, field, frozen

from steerkit.core.cancel import Cancellation
from steerkit.core.checks import check_kind, check_seconds, check_whole
from steerkit.core.message import Message
from steerkit.core.tool import Tool

Finish = Literal["stop", "tool_calls", "length", "content_filter"]
ToolChoice = Literal["auto", "none"]
Placement = Literal["auto", "raw", "bridge", "fold", "join", "system"]


@frozen
class ModelRef:
    """A model and how to ask it.

    Attributes:
        name: as the endpoint knows it.
        max_tokens: the most tokens of one answer; None leaves it to the provider.
        temperature: None sends none; some models refuse any.
        extra: further fields of the request, sent as they are.
        images: False refuses images before anything is sent.
    """

    name: str
    max_tokens: int | None = None
    temperature: float | None = None
    extra: Mapping[str, Any] = field(factory=dict, hash=False)
    images: bool = True

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"A model has a name, such as 'gpt-5-mini', not {self.name!r}.")
        if self.max_tokens is not None:
            check_whole("ModelRef.max_tokens", self.max_tokens, 1)
        check_kind("ModelRef.temperature", self.temperature, (int, float, type(None)), "a number or None")
        check_kind("ModelRef.extra", self.extra, Mapping, "a dict of further request fields")
        check_kind("ModelRef.images", self.images, bool, "True or False")


def _header_pairs(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(headers.items()) if isinstance(headers, Mapping) else tuple(headers)


def _without_last_slash(url: str) -> str:
    return url.rstrip("/") if isinstance(url, str) else url


@frozen
class Endpoint:
    """Where a model is reached. Values that can hold a secret never show in its repr.

    Attributes:
        base_url: the URL to which the wire adds its path, such as `https://api.openai.com/v1`.
        api_key: sent as the wire wants it; empty sends none.
        headers: further request headers.
        connect_timeout: seconds to reach the server.
        read_timeout: seconds without anything of the answer; keep-alive comments do not count.
        max_retries: how often a failed request is sent again, while none of its answer has been shown.
        placement: how the wire renders a steer behind tool results; `auto` chooses by endpoint and model.
    """

    base_url: str = field(converter=_without_last_slash)
    api_key: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), converter=_header_pairs, repr=False)
    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    max_retries: int = 2
    placement: Placement = "auto"

    def __attrs_post_init__(self) -> None:
        from urllib.parse import urlsplit  # not at the top: it takes longer to import than this module

        url = urlsplit(self.base_url if isinstance(self.base_url, str) else "")
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"Endpoint.base_url is like 'https://api.openai.com/v1', not {self.base_url!r}.")
        if url.username or url.password:
            raise ValueError("Endpoint.base_url holds a user name or password, which logs would show: use api_key.")
        for what, value in (("api_key", self.api_key), *((f"header {name}", value) for name, value in self.headers)):
            if not isinstance(value, str) or not value.isprintable() or not value.isascii():
                raise ValueError(f"Endpoint: the {what} is not printable ASCII, so no HTTP header can carry it.")
        check_seconds("Endpoint.connect_timeout", self.connect_timeout)
        check_seconds("Endpoint.read_timeout", self.read_timeout)
        check_whole("Endpoint.max_retries", self.max_retries, 0)
        if self.placement not in get_args(Placement):
            raise ValueError(f"Endpoint.placement is one of {', '.join(get_args(Placement))}, not {self.placement!r}.")

    @classmethod
    def from_env(cls, **settings: Any) -> Endpoint:
        """The endpoint that `STEERKIT_BASE_URL` and `STEERKIT_API_KEY` name; `settings` are further fields.

        Raises:
            ValueError: STEERKIT_BASE_URL is not set.
        """
        base_url = os.environ.get("STEERKIT_BASE_URL", "").strip()
        if not base_url:
            raise ValueError("STEERKIT_BASE_URL is not set: set it to a URL such as https://api.openai.com/v1.")
        return cls(base_url, os.environ.get("STEERKIT_API_KEY", "").strip(), **settings)


@frozen(eq=False)
class Request:
    """One model request. `messages` ends with what the model is to answer.

    Attributes:
        tool_choice: `none` offers the tools but asks for text.
        carry_steers: False for a request that is no part of the conversation: it neither takes nor carries steers.
        cancellation: raised when the run is cancelled; a client breaks its blocked read then.
    """

    model: ModelRef
    messages: tuple[Message, ...]
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = "auto"
    carry_steers: bool = True
    cancellation: Cancellation = Factory(Cancellation)


@frozen
class Usage:
    """Tokens, as the provider counted them. Addable; `Usage()` is none.

    `input_tokens` includes `cached_input_tokens` (read from a cache) and `cache_write_tokens` (written to one).
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@frozen
class Response:
    """One answer of a model.

    Attributes:
        message: the assistant message, fit to be appended to the conversation.
        finish: why it ended; `tool_calls` whenever there are calls to run.
        usage: None when the provider did not say.
        reasoning: the thinking that the provider showed, or "".
        refusal: the model's own words for refusing, where the provider keeps them apart, or "".
    """

    message: Message
    finish: Finish = "stop"
    usage: Usage | None = None
    reasoning: str = ""
    refusal: str = ""


OnText = Callable[[str], None]


class ModelClient(Protocol):
    """Anything that can ask a model. One method, so a decorator is one method too."""

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        """Send `request` and return the whole answer. May be called from many threads at once.

        Args:
            request: what to ask.
            on_text: given, the answer is streamed, and each piece of its text is passed on as it arrives.

        Raises:
            ModelError: there is no whole answer.
            Cancelled: the run was cancelled meanwhile.
        """
        ...
