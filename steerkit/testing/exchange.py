"""Exchange: one request to the Gateway and its answer, in the format that the path asks for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from steerkit.core.cancel import Cancellation
from steerkit.testing.dialects import chat, messages, responses
from steerkit.testing.dialects.dialect import Body, Dialect, Refused
from steerkit.testing.http_server import HttpAnswer, HttpRequest
from steerkit.testing.reply import Answer, Failure, Raw, Reply
from steerkit.testing.script import ConnectionCut, pieces, wait_for

DIALECTS: dict[str, Dialect] = {"/chat/completions": chat, "/messages": messages, "/responses": responses}

_JSON = ("content-type", "application/json")
_STREAM = (("content-type", "text/event-stream"), ("cache-control", "no-cache"))

# A fault of the script stays one however often it is asked: clients obey this header and do not try again.
_NO_RETRY = ("x-should-retry", "false")


def dialect_of(request: HttpRequest) -> Dialect:
    """The format that the path asks for.

    Raises:
        Refused: there is none.
    """
    path = urlsplit(request.path).path
    for ending, dialect in DIALECTS.items():
        if path.endswith(ending) and request.method == "POST":
            return dialect
    raise Refused(f"Invalid URL ({request.method} {path})", status=404)


def check(dialect: Dialect, request: HttpRequest, body: Any, key: str, strict: str | None) -> None:
    """Raises: Refused, if the provider would not answer."""
    sent = dialect.key(request.headers)
    if not sent:
        raise Refused("You didn't provide an API key.", status=401)
    if sent != key:
        raise Refused("Incorrect API key provided.", status=401, code="invalid_api_key")
    dialect.check(body, request.headers, strict)


def refusal(dialect: Dialect, refused: Refused) -> HttpAnswer:
    """The answer that refuses."""
    body = refused.body or dialect.error(refused.status, refused.message, refused.param, refused.code)
    return _json_answer(body, refused.status)


def script_fault(dialect: Dialect, error: BaseException) -> HttpAnswer:
    """The answer when the script has no reply to give."""
    return _json_answer(dialect.error(500, f"{type(error).__name__}: {error}"), 500, (_NO_RETRY,))


def answer(dialect: Dialect, reply: Reply, body: Body, number: int, closing: Cancellation) -> HttpAnswer | None:
    """`reply` as HTTP; None drops the connection. Waits for its gate.

    Raises:
        Cancelled: the Gateway closes meanwhile.
    """
    wait_for(reply.gate, closing)
    if isinstance(reply, Failure):
        return _failure(dialect, reply)
    if isinstance(reply, Raw):
        return _raw(reply, closing)
    assert isinstance(reply, Answer)
    if body.get("stream"):
        return HttpAnswer(200, _STREAM, dialect.stream(reply, pieces(reply, closing), body, number), "chunked")
    data = json.dumps(dialect.plain(reply, body["model"], number), ensure_ascii=False).encode()
    return HttpAnswer(200, (_JSON,), _in_two_halves(data, reply, closing), "length", len(data))


def _json_answer(body: Body, status: int, headers: Iterable[tuple[str, str]] = ()) -> HttpAnswer:
    data = json.dumps(body).encode()
    return HttpAnswer(status, (_JSON, *headers), (data,), "length", len(data))


def _failure(dialect: Dialect, failure: Failure) -> HttpAnswer | None:
    if failure.status is None:
        return None
    if failure.body is None:
        return _json_answer(dialect.error(failure.status, failure.message), failure.status, failure.headers)
    given = {name.lower() for name, _ in failure.headers}
    headers = failure.headers if "content-type" in given else (_JSON, *failure.headers)
    return HttpAnswer(failure.status, headers, (failure.body,), "length", len(failure.body))


def _raw(reply: Raw, closing: Cancellation) -> HttpAnswer:
    length = len(reply.body) + reply.abort
    return HttpAnswer(reply.status, reply.headers, _raw_body(reply, closing), reply.framing, length, reply.abort)


def _raw_body(reply: Raw, closing: Cancellation) -> Iterator[bytes]:
    gate, pause = reply.pause or (None, len(reply.body))
    for part in (reply.body[:pause], reply.body[pause:]):
        size = reply.write_size or max(len(part), 1)
        for start in range(0, len(part), size):
            yield part[start : start + size]
        wait_for(gate, closing)


def _in_two_halves(data: bytes, reply: Answer, closing: Cancellation) -> Iterator[bytes]:
    """The body of a plain answer; its pause and its cut come in the middle."""
    half = len(data) // 2 if reply.pause or reply.cut_after is not None else len(data)
    yield data[:half]
    if reply.pause:
        wait_for(reply.pause[0], closing)
    if reply.cut_after is not None:
        raise ConnectionCut
    yield data[half:]
