from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any

import pytest

from steerkit.core.cancel import Cancellation, Cancelled
from steerkit.core.errors import ModelError
from steerkit.models import client as client_module
from steerkit.models.client import WireClient
from tests.models.raw_server import (
    DONE,
    LAST_CHUNK,
    PATIENCE,
    STREAM,
    STREAM_TO_CLOSE,
    Answer,
    Connection,
    RawServer,
    Received,
    TextWire,
    chunk,
    head,
    http,
    plain,
    question,
    sent,
    streamed,
    text_event,
)


def one_after_another(*replies: bytes) -> Answer:
    """Answers each request with the next of `replies`; an empty one closes the connection."""
    left = list(replies)

    def answer(_received: Received, connection: Connection) -> None:
        reply = left.pop(0)
        connection.send(reply)
        if not reply or b"connection: close" in reply:
            connection.close()

    return answer


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come at once: the random part, which shortens the wait, takes all of it."""
    monkeypatch.setattr("random.random", lambda: 4.0)


def error_of(server: RawServer, on_text: Any = None, **endpoint: Any) -> ModelError:
    client = WireClient(server.endpoint(**endpoint), TextWire())
    try:
        with pytest.raises(ModelError) as caught:
            client.complete(question(), on_text)
        return caught.value
    finally:
        client.close()


def answer_of(server: RawServer, on_text: Any = None, **endpoint: Any) -> str:
    client = WireClient(server.endpoint(**endpoint), TextWire())
    try:
        return client.complete(question(), on_text).message.text
    finally:
        client.close()


REFUSED_PLACEMENT = http(400, '{"error": {"message": "Unexpected role \'user\' after role \'tool\'"}}')
OVERLOADED = http(529, '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}')


# ---- answers


def test_a_plain_answer_is_decoded() -> None:
    with RawServer(one_after_another(plain("Hello"))) as server:
        assert answer_of(server) == "Hello"


def test_a_streamed_answer_is_shown_piece_by_piece_and_returned_whole() -> None:
    pieces: list[str] = []
    with RawServer(one_after_another(streamed("Hel", "", "lo"))) as server:
        assert answer_of(server, pieces.append) == "Hello"
    assert pieces == ["Hel", "lo"]


def test_a_piece_is_shown_before_the_next_one_is_sent() -> None:
    shown = threading.Event()

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(STREAM, chunk(text_event("first")))
        assert shown.wait(PATIENCE)
        connection.send(chunk(DONE), LAST_CHUNK)

    with RawServer(answer) as server:
        assert answer_of(server, lambda _text: shown.set()) == "first"


def test_an_answer_that_ends_with_the_connection_is_read_as_it_comes() -> None:
    shown = threading.Event()

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(STREAM_TO_CLOSE, text_event("first"))
        assert shown.wait(PATIENCE)
        connection.send(DONE)
        connection.close()

    with RawServer(answer) as server:
        assert answer_of(server, lambda _text: shown.set()) == "first"


def test_a_json_answer_to_a_stream_request_is_taken_and_shown() -> None:
    pieces: list[str] = []
    with RawServer(one_after_another(plain("Hello"))) as server:
        assert answer_of(server, pieces.append) == "Hello"
    assert pieces == ["Hello"]


def test_a_stream_in_answer_to_a_plain_request_is_taken() -> None:
    with RawServer(one_after_another(streamed("Hel", "lo"))) as server:
        assert answer_of(server) == "Hello"


def test_a_stream_of_another_content_type_is_read_as_a_stream() -> None:
    body = head(content_type="text/plain", connection="close") + text_event("Hello") + DONE
    with RawServer(one_after_another(body)) as server:
        assert answer_of(server, lambda _text: None) == "Hello"


def test_a_web_page_is_an_error_that_names_base_url() -> None:
    page = http(200, "<!doctype html><title>Log in</title>", content_type="text/html; charset=utf-8")
    with RawServer(one_after_another(page, page)) as server:
        assert "a web page titled 'Log in'. Check that base_url" in str(error_of(server))
        assert "a web page titled 'Log in'" in str(error_of(server, lambda _text: None))


def test_an_event_that_was_cut_short_by_the_end_of_the_body_is_not_read() -> None:
    cut = STREAM_TO_CLOSE + text_event("Hel") + b'data: {"te'
    with RawServer(one_after_another(cut)) as server:
        error = error_of(server, lambda _text: None)
    assert (error.kind, error.partial) == ("truncated", "Hel")


def test_a_last_event_without_its_blank_line_is_read() -> None:
    with RawServer(one_after_another(STREAM_TO_CLOSE + text_event("Hello") + b"data: [DONE]")) as server:
        assert answer_of(server, lambda _text: None) == "Hello"


# ---- cures


def test_a_refused_placement_is_cured_and_sent_again_at_once() -> None:
    with RawServer(one_after_another(REFUSED_PLACEMENT, plain("ok"))) as server:
        assert answer_of(server, max_retries=0) == "ok"
        assert [body["mode"] for body in sent(server.requests)] == ["raw", "bridge"]


def test_what_cured_a_request_is_remembered_for_its_model() -> None:
    with RawServer(one_after_another(REFUSED_PLACEMENT, plain("1"), plain("2"))) as server:
        client = WireClient(server.endpoint(), TextWire())
        client.complete(question())
        client.complete(question())
        client.close()
        assert [body["mode"] for body in sent(server.requests)] == ["raw", "bridge", "bridge"]


def test_a_cure_that_did_not_help_is_not_remembered() -> None:
    with RawServer(one_after_another(REFUSED_PLACEMENT, REFUSED_PLACEMENT, plain("1"))) as server:
        client = WireClient(server.endpoint(), TextWire())
        with pytest.raises(ModelError):
            client.complete(question())
        client.complete(question())
        client.close()
        assert [body["mode"] for body in sent(server.requests)] == ["raw", "bridge", "raw"]


def test_one_request_may_need_two_cures() -> None:
    refused_field = http(400, '{"error": {"message": "Unknown parameter: \'top_k\'", "param": "top_k"}}')
    with RawServer(one_after_another(refused_field, REFUSED_PLACEMENT, plain("ok"))) as server:
        answer_of(server)
        last = sent(server.requests)[-1]
    assert (last["mode"], last["without"]) == ("bridge", ["top_k"])


def test_cures_that_turn_in_a_circle_end() -> None:
    refused = http(400, '{"error": {"message": "no", "param": "loop"}}')
    with RawServer(one_after_another(refused, refused, plain("never"))) as server:
        assert error_of(server).kind == "bad_request"
        assert [body["mode"] for body in sent(server.requests)] == ["raw", "fold"]


# ---- retries


def test_an_overloaded_server_is_asked_again(no_waiting: None) -> None:
    with RawServer(one_after_another(OVERLOADED, OVERLOADED, plain("ok"))) as server:
        assert answer_of(server, max_retries=2) == "ok"


def test_after_max_retries_the_error_says_how_often_it_was_sent(no_waiting: None) -> None:
    with RawServer(one_after_another(OVERLOADED, OVERLOADED, plain("never"))) as server:
        error = error_of(server, max_retries=1)
        assert len(server.requests) == 2
    assert error.kind == "overloaded"
    assert str(error).endswith("It was sent 2 times.")


def test_a_refused_request_is_not_sent_again() -> None:
    with RawServer(one_after_another(http(401, '{"error": {"message": "bad key"}}'))) as server:
        assert error_of(server).kind == "auth"


def test_the_wait_between_tries_doubles_and_ends_at_eight_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)
    retries = client_module._Retries(9)
    error = ModelError("x", kind="server", retryable=True)
    waits = []
    for sent_before in range(1, 8):
        retries._sent = sent_before
        waits.append(retries._pause(error))
    assert waits == [0.5, 1, 2, 4, 8, 8, 8]


def test_the_wait_is_the_one_that_the_server_asks_for(caplog: pytest.LogCaptureFixture) -> None:
    busy = http(429, '{"error": {"message": "slow down"}}', retry_after_ms="37")
    with (
        caplog.at_level(logging.INFO, "steerkit.models.client"),
        RawServer(one_after_another(busy, plain("ok"))) as server,
    ):
        assert answer_of(server) == "ok"
    assert "sent again in 0.04 s" in caplog.text


def test_a_server_that_asks_for_more_than_two_minutes_is_not_waited_for() -> None:
    busy = http(429, '{"error": {"message": "slow down"}}', retry_after="121")
    with RawServer(one_after_another(busy, plain("never"))) as server:
        error = error_of(server)
        assert len(server.requests) == 1
    assert (error.retryable, error.retry_after) == (True, 121)
    assert "asks to wait 121 s; a request is not sent again by itself after more than 120 s" in str(error)


def test_a_cancel_breaks_the_wait_between_tries() -> None:
    busy = http(429, '{"error": {"message": "slow down"}}', retry_after="100")
    cancellation = Cancellation()
    with RawServer(one_after_another(busy, plain("never"))) as server:
        client = WireClient(server.endpoint(), TextWire())
        waiting = threading.Event()
        handler = _CallingHandler(waiting.set)
        logger = logging.getLogger("steerkit.models.client")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:

            def cancel() -> None:
                waiting.wait(PATIENCE)
                cancellation.request()

            canceller = threading.Thread(target=cancel)
            canceller.start()
            began = time.monotonic()
            with pytest.raises(Cancelled):
                client.complete(question(cancellation=cancellation))
            assert time.monotonic() - began < 2
            canceller.join(PATIENCE)
        finally:
            logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET)
            client.close()


class _CallingHandler(logging.Handler):
    def __init__(self, call: Any) -> None:
        super().__init__()
        self._call = call

    def emit(self, record: logging.LogRecord) -> None:
        self._call()


def test_a_stream_that_breaks_before_any_text_is_asked_for_again(no_waiting: None) -> None:
    broken = STREAM + chunk(b": thinking\n\n") + b"connection: close"
    with RawServer(one_after_another(broken, streamed("ok"))) as server:
        assert answer_of(server, lambda _text: None) == "ok"


def test_an_error_in_a_stream_before_any_text_is_asked_for_again(no_waiting: None) -> None:
    failed = STREAM + chunk(b'data: {"error": {"code": 500, "message": "lost"}}\n\n') + LAST_CHUNK
    with RawServer(one_after_another(failed, streamed("ok"))) as server:
        assert answer_of(server, lambda _text: None) == "ok"


def test_a_stream_that_breaks_after_text_was_shown_is_an_error_with_that_text() -> None:
    pieces: list[str] = []
    broken = STREAM + chunk(text_event("Hel")) + chunk(text_event("lo")) + b"connection: close"
    with RawServer(one_after_another(broken, streamed("never"))) as server:
        error = error_of(server, pieces.append)
        assert len(server.requests) == 1
    assert (error.kind, error.partial, pieces) == ("truncated", "Hello", ["Hel", "lo"])


def test_an_error_in_a_stream_after_text_was_shown_is_not_cured_either() -> None:
    refused = b'data: {"error": {"message": "Unexpected role \'user\'"}}\n\n'
    broken = STREAM + chunk(text_event("Hel")) + chunk(refused) + LAST_CHUNK
    with RawServer(one_after_another(broken, streamed("never"))) as server:
        assert error_of(server, lambda _text: None).partial == "Hel"
        assert len(server.requests) == 1


def test_a_plain_answer_that_was_cut_short_is_asked_for_again(no_waiting: None) -> None:
    cut = head(content_type="application/json", connection="close") + b'{"text": "Hel'
    with RawServer(one_after_another(cut, plain("Hello"))) as server:
        assert answer_of(server) == "Hello"


def test_silence_before_the_answer_is_waited_for_twice_at_most(no_waiting: None) -> None:
    with RawServer(lambda _received, connection: connection.wait_until_client_leaves()) as server:
        error = error_of(server, read_timeout=0.05, max_retries=5)
        assert len(server.requests) == 2
    assert (error.kind, error.status) == ("timeout", None)
    assert "sent no answer for 0.05 s" in str(error)


def test_what_on_text_raises_comes_out_and_closes_the_connection() -> None:
    def answer(_received: Received, connection: Connection) -> None:
        connection.send(STREAM, chunk(text_event("first")))
        connection.wait_until_client_leaves()

    def handler(_text: str) -> None:
        raise LookupError("of the handler")

    with RawServer(answer) as server, pytest.raises(LookupError):
        answer_of(server, handler)


# ---- what an error says


def test_an_error_says_which_model_was_asked_and_where_but_no_query() -> None:
    with RawServer(one_after_another(http(404, '{"error": {"message": "no such model"}}'))) as server:
        error = error_of(server, base_url=f"{server.url}/v1?token=hidden")
        assert server.requests[0].target == "/v1/ask?token=hidden"
        assert str(error) == (
            f"tiny at {server.url}/v1/ask: HTTP 404: no such model. Check base_url and the name of the model."
        )


def test_a_key_that_the_provider_echoes_is_taken_out_of_the_error() -> None:
    body = json.dumps({"error": {"message": "Bad key sk-secret-key or my-header-secret", "param": "sk-secret-key"}})
    with RawServer(one_after_another(http(401, body), http(401, body))) as server:
        error = error_of(server, headers={"x-extra": "my-header-secret"})
    assert "Bad key [redacted] or [redacted]" in str(error)
    assert error.param == "[redacted]"


def test_a_key_that_is_echoed_in_the_middle_of_a_stream_is_taken_out_too(caplog: pytest.LogCaptureFixture) -> None:
    echo = b'data: {"error": {"message": "sk-secret-key"}}\n\n'
    with caplog.at_level(logging.DEBUG), RawServer(one_after_another(STREAM + chunk(echo) + LAST_CHUNK)) as server:
        error = error_of(server, lambda _text: None, max_retries=0)
    assert "sk-secret-key" not in f"{error!r}{caplog.text}"
