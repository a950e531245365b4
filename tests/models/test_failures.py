from __future__ import annotations

import json
import socket
import ssl
from email.utils import formatdate
from typing import Any

import pytest
import requests
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from steerkit.core.errors import ModelError
from steerkit.core.model import Endpoint
from steerkit.models.failures import error_from_exception, error_from_reply, error_in_answer, error_in_text, named

ENDPOINT = Endpoint("http://localhost/v1", "sk-secret", connect_timeout=3, read_timeout=7)


def reply(status: int, body: Any = "", **headers: str) -> ModelError:
    text = body if isinstance(body, str) else json.dumps(body)
    return error_from_reply(status, {key.replace("_", "-"): value for key, value in headers.items()}, text.encode())


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


# ---- the shapes of bodies


@pytest.mark.parametrize(
    "body",
    [
        said("no good"),
        {"error": "no good"},
        [said("no good")],
        {"object": "error", "message": "no good"},
        {"message": {"detail": [{"msg": "no good"}]}},
        {"detail": [{"msg": "no good"}]},
        {"detail": "no good"},
        {"type": "error", "error": {"type": "invalid_request_error", "message": "no good"}},
        {"response": None, "message": "no good"},
        "no good",
    ],
)
def test_the_words_of_the_provider_are_found_in_every_shape(body: Any) -> None:
    assert str(reply(400, body)).startswith("HTTP 400: no good.")


def test_a_list_of_faults_says_where_each_is() -> None:
    error = reply(
        422, {"detail": [{"loc": ["body", "top_k"], "msg": "Extra"}, {"loc": ["body", "n", 0], "msg": "Bad"}]}
    )
    assert "body.top_k: Extra; body.n.0: Bad" in str(error)
    assert error.param == "top_k"


def test_the_words_of_the_provider_behind_a_router_are_found() -> None:
    raw = json.dumps({"message": "Unexpected role 'user' after role 'tool'", "code": "3230"})
    error = reply(400, said("Provider returned error", code=400, metadata={"raw": raw, "provider_name": "Mistral"}))
    assert "Provider returned error: Unexpected role 'user' after role 'tool'" in str(error)
    assert error.kind == "placement"


def test_of_a_web_page_only_the_title_is_told() -> None:
    error = reply(502, "<html><head><title>502\n Bad Gateway</title></head><body>nginx</body></html>")
    assert str(error) == "HTTP 502: a web page titled '502 Bad Gateway'."


def test_a_body_without_words_is_told_as_such() -> None:
    assert str(reply(500)) == "HTTP 500: the server gave no reason."


def test_long_words_are_cut() -> None:
    assert len(str(reply(400, said("x" * 100_000)))) < 1200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "code", "type", "param", "metadata", "raw", "loc", "msg"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON, st.sampled_from([400, 401, 404, 429, 500, 529]))
def test_any_json_makes_an_error(body: Any, status: int) -> None:
    assert reply(status, body).status == status
    assert str(error_in_answer(body))


@given(st.binary(max_size=60), st.integers(300, 599), st.text(max_size=12))
def test_any_bytes_and_headers_make_an_error(body: bytes, status: int, value: str) -> None:
    headers = {"Retry-After": value, "retry-after-ms": value, "location": value, "date": value}
    assert error_from_reply(status, headers, body).status == status


def test_a_redirect_to_no_address_is_still_told() -> None:
    assert "points to an address that cannot be read" in str(reply(302, location="http://["))


# ---- kinds


@pytest.mark.parametrize(
    ("status", "message", "more", "kind"),
    [
        (401, "bad key", {}, "auth"),
        (403, "not yours", {}, "auth"),
        (402, "Insufficient credits", {}, "quota"),
        (429, "You exceeded your current quota", {"code": "insufficient_quota"}, "quota"),
        (400, "Your credit balance is too low to access the API.", {}, "quota"),
        (429, "slow down", {}, "rate_limit"),
        (408, "timed out", {}, "timeout"),
        (504, "", {}, "timeout"),
        (524, "", {}, "timeout"),
        (503, "Loading model", {}, "overloaded"),
        (529, "Overloaded", {"type": "overloaded_error"}, "overloaded"),
        (500, "oops", {}, "server"),
        (502, "oops", {}, "server"),
        (400, "no", {}, "bad_request"),
        (404, "no", {}, "bad_request"),
        (400, "This model's maximum context length is 4096 tokens.", {}, "context_length"),
        (400, "no", {"code": "context_length_exceeded"}, "context_length"),
        (400, "request (19389 tokens) exceeds the available context size (4096 tokens)", {}, "context_length"),
        (400, "prompt is too long: 250000 tokens > 200000 maximum", {}, "context_length"),
        (413, "Request exceeds the maximum size", {}, "context_length"),
        (400, "no", {"code": "content_filter"}, "filtered"),
        (400, "An assistant message with 'tool_calls' must be followed by tool messages", {}, "placement"),
        (400, "No tool output found for function call call_1.", {}, "placement"),
        (400, "Unexpected role 'user' after role 'tool'", {}, "placement"),
        (500, "Error: Jinja Exception: Conversation roles must alternate user/assistant", {}, "placement"),
        (400, "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after", {}, "placement"),
        (400, "A conversation must alternate between user and assistant roles.", {}, "placement"),
        (
            400,
            "Please ensure that function response turn comes immediately after a function call turn.",
            {},
            "placement",
        ),
        (500, "image input is not supported - hint: you may need to provide the mmproj", {}, "bad_request"),
        (400, "Invalid `signature` in `thinking` block. It is bound to a different conversation.", {}, "bad_request"),
    ],
)
def test_the_kind_of_a_refusal(status: int, message: str, more: dict[str, Any], kind: str) -> None:
    assert reply(status, said(message, **more)).kind == kind


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 524, 529])
def test_what_may_pass_later_is_retryable(status: int) -> None:
    assert reply(status, said("not now")).retryable


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 413, 422])
def test_what_will_not_pass_later_is_not_retryable(status: int) -> None:
    assert not reply(status, said("no")).retryable


@pytest.mark.parametrize(
    "message", ["insufficient_quota", "Jinja Exception: roles", "image input is not supported", "context_length"]
)
def test_a_server_error_that_no_retry_cures_is_not_retryable(message: str) -> None:
    assert not reply(500, said(message)).retryable


def test_a_server_may_say_itself_whether_to_retry() -> None:
    assert not reply(500, x_should_retry="false").retryable
    assert reply(400, x_should_retry="true").retryable
    assert not reply(429, said("insufficient_quota"), x_should_retry="true").retryable


@pytest.mark.parametrize(
    ("error", "param"),
    [
        ({"message": "no", "param": "top_k"}, "top_k"),
        ({"message": "Unsupported parameter: 'max_tokens' is not supported with this model."}, "max_tokens"),
        ({"message": "Unsupported value: 'temperature' does not support 0.1 with this model."}, "temperature"),
        ({"message": "[] is too short - 'tools'"}, "tools"),
        ({"message": "stream_options: Extra inputs are not permitted"}, "stream_options"),
        ({"message": "Function tools with reasoning_effort are not supported for gpt-5.6"}, "reasoning_effort"),
        ({"message": "no"}, None),
    ],
)
def test_the_field_that_was_refused_is_found(error: dict[str, Any], param: str | None) -> None:
    assert reply(400, {"error": error}).param == param


def test_a_model_that_needs_the_responses_api_is_told_its_client() -> None:
    message = "Function tools with reasoning_effort are not supported. Please use /v1/responses instead."
    assert "Take steerkit.models.openai_responses" in str(reply(400, said(message)))


# ---- errors in answers that began well


def test_an_error_in_an_answer_takes_its_status_from_its_own_code() -> None:
    error = error_in_answer(said("busy", code="529"), partial="Hel")
    assert (error.status, error.kind, error.retryable, error.partial) == (529, "overloaded", True, "Hel")


def test_an_error_in_an_answer_takes_its_kind_from_its_type() -> None:
    error = error_in_answer({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}})
    assert (error.status, error.kind) == (None, "rate_limit")


def test_an_error_in_an_answer_that_says_nothing_of_its_kind_is_the_servers() -> None:
    error = error_in_answer({"error": "lost"})
    assert (error.status, error.kind, error.retryable) == (None, "server", True)


def test_json_that_was_cut_short_may_come_whole_later() -> None:
    assert [error_in_text(body).retryable for body in (b"", b' {"a": ', b"[1", b"Hello")] == [True, True, True, False]


# ---- when to come again


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25),
        ({"retry_after": "2.5"}, 2.5),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:05 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 5),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:05 GMT"}, 0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "-3"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_the_server_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    if headers == {"retry_after": "Wed, 21 Oct 2026 07:28:05 GMT"}:
        headers = {"retry_after": formatdate(1, usegmt=True)}  # long ago by any clock
    assert reply(429, said("slow"), **headers).retry_after == seconds


# ---- exceptions


def tangled(reason: BaseException) -> requests.ConnectionError:
    """`reason` as requests wraps it."""
    pool = urllib3.HTTPConnectionPool("localhost")
    return requests.ConnectionError(
        urllib3.exceptions.MaxRetryError(pool, "/v1?key=sk-secret", urllib3.exceptions.ProtocolError("x", reason))
    )


@pytest.mark.parametrize(
    ("error", "phase", "kind", "words"),
    [
        (tangled(ConnectionRefusedError(111, "Connection refused")), "connect", "connection", "Connection refused"),
        (tangled(socket.gaierror(-2, "Name not known")), "connect", "connection", "Name not known"),
        (requests.ConnectTimeout(), "connect", "connection", "within 3 s"),
        (requests.ReadTimeout(), "connect", "connection", "within 3 s"),
        (requests.ReadTimeout(), "headers", "timeout", "no answer for 7 s"),
        (TimeoutError(), "body", "timeout", "nothing more of its answer for 7 s"),
        (tangled(ConnectionResetError(104, "reset")), "headers", "connection", "before the answer came"),
        (urllib3.exceptions.ProtocolError("x", OSError("cut")), "body", "truncated", "in the middle of the answer"),
        (requests.exceptions.ProxyError("no"), "connect", "connection", "through the proxy"),
    ],
)
def test_what_the_network_does_is_told(error: Exception, phase: str, kind: str, words: str) -> None:
    told = error_from_exception(error, phase, ENDPOINT)
    assert (told.kind, told.retryable) == (kind, True)
    assert words in str(told)
    assert "key=" not in str(told)


def test_a_certificate_that_is_not_trusted_stays_so() -> None:
    reason = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed (_ssl.c:1006)")
    error = error_from_exception(tangled(reason), "connect", ENDPOINT)
    assert not error.retryable
    assert "self-signed). If an authority of your own" in str(error)


# ---- secrets


def test_a_name_is_put_before_an_error_and_secrets_are_taken_out() -> None:
    endpoint = Endpoint("http://localhost/v1", "sk-secret", headers={"x-key": "other-secret", "x-beta": "on"})
    error = named(reply(400, said("sk-secret other-secret on")), "m", "http://localhost/v1/ask?key=hidden", endpoint)
    assert str(error) == "m at http://localhost/v1/ask: HTTP 400: [redacted] [redacted] on."
