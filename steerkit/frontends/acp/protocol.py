"""Protocol: error codes, and what the params of a method must look like. Pure.

Every fault is an RpcError that says what is wrong; nothing has been consumed or started when it is raised.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Any

from steerkit.core.message import Image, Part, Text

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
RESOURCE_NOT_FOUND = -32002

VERSION = 1

Params = Mapping[str, Any]

# What a block of each type must have besides its type; all of them text.
_BLOCK_FIELDS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri",),
    "resource": (),
}


class RpcError(Exception):
    """The error that answers a request."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def to_json(self) -> dict[str, Any]:
        error = {"code": self.code, "message": str(self)}
        return error if self.data is None else {**error, "data": self.data}


def hello(version: str, *, images: bool) -> dict[str, Any]:
    """The result of initialize; `version` is the agent's own."""
    return {
        "protocolVersion": VERSION,
        "agentInfo": {"name": "steerkit", "title": "steerkit", "version": version},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": images, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            # Objects, never true: editors refuse the handshake otherwise.
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
        },
        "authMethods": [],
        # At the top level, where the clients that steer look for it.
        "_meta": {"steering": {"supported": True}},
    }


def bad_params(message: str) -> RpcError:
    return RpcError(INVALID_PARAMS, message)


def unknown_session(session_id: str) -> RpcError:
    return RpcError(RESOURCE_NOT_FOUND, "There is no open session of this id.", {"sessionId": session_id})


def text_param(params: Params, name: str) -> str:
    """Raises: RpcError, if it is not a text of at least one character."""
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise bad_params(f"{name} is a non-empty string, not {_shown(value)}.")
    return value


def folder_param(params: Params) -> str:
    """Raises: RpcError, if `cwd` is not an absolute path."""
    cwd = text_param(params, "cwd")
    if not os.path.isabs(cwd) or "\0" in cwd:
        raise bad_params(f"cwd is an absolute path, not {_shown(cwd)}.")
    return cwd


def mcp_server_names(params: Params) -> tuple[str, ...]:
    """Raises: RpcError, if `mcpServers` is there and is no list of objects."""
    servers = params.get("mcpServers") or []
    if not isinstance(servers, list) or not all(isinstance(server, dict) for server in servers):
        raise bad_params("mcpServers is a list of objects.")
    return tuple(str(server.get("name", "(no name)")) for server in servers)


def wants_prompt_required(params: Params) -> bool:
    """Whether a steer opts into `promptRequired`.

    Raises:
        RpcError: `_meta` or what it says of steering has another shape.
    """
    meta = params.get("_meta")
    if meta is None:
        return False
    if not isinstance(meta, dict):
        raise bad_params(f"_meta is an object or null, not {_shown(meta)}.")
    steering = meta.get("steering", {})
    if not isinstance(steering, dict):
        raise bad_params(f"_meta.steering is an object, not {_shown(steering)}.")
    if "idleBehavior" not in steering:
        return False
    if steering["idleBehavior"] != "promptRequired":
        raise bad_params(f'idleBehavior is "promptRequired" or left out, not {_shown(steering["idleBehavior"])}.')
    return True


def content_blocks(params: Params, *, empty: bool) -> Sequence[Params]:
    """The well-formed blocks in `prompt`; with `empty` it may have none.

    Raises:
        RpcError: it is no list of blocks.
    """
    blocks = params.get("prompt")
    if not isinstance(blocks, list):
        raise bad_params(f"prompt is a list of content blocks, not {_shown(blocks)}.")
    if not blocks and not empty:
        raise bad_params("prompt is empty, so there is nothing to say.")
    for index, block in enumerate(blocks):
        _check_block(block, f"prompt[{index}]")
    return blocks


def _check_block(block: Any, where: str) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str) or kind not in _BLOCK_FIELDS:
        raise bad_params(f"{where} is a content block whose type is one of {', '.join(_BLOCK_FIELDS)}.")
    _check_texts(block, _BLOCK_FIELDS[kind], where)
    if kind == "resource":
        resource = block.get("resource")
        if not isinstance(resource, dict):
            raise bad_params(f"{where}.resource is an object.")
        _check_texts(resource, ("uri", "blob" if "blob" in resource else "text"), f"{where}.resource")


def _check_texts(block: Params, names: Sequence[str], where: str) -> None:
    for name in names:
        if not isinstance(block.get(name), str):
            raise bad_params(f"{where}.{name} is a string, not {_shown(block.get(name))}.")


def message_parts(blocks: Sequence[Params], *, images: bool) -> tuple[Part, ...]:
    """What a model reads of well-formed blocks; blank texts are left out.

    Raises:
        RpcError: an image where the model takes none (invalidRequest); a sound; a text that cannot be encoded.
    """
    parts = [_part(block, images) for block in blocks]
    return tuple(part for part in parts if not isinstance(part, Text) or part.text.strip())


def _part(block: Params, images: bool) -> Part:
    kind = block["type"]
    if kind == "image":
        if not images:
            raise RpcError(INVALID_REQUEST, "The model takes no images, so this was not sent.")
        return _image(block)
    if kind == "audio":
        raise bad_params("The model takes no sound, so this was not sent.")
    try:
        return Text(_block_text(block))
    except ValueError as error:
        raise bad_params(str(error)) from None


def _image(block: Params) -> Image:
    try:
        return Image(base64.b64decode(block["data"], validate=True), block["mimeType"])
    except ValueError as error:
        raise bad_params(f"The image cannot be read: {error}") from None


def _block_text(block: Params) -> str:
    if block["type"] == "text":
        return str(block["text"])
    if block["type"] == "resource_link":
        return f"[{block.get('name') or block['uri']}]({block['uri']})"
    resource = block["resource"]
    if "blob" in resource:
        return f"[{resource['uri']}: a binary file that was attached, which cannot be shown here]"
    return f'<resource uri="{resource["uri"]}">\n{resource["text"]}\n</resource>'


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}..."
