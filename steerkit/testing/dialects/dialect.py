"""What a format is to the Gateway, and what all formats share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from steerkit.testing.reply import Answer
from steerkit.testing.script import Piece

Body = dict[str, Any]


class Refused(Exception):
    """The provider refuses the request.

    Attributes:
        status: the HTTP status.
        param: the field that it objects to, where the format tells.
        code: the provider's code for the fault, where there is one.
        body: a whole body, where it is not the format's usual one.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        body: Body | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.param = param
        self.code = code
        self.body = body


class Dialect(Protocol):
    """One provider format; a module of this package is one."""

    def key(self, headers: Mapping[str, str]) -> str | None:
        """The key in these headers (their names in lower case), or None."""
        ...

    def check(self, body: Any, headers: Mapping[str, str], strict: str | None, /) -> None:
        """Raises: Refused, with the provider's words, if the provider would not answer this body."""
        ...

    def plain(self, answer: Answer, model: str, number: int) -> Body:
        """The body of an answer that is not streamed; `number` makes its id."""
        ...

    def stream(self, answer: Answer, pieces: Iterable[Piece], body: Body, number: int) -> Iterator[bytes]:
        """The events of a streamed answer to `body`, each made when it is asked for."""
        ...

    def error(self, status: int, message: str, param: str | None = None, code: str | None = None, /) -> Body:
        """The body of an error."""
        ...


def event(data: object, name: str | None = None) -> bytes:
    """One server-sent event that carries `data` as JSON."""
    line = b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
    return line if name is None else b"event: " + name.encode() + b"\n" + line


def bearer(headers: Mapping[str, str]) -> str | None:
    """The bearer token in these headers, or None."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else None


def require(condition: object, message: str, *, param: str | None = None, code: str | None = None) -> None:
    """Raises: Refused, with HTTP 400, unless `condition` holds."""
    if not condition:
        raise Refused(message, param=param, code=code)


def is_json_object(text: object) -> bool:
    """Whether `text` is the JSON of an object."""
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


def kind_name(value: object) -> str:
    """What OpenAI calls the JSON type of `value`, with its article."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
