"""The shapes in which providers say that something failed, and what one says whatever its shape. Pure.

{"error": {...}}   {"error": "..."}   [{"error": {...}}]   {"object": "error", "message": ...}
{"message": {"detail": [...]}}   {"detail": ...}   {"type": "error", "error": {...}}   a text, or a web page
"""

from __future__ import annotations

import json
import re
from typing import Any

from attrs import frozen

_LONGEST = 1000  # characters of a provider's own words

# How a message names the field that it objects to. Compared in lower case.
_PARAM = re.compile(
    r"(?:unsupported parameter|unsupported value|unknown parameter|unrecognized request argument supplied"
    r"|too short -|unexpected keyword argument):?\s+['\"`]?([\w.]+)"
    r"|^([\w.]+): extra inputs are not permitted|tools with (reasoning_effort)"
)


@frozen
class Said:
    """What a body says.

    Attributes:
        message: for people.
        words: every code, type and status name in it.
        status: a code among them that is an HTTP status of failure.
        param: the request field that it is about.
    """

    message: str
    words: str = ""
    status: int | None = None
    param: str | None = None


def parse(body: bytes) -> Any:
    """JSON as it is, and any other body as a text fit to be quoted."""
    try:
        return json.loads(body, strict=False)
    except (ValueError, RecursionError):
        text = body[:20_000].decode("utf-8", "replace")
    if not text.lstrip().startswith("<"):
        return text
    title = re.search(r"<title[^>]*>(.*?)</title", text, re.DOTALL | re.IGNORECASE)
    return f"a web page titled {' '.join(title[1].split())!r}" if title else "a web page"


def read(value: Any) -> Said:
    """What parsed JSON, or a text, says."""
    if isinstance(value, list):
        return read(value[0]) if len(value) == 1 else Said(_details(value))
    if not isinstance(value, dict):
        return Said(_short(value if isinstance(value, str) else ""))
    inner = value.get("error")
    if isinstance(inner, (dict, list)) and inner:
        return _within(value, read(inner))
    if isinstance(inner, str) and inner:
        said = value.get("message")
        message = f"{inner}: {said}" if isinstance(said, str) and said else inner
        return _within(value, Said(_short(message)))
    said = value.get("message") or value.get("detail") or value.get("msg") or ""
    if isinstance(said, (dict, list)):
        return _within(value, Said(_details(said), param=_first_location(said)))
    raw = value.get("metadata", {}).get("raw") if isinstance(value.get("metadata"), dict) else None
    if raw:  # OpenRouter keeps the provider's own words here
        below = read(parse(raw.encode())) if isinstance(raw, str) else read(raw)
        return _within(value, Said(_short(f"{said}: {below.message}"), below.words, param=below.param))
    return _within(value, Said(_short(str(said))))


def _within(value: dict[str, Any], found: Said) -> Said:
    """`found`, with what the object around it adds."""
    named = [value.get(key) for key in ("code", "type", "status", "status_code")]
    words = [str(word) for word in named if isinstance(word, (str, int)) and word != "error"]
    status = next((int(word) for word in words if re.fullmatch(r"[45]\d\d", word)), None)
    param = value.get("param")
    guess = _PARAM.search(found.message.lower())
    return Said(
        found.message,
        " ".join([found.words, *words]).strip(),
        found.status or status,
        found.param
        or (param if isinstance(param, str) and param else None)
        or (next(group for group in guess.groups() if group).rstrip(".") if guess else None),
    )


def _items(details: Any) -> list[dict[str, Any]]:
    if isinstance(details, dict):
        details = details.get("detail", [details])
    return [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []


def _details(details: Any) -> str:
    """FastAPI's list of what was wrong where, as one line."""
    lines = [
        f"{'.'.join(map(str, item.get('loc', [])))}: {item.get('msg') or item.get('message') or ''}"
        if isinstance(item.get("loc"), list)
        else str(item.get("msg") or item.get("message") or item)
        for item in _items(details)
    ]
    return _short("; ".join(lines) or json.dumps(details))


def _first_location(details: Any) -> str | None:
    for item in _items(details):
        location = item.get("loc")
        names = (
            [part for part in location if isinstance(part, str) and part != "body"]
            if isinstance(location, list)
            else []
        )
        if names:
            return names[0]
    return None


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
