"""What went wrong, as a ModelError: its kind, whether a retry may help, and a sentence that a user can act on. Pure.

    a reply that is not 2xx                      error_from_reply
    an error in the body of a 200 or an event    error_in_answer, error_in_text
    an exception of requests, urllib3, a socket  error_from_exception

None of them knows who was asked. The client says that in front of each, and takes the secrets out, by `named`: so no
sentence that leaves it holds a key, not even one that the provider echoes.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from steerkit.core.errors import ModelError, ModelErrorKind
from steerkit.core.model import Endpoint
from steerkit.models import error_bodies
from steerkit.models.error_bodies import Said

MAX_WAIT = 120.0  # seconds; whether to wait longer than that is for the caller to decide

# What providers say, by kind; the first that fits. Compared in lower case.
_KIND_OF_WORDS: tuple[tuple[ModelErrorKind, re.Pattern[str]], ...] = (
    (
        "quota",
        re.compile(r"insufficient_quota|billing_error|exceeded your current quota|credit balance|insufficient credits"),
    ),
    (
        "placement",
        re.compile(
            r"must be followed by tool messages|did not have response messages|must be a response to a pre"
            r"|no tool output found for|no tool call found for function call output"
            r"|unexpected role|invalid_request_message_order|roles? must alternate|must alternate between"
            r"|role not supported|system message must be at the beginning|jinja exception"
            r"|found without `?tool_result|tool_result block\(s\) at the beginning|unexpected `tool_use_id`"
            r"|expected toolresult blocks|response turn comes immediately|call turn comes immediately"
            r"|function response parts is equal"
        ),
    ),
    (
        "context_length",
        re.compile(
            r"context_length|context length|context window|contextwindow|exceed_context|exceeds the available context"
            r"|(prompt|input|request) is too (long|large)|too many (input )?tokens|reduce the length of"
            r"|request_too_large"
        ),
    ),
    (
        "filtered",
        re.compile(r"content_filter|content management policy|responsibleaipolicy|content_policy_violation"),
    ),
)
# llama.cpp answers 500 also to requests that will never pass.
_HOPELESS = re.compile(r"image input is not supported|failed to parse (messages|tool call arguments)")
_NEEDS_RESPONSES = re.compile(r"use /v1/responses|only supported in v1/responses")

_STATUS_OF_WORD = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_KIND_OF_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    413: "context_length",
    429: "rate_limit",
    498: "overloaded",
    503: "overloaded",
    504: "timeout",
    524: "timeout",
    529: "overloaded",
}
_CURES: dict[ModelErrorKind, str] = {
    "auth": "Check the api_key of the endpoint, and that it may use this model.",
    "quota": "The account has nothing left to spend, so a retry does not help: check its billing.",
    "rate_limit": "Wait, or run fewer agents at once.",
    "overloaded": "The server is too busy or still starting: try again later.",
    "context_length": "Shorten the conversation, or take a model with a larger context window.",
    "placement": "The server wants the messages in another order: try Endpoint(placement='bridge') or 'fold'.",
    "filtered": "The provider's filter refused the content.",
}


def error_from_reply(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error in a reply that is not 2xx.

    Args:
        status: the HTTP status.
        headers: of the reply, in any case.
        body: of the reply, or its beginning.
    """
    headers = {name.lower(): value for name, value in headers.items()}
    if status < 400:
        where = _bare(headers.get("location", "")) or "nowhere"
        return ModelError(
            f"HTTP {status} points to {where}. Redirects are not followed, since the key would go with them: "
            "if you trust that address, set it as base_url.",
            kind="bad_request",
            status=status,
        )
    error = _error(error_bodies.read(error_bodies.parse(body)), status)
    told = headers.get("x-should-retry", "").lower()
    if told == "false" or (told == "true" and error.kind not in ("placement", "quota", "context_length")):
        error.retryable = told == "true"
    error.retry_after = _retry_after(headers)
    if error.retryable and error.retry_after is not None and error.retry_after > MAX_WAIT:
        asks = f"The server asks to wait {error.retry_after:.0f} s"
        error.args = (f"{error} {asks}; a request is not sent again by itself after more than {MAX_WAIT:.0f} s.",)
    return error


def error_in_answer(body: Any, *, partial: str = "") -> ModelError:
    """The error in parsed JSON that came with HTTP 200: a body, an event of a stream, or the error object in it.

    The status is the object's own code, if that is one. An error that does not say of what kind it is counts as the
    server's, and may be gone at the next try.
    """
    said = error_bodies.read(body)
    error = _error(said, said.status)
    error.partial = partial
    return error


def error_in_text(body: bytes) -> ModelError:
    """What came with a 2xx, and is not JSON: an answer that was cut short, or something from elsewhere."""
    if body.strip()[:1] in (b"", b"{", b"["):
        return ModelError(
            "The answer is cut short, so nothing in it was carried out.", kind="truncated", retryable=True
        )
    words = error_bodies.read(error_bodies.parse(body)).message
    return ModelError(
        f"The answer is not JSON but {words}. Check that base_url leads to the model's API.", kind="bad_request"
    )


def error_from_exception(error: Exception, phase: str, endpoint: Endpoint) -> ModelError:
    """What an exception of requests, urllib3 or a socket comes to.

    Args:
        error: what was raised.
        phase: how far it had come: `connect`, `headers` (the request was sent) or `body` (the answer had begun).
        endpoint: whose time-outs held.
    """
    reason = _reason(error)
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return ModelError(
            f"Nothing was sent: the server's certificate is not trusted ({reason}). If an authority of your own has "
            "signed it, set REQUESTS_CA_BUNDLE to its file and build the client anew.",
            kind="connection",
        )
    if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)):
        return _timed_out(phase, endpoint)
    if phase == "body":
        return ModelError(
            f"The connection broke in the middle of the answer ({reason}); nothing in it was carried out.",
            kind="truncated",
            retryable=True,
        )
    if phase == "headers":
        text = f"The connection broke before the answer came ({reason})."
    else:
        through = " through the proxy of the environment" if isinstance(error, requests.exceptions.ProxyError) else ""
        text = f"The server could not be reached{through} ({reason}). Check base_url, and that the server runs."
    return ModelError(text, kind="connection", retryable=True)


def named(error: ModelError, model: str, url: str, endpoint: Endpoint) -> ModelError:
    """`error`, saying also what was asked; without the endpoint's secrets and the URL's query."""
    error.args = (_redacted(f"{model} at {_bare(url)}: {error}", endpoint),)
    if error.param is not None:
        error.param = _redacted(error.param, endpoint)
    return error


def _timed_out(phase: str, endpoint: Endpoint) -> ModelError:
    if phase == "connect":
        seconds = endpoint.connect_timeout
        text = f"The server could not be reached within {seconds:g} s. Check base_url, or raise connect_timeout."
        return ModelError(text, kind="connection", retryable=True)
    what = "no answer" if phase == "headers" else "nothing more of its answer"
    return ModelError(
        f"The server sent {what} for {endpoint.read_timeout:g} s. If the model needs longer, raise read_timeout.",
        kind="timeout",
        retryable=True,
    )


def _error(said: Said, status: int | None) -> ModelError:
    words = f"{said.message} {said.words}".lower()
    hopeless = bool(_HOPELESS.search(words))
    kind = "bad_request" if hopeless else _kind(words, said, status)
    heading = f"HTTP {status}" if status else "The answer is an error"
    message = said.message.rstrip(". ") or "the server gave no reason"
    return ModelError(
        f"{heading}: {message}. {_cure(kind, words, status)}".rstrip(),
        kind=kind,
        status=status,
        retryable=kind in ("rate_limit", "overloaded", "timeout", "server") or status == 409,
        param=said.param,
    )


def _kind(words: str, said: Said, status: int | None) -> ModelErrorKind:
    if status not in (401, 404, 408, 409):
        for kind, pattern in _KIND_OF_WORDS:
            if pattern.search(words):
                return kind
    if status is None:
        known = (_STATUS_OF_WORD.get(word) for word in said.words.split())
        status = next((number for number in known if number), 500)
    return _KIND_OF_STATUS.get(status) or ("server" if status >= 500 else "bad_request")


def _cure(kind: ModelErrorKind, words: str, status: int | None) -> str:
    if _NEEDS_RESPONSES.search(words):
        return (
            "Take steerkit.models.openai_responses in place of openai_chat for this model; "
            "ModelRef(extra={'reasoning_effort': 'none'}) would do too, but lowers quality."
        )
    if status == 404:
        return "Check base_url and the name of the model."
    return _CURES.get(kind, "")


def _bare(url: str) -> str:
    """`url` without the parts that can hold a secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else parts.path


def _redacted(text: str, endpoint: Endpoint) -> str:
    # A short header value (`beta: true`) is no secret, and its letters stand in many words.
    for secret in (endpoint.api_key, *(value for _, value in endpoint.headers if len(value) >= 8)):
        if secret:
            text = text.replace(secret, "[redacted]")
    return text


def _reason(error: BaseException) -> str:
    """The innermost cause in its own words, without the URLs that the layers around it add."""
    seen: list[BaseException] = []
    while error not in seen:
        seen.append(error)
        inside = (getattr(error, "reason", None), *error.args, error.__cause__)
        error = next((item for item in inside if isinstance(item, BaseException)), error)
    return f"{type(error).__name__}: {error}".split(" (_ssl.c")[0]


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, else `retry-after` as seconds or as a date."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    after = headers.get("retry-after", "")
    seconds = _number(after)
    if seconds is not None or not after:
        return seconds
    try:
        # Against the server's own clock, where it tells it: ours may be wrong.
        now = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else time.time()
        return max(0.0, parsedate_to_datetime(after).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
