"""Anthropic Messages: from a Request to JSON bytes. Pure; the answer is read in anthropic_messages_stream.py.

1. Roles alternate: user and tool messages in a row are one user message, results first. In `system` mode a steer behind
   it is a system message, which may only stand last or before an assistant message; elsewhere it is user text.
2. A thinking block is bound to what stood before it: system, tools and every earlier message. The origin of an Echo
   holds a digest of these, and the thinking is sent only behind the same ones, for it would be refused.
3. What was sent once is sent again with the same bytes. So the marker for the prompt cache is the one for the whole
   request: one that moves from block to block would change them.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve

from steerkit.core.errors import ModelError
from steerkit.core.message import Message
from steerkit.core.model import Endpoint, Request, Response
from steerkit.core.tool import Tool
from steerkit.models.anthropic_messages_blocks import blocks_of, echoed_blocks
from steerkit.models.anthropic_messages_stream import MessagesReader, whole_answer
from steerkit.models.lenient import dumps
from steerkit.models.shaping import shape
from steerkit.models.wire import Mode, Settings, StreamReader

MAX_TOKENS = 8192  # the API wants a limit; this one every model since Claude 3.5 takes

_ROLE_REFUSED = re.compile(r"\brole\b.*('system'|'user' or 'assistant')|system messages?\b", re.IGNORECASE | re.DOTALL)
_THINKING_REFUSED = re.compile(r"thinking.*(bound to|signature|cannot be modified)|signature.*thinking", re.DOTALL)


class AnthropicMessagesWire:
    """The Messages format, version 2023-06-01; see `Wire`."""

    name = "anthropic_messages"
    path = "/v1/messages"

    def headers(self, endpoint: Endpoint) -> Mapping[str, str]:
        key = {"x-api-key": endpoint.api_key} if endpoint.api_key else {}
        return {**key, "anthropic-version": "2023-06-01"}

    def settings(self, endpoint: Endpoint, model: str) -> Settings:
        if endpoint.placement != "auto":
            return Settings(endpoint.placement)
        version = _version(model)
        return Settings("system" if version is not None and version >= (4, 8) else "join")

    def cure(self, error: ModelError, request: Request, endpoint: Endpoint, settings: Settings) -> Settings | None:
        cured = self._remedy(error, request, endpoint, settings)
        if cured is None or self._render(request, endpoint, cured) == self._render(request, endpoint, settings):
            return None  # the same bytes would be refused again
        return cured

    def _remedy(self, error: ModelError, request: Request, endpoint: Endpoint, settings: Settings) -> Settings | None:
        if error.kind not in ("bad_request", "placement"):
            return None
        said = f"{error} {error.param or ''}"
        if "cache_control" in said:
            return evolve(settings, without=settings.without | {"cache_control"})
        if _THINKING_REFUSED.search(said):
            return self._without_thinking(request, endpoint, settings)
        misplaced = error.kind == "placement" or _ROLE_REFUSED.search(said)
        if misplaced and settings.mode == "system" and endpoint.placement == "auto":
            return evolve(settings, mode="join")
        return None

    def _without_thinking(self, request: Request, endpoint: Endpoint, settings: Settings) -> Settings | None:
        """Drops the thinking of this conversation so far; what the model thinks from now on is bound to the rest."""
        refused = [_refusal_of(message) for message in request.messages if _is_from(_maker(request, endpoint), message)]
        return evolve(settings, without=settings.without | {refused[-1]}) if refused else None

    def encode(self, request: Request, endpoint: Endpoint, settings: Settings, *, stream: bool) -> bytes:
        tools, offered = _tools(request), request.tool_choice == "auto" and bool(request.tools)
        fields: dict[str, Any] = {
            "model": request.model.name,
            "max_tokens": request.model.max_tokens or MAX_TOKENS,
            "system": _system(request),
            "tools": tools or None,
            "tool_choice": {"type": "none"} if tools and not offered else None,
            "temperature": request.model.temperature,
            "cache_control": None if "cache_control" in settings.without else {"type": "ephemeral"},
            "stream": True if stream else None,
        }
        fields = {key: value for key, value in fields.items() if value is not None} | dict(request.model.extra)
        _, messages = _split(request)
        maker, stale = _maker(request, endpoint), _stale(request, settings)

        def blocks(message: Message) -> bytes:
            if not _is_from(maker, message):
                return blocks_of(message)
            return echoed_blocks(message, thinking=id(message) not in stale)

        shaped = shape(messages, settings.mode, images_in_results=True)
        turns = _turns([(message, blocks(message)) for message in shaped], settings.mode)
        return dumps(fields)[:-1] + b',"messages":[' + b",".join(turns) + b"]}"

    def _render(self, request: Request, endpoint: Endpoint, settings: Settings) -> bytes:
        return self.encode(request, endpoint, settings, stream=True)

    def decode(self, body: Any, request: Request, endpoint: Endpoint) -> Response:
        return whole_answer(body, _origin(request, endpoint), _used_ids(request))

    def reader(self, request: Request, endpoint: Endpoint) -> StreamReader:
        return MessagesReader(_origin(request, endpoint), _used_ids(request))


# ---- thinking


def _maker(request: Request, endpoint: Endpoint) -> str:
    return f"anthropic_messages {urlsplit(endpoint.base_url).netloc} {request.model.name} "


def _origin(request: Request, endpoint: Endpoint) -> str:
    """Who makes the answer to this request, and behind what."""
    _, messages = _split(request)
    *_, digest = _digests(_start(request), messages)
    return _maker(request, endpoint) + digest


def _is_from(maker: str, message: Message) -> bool:
    return message.echo is not None and message.echo.origin.startswith(maker)


def _stale(request: Request, settings: Settings) -> set[int]:
    """The messages (by `id`) whose thinking does not go out: what stood before it has changed, or it was refused."""
    _, messages = _split(request)
    if not any(message.echo for message in messages):
        return set()
    stale: set[int] = set()
    if any(entry.startswith("thinking ") for entry in settings.without):
        refused = [at for at, message in enumerate(messages) if _refusal_of(message) in settings.without]
        stale.update(id(message) for message in messages[: refused[-1] + 1 if refused else 0])
    if _is_bound(request.model.name):
        for message, digest in zip(messages, _digests(_start(request), messages), strict=False):
            if message.echo and not message.echo.origin.endswith(f" {digest}"):
                stale.add(id(message))
    return stale


def _version(model: str) -> tuple[int, int] | None:
    """The version in a model's name; None for a name that has none."""
    found = re.search(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?![0-9])", model)
    return (int(found[1]), int(found[2] or 0)) if found else None


def _is_bound(model: str) -> bool:
    """Whether thinking is bound to what stood before it. Not in models up to Claude 4.7: they refuse its absence."""
    version = _version(model)
    return version is None or version >= (4, 8)


def _used_ids(request: Request) -> list[str]:
    return [call.id for message in request.messages for call in message.tool_calls]


def _refusal_of(message: Message) -> str:
    """The name under which `Settings.without` holds that this thinking, and any before it, was refused."""
    made = message.echo.json if message.echo else ""
    return f"thinking {hashlib.sha256(made.encode()).hexdigest()[:16]}"


def _start(request: Request) -> bytes:
    return dumps([_system(request), _tools(request)])


def _digests(start: bytes, messages: Iterable[Message]) -> Iterator[str]:
    """What stands before each message, and last, before the answer: a chain, so each costs one small hash."""
    digest = hashlib.sha256(start).hexdigest()[:16]
    yield digest
    for message in messages:
        own = message.memo.get("anthropic digest")
        if own is None:
            own = hashlib.sha256(message.role.encode() + blocks_of(message)).digest()
            message.memo["anthropic digest"] = own
        digest = hashlib.sha256(digest.encode() + own).hexdigest()[:16]
        yield digest


# ---- system and tools


def _split(request: Request) -> tuple[list[Message], tuple[Message, ...]]:
    """The system messages at the head, and the rest: the API has a field for the first."""
    head = list(itertools.takewhile(lambda message: message.role == "system", request.messages))
    return head, request.messages[len(head) :]


def _system(request: Request) -> str | None:
    head, _ = _split(request)
    texts = [request.system or "", *(message.text for message in head)]
    return "\n\n".join(text for text in texts if text.strip()) or None


def _tools(request: Request) -> list[dict[str, Any]]:
    """The definitions. The API refuses a history with calls and no tools, so their names stand in for them."""
    if request.tools:
        return [_definition(tool) for tool in request.tools]
    names = dict.fromkeys(call.name for message in request.messages for call in message.tool_calls)
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _definition(tool: Tool) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, **tool.parameters}
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


# ---- messages


def _turns(spoken: Sequence[tuple[Message, bytes]], mode: Mode) -> Iterator[bytes]:
    groups = [
        (role, list(group)) for role, group in itertools.groupby(spoken, key=lambda pair: _turn_role(pair[0], mode))
    ]
    user: list[tuple[Message, bytes]] = []
    for number, (role, group) in enumerate(groups):
        following = groups[number + 1][0] if number + 1 < len(groups) else "assistant"
        if role == "assistant":
            yield from _turn("user", user)
            yield from _turn("assistant", group)
            user = []
        elif role == "system" and user and following == "assistant":
            yield from _turn("user", user)
            yield dumps({"role": "system", "content": "\n\n".join(message.text for message, _ in group)})
            user = []
        elif role == "user" and mode == "raw":
            yield from _turn("user", user)
            user = group
        else:
            user += group
    yield from _turn("user", user)


def _turn_role(message: Message, mode: Mode) -> str:
    if message.role == "system" and mode != "system":
        return "user"
    return message.role


def _turn(role: str, group: Sequence[tuple[Message, bytes]]) -> Iterator[bytes]:
    """One message; nothing for one without content. Results stand first, or the API misses them."""
    results = [blocks for message, blocks in group if message.role == "tool"]
    others = [blocks for message, blocks in group if message.role != "tool" and blocks]
    if results or others:
        yield b'{"role":"' + role.encode() + b'","content":[' + b",".join(results + others) + b"]}"
