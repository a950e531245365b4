"""Chat completions: tool calls and reasoning blocks, put together from pieces. Pure.

Which call a piece belongs to:

1. one with an index: the call at that index; a new id there, with a name, starts a new call in its place
2. one without: the call with its id; a new id or a name starts a new call; anything else goes to the last one
3. a name and the beginning of an object, where a whole object stands already, start a new call in every case
"""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Iterable
from typing import Any

from attrs import define, field

from steerkit.core.message import ToolCall
from steerkit.models.lenient import as_text

_ALPHABET = string.ascii_letters + string.digits

# Fields of a call that must come back with it: Gemini's signature, directly and by way of LiteLLM.
_CALL_ECHOES = ("extra_content", "provider_specific_fields")

# Fields of a reasoning block that come in pieces.
_GROWING = ("text", "summary", "data", "thinking")


@define(eq=False)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(factory=list)
    extra: dict[str, Any] = field(factory=dict)

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are a JSON object."""
        if not (self.arguments and self.arguments[-1].rstrip().endswith("}")):
            return False
        try:
            return isinstance(json.loads("".join(self.arguments), strict=False), dict)
        except (ValueError, RecursionError):
            return False


class CallPieces:
    """The tool calls of one answer. `tool_names` are the tools that were offered."""

    def __init__(self, tool_names: Iterable[str]) -> None:
        self._tool_names = frozenset(tool_names)
        self._calls: list[_Call] = []
        self._by_index: dict[Any, _Call] = {}

    def add(self, piece: dict[str, Any]) -> None:
        index, function = piece.get("index"), piece.get("function") or {}
        call_id, name = as_text(piece.get("id")), as_text(function.get("name"))
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call = self._by_index.get(index) if index is not None else self._unnumbered(call_id, name)
        if call is None or self._starts_another(call, call_id, name, arguments or ""):
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or call_id
        call.name = self._named(call.name, name)
        if arguments:
            call.arguments.append(arguments)
        call.extra.update((key, piece[key]) for key in _CALL_ECHOES if piece.get(key))

    def tool_calls(self, used_ids: Iterable[str]) -> list[ToolCall]:
        """All calls, in order; an id that is missing, or was used before, is replaced by a new one."""
        used = set(used_ids)
        calls = []
        for call in self._calls:
            call_id = call.id
            while not call_id or call_id in used:
                call_id = "".join(secrets.choice(_ALPHABET) for _ in range(9))
            used.add(call_id)
            arguments = as_text("".join(call.arguments))
            calls.append(ToolCall(call_id, call.name, arguments if arguments.strip() else "{}"))
        return calls

    def __bool__(self) -> bool:
        return bool(self._calls)

    def extras(self) -> list[dict[str, Any]]:
        """For each call the fields that must come back with it."""
        return [call.extra for call in self._calls]

    def _unnumbered(self, call_id: str, name: str) -> _Call | None:
        if call_id:
            return next((call for call in self._calls if call.id == call_id), None)
        last = self._calls[-1] if self._calls else None
        # The name again while the arguments are cut: the server repeats it in every piece.
        return last if last and (not name or (name == last.name and last.arguments and not last.whole)) else None

    @staticmethod
    def _starts_another(call: _Call, call_id: str, name: str, arguments: str) -> bool:
        if call_id and call.id and call_id != call.id and (name or not arguments):
            return True
        return bool(name) and arguments.lstrip().startswith("{") and call.whole

    def _named(self, so_far: str, piece: str) -> str:
        """The name with one more piece: some servers cut it, some repeat it."""
        both = so_far + piece
        if not so_far or not piece or both in self._tool_names:
            return both
        return piece if piece == so_far or piece in self._tool_names else both


def merged_blocks(pieces: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Reasoning blocks of which each piece holds a part; without an index, a block ends with its signature."""
    blocks: list[dict[str, Any]] = []
    for piece in pieces:
        block = next((block for block in reversed(blocks) if _same_block(block, piece)), None)
        if block is None:
            blocks.append({key: [value] if key in _GROWING else value for key, value in piece.items()})
            continue
        for key, value in piece.items():
            if key in _GROWING:
                block.setdefault(key, []).append(value)
            elif value not in (None, "") or key not in block:
                block[key] = value
    return [{key: _grown(value) if key in _GROWING else value for key, value in block.items()} for block in blocks]


def _grown(values: list[Any]) -> Any:
    texts = [value for value in values if isinstance(value, str)]
    return as_text("".join(texts)) if texts else values[-1]


def _same_block(block: dict[str, Any], piece: dict[str, Any]) -> bool:
    if block.get("type") != piece.get("type"):
        return False
    if "index" in block and "index" in piece:
        ids = (block.get("id"), piece.get("id"))
        return bool(block["index"] == piece["index"] and (None in ids or ids[0] == ids[1]))
    return not block.get("signature") and "data" not in block
