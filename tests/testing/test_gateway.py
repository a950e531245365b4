from __future__ import annotations

import contextlib
import gc
import http.client
import json
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from steerkit.testing import Gateway, Recorded, Reply, call, cut, fail, raw, say
from tests.testing.asking import CHAT, MESSAGES, PATHS, PATIENCE, WatchedGate, body_for, events, post

Connect = Callable[[Gateway], http.client.HTTPConnection]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connections that are closed behind the test."""
    with contextlib.ExitStack() as opened:

        def open_one(gateway: Gateway) -> http.client.HTTPConnection:
            url = urlsplit(gateway.endpoint.base_url)
            connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=PATIENCE)
            return opened.enter_context(contextlib.closing(connection))

        yield open_one


def send(connection: http.client.HTTPConnection, body: dict[str, Any]) -> http.client.HTTPResponse:
    headers = {"authorization": "Bearer test-key", "content-type": "application/json"}
    connection.request("POST", "/v1" + CHAT, json.dumps(body), headers)
    return connection.getresponse()


def gateway_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("gateway")]


# ---- what it serves


def test_replies_come_in_the_order_of_the_script() -> None:
    with Gateway([say("one"), say("two")]) as gateway:
        texts = [post(gateway, CHAT).json()["choices"][0]["message"]["content"] for _ in range(2)]

    assert texts == ["one", "two"]


def test_it_records_path_headers_and_body_of_a_request() -> None:
    with Gateway([say("x")]) as gateway:
        post(gateway, CHAT + "?v=1", headers={"X-Note": "é".encode("latin-1")})
        [recorded] = gateway.requests

    assert recorded.path == "/v1/chat/completions?v=1"
    assert recorded.headers["x-note"] == "é"
    assert recorded.body == json.loads(recorded.raw) == body_for(CHAT)


def test_the_key_shows_in_no_repr_of_a_recorded_request() -> None:
    with Gateway([say("x")]) as gateway:
        post(gateway, CHAT)

        assert "test-key" not in repr(gateway.requests)


def test_a_function_answers_what_was_recorded() -> None:
    with Gateway(lambda recorded: say(recorded.body["model"])) as gateway:
        assert post(gateway, CHAT, body_for(CHAT, model="abc")).json()["choices"][0]["message"]["content"] == "abc"


@pytest.mark.parametrize("path", PATHS)
def test_the_end_of_the_script_is_told_and_not_to_be_tried_again(path: str) -> None:
    with Gateway([]) as gateway:
        answer = post(gateway, path)

    assert answer.status_code == 500
    assert "The script is over: it has 0 replies" in answer.json()["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"


def test_a_function_that_raises_is_told_by_the_answer() -> None:
    def script(_: Recorded) -> Reply:
        raise LookupError("no such reply")

    with Gateway(script) as gateway:
        assert "LookupError: no such reply" in post(gateway, CHAT).json()["error"]["message"]


def test_an_exception_is_no_step_of_its_script() -> None:
    with pytest.raises(TypeError, match="cut"):
        Gateway([say("x"), ValueError()])


def test_a_strictness_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="mistral, alternate"):
        Gateway([], strict="gemini")  # type: ignore[arg-type]


def test_its_endpoint_can_be_had_with_other_settings() -> None:
    with Gateway([]) as gateway:
        endpoint = gateway.endpoint_with(read_timeout=0.2)

    assert (endpoint.base_url, endpoint.read_timeout) == (gateway.endpoint.base_url, 0.2)


def test_fifty_requests_at_once_are_answered_each_with_its_own() -> None:
    together = threading.Barrier(50, timeout=PATIENCE)

    def script(recorded: Recorded) -> Reply:
        together.wait()
        return say(recorded.body["model"])

    def ask(number: int) -> str:
        answer = post(gateway, CHAT, body_for(CHAT, model=f"m{number}", stream=True))
        return "".join(one["choices"][0]["delta"].get("content") or "" for one in events(answer))

    with Gateway(script) as gateway, ThreadPoolExecutor(50) as pool:
        assert list(pool.map(ask, range(50))) == [f"m{number}" for number in range(50)]


# ---- the options of replies


def test_an_answer_is_held_back_before_its_first_byte() -> None:
    gate = WatchedGate()
    with Gateway([say("late").after(gate)]) as gateway, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(post, gateway, CHAT)
        assert gate.looked_at.wait(PATIENCE)
        assert not asked.done()
        gate.set()
        assert asked.result(PATIENCE).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_pauses_exactly_where_it_was_told_to(path: str) -> None:
    gate = WatchedGate()
    with Gateway([say("Hello there").pausing(gate, after=6)]) as gateway:
        answer = post(gateway, path, body_for(path, stream=True), stream=True)
        sent = b""
        while b'"o "' not in sent:
            sent += answer.raw.read1(65536)
        assert gate.looked_at.wait(PATIENCE)
        assert b"the" not in sent
        gate.set()
        assert b'"ere"' in answer.raw.read()


def test_a_plain_answer_pauses_in_the_middle_of_its_body() -> None:
    gate = WatchedGate()
    with Gateway([say("Hello").pausing(gate, after=2)]) as gateway:
        answer = post(gateway, CHAT, stream=True)
        half = answer.raw.read1(65536)
        assert gate.looked_at.wait(PATIENCE)
        assert 0 < len(half) < int(answer.headers["content-length"])
        gate.set()
        assert json.loads(half + answer.raw.read())["choices"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_drops_the_connection_in_the_middle(stream: bool) -> None:
    with Gateway([say("Hello").cut(2)]) as gateway, pytest.raises(requests.exceptions.ChunkedEncodingError):
        post(gateway, CHAT, body_for(CHAT, stream=stream))


def test_a_cut_in_a_stream_sends_what_stands_before_it(connect: Connect) -> None:
    with Gateway([say("Hello").cut(2)]) as gateway:
        answer = send(connect(gateway), body_for(CHAT, stream=True))
        with pytest.raises(http.client.IncompleteRead) as caught:
            answer.read()

    assert b'"content":"He"' in caught.value.partial


def test_a_cut_without_an_answer_sends_nothing_at_all(connect: Connect) -> None:
    with Gateway([cut()]) as gateway, pytest.raises(http.client.RemoteDisconnected):
        send(connect(gateway), body_for(CHAT))


def test_a_failure_has_its_status_headers_and_the_words_of_the_script() -> None:
    with Gateway([fail(429, "slow down", headers={"retry-after": "7"})]) as gateway:
        answer = post(gateway, CHAT)

    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert answer.json()["error"]["message"] == "slow down"


@pytest.mark.parametrize(
    ("body", "sent", "kind"),
    [({"detail": "no"}, b'{"detail": "no"}', "application/json"), ("<html>", b"<html>", "text/html")],
)
def test_a_failure_may_have_a_body_of_its_own(body: object, sent: bytes, kind: str) -> None:
    headers = {} if kind == "application/json" else {"Content-Type": kind}
    with Gateway([fail(502, body=body, headers=headers)]) as gateway:
        answer = post(gateway, CHAT)

    assert (answer.content, answer.headers["content-type"]) == (sent, kind)


# ---- verbatim answers


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_a_verbatim_answer_arrives_as_it_is_in_every_framing(framing: Any) -> None:
    body = bytes(range(256))
    with Gateway([raw(body, status=203, headers={"x-a": "b"}, framing=framing, write_size=100)]) as gateway:
        answer = post(gateway, CHAT)

    assert (answer.status_code, answer.headers["x-a"], answer.content) == (203, "b", body)


def test_a_verbatim_answer_is_written_in_pieces_of_the_size_that_was_asked_for() -> None:
    with Gateway([raw("abcdefg", framing="chunked", write_size=3)]) as gateway:
        chunks = list(post(gateway, CHAT, stream=True).raw.read_chunked())

    assert chunks == [b"abc", b"def", b"g"]


def test_a_verbatim_answer_without_framing_ends_with_the_connection(connect: Connect) -> None:
    with Gateway([raw("x", framing="close"), say("y")]) as gateway:
        connection = connect(gateway)
        assert send(connection, body_for(CHAT)).read() == b"x"
        send(connection, body_for(CHAT)).read()

        assert gateway.connections == 2


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_an_aborted_answer_never_looks_whole(framing: Any, connect: Connect) -> None:
    lost = pytest.raises((http.client.IncompleteRead, ConnectionResetError))
    aborted = Gateway([raw("abc", framing=framing, abort=True)])
    with aborted as gateway, lost, send(connect(gateway), body_for(CHAT)) as answer:
        answer.read()


def test_a_verbatim_answer_pauses_after_so_many_bytes() -> None:
    gate = WatchedGate()
    with Gateway([raw("abcdef", framing="chunked").pausing(gate, after=4)]) as gateway:
        answer = post(gateway, CHAT, stream=True)
        assert answer.raw.read1(100) == b"abcd"
        assert gate.looked_at.wait(PATIENCE)
        gate.set()
        assert answer.raw.read() == b"ef"


# ---- connections and threads


def test_a_connection_is_kept_for_the_next_request(connect: Connect) -> None:
    with Gateway([say("one"), say("two"), fail(400)]) as gateway:
        connection = connect(gateway)
        for body in (body_for(CHAT), body_for(CHAT, stream=True), body_for(CHAT)):
            send(connection, body).read()

        assert gateway.connections == 1


def test_small_writes_are_not_held_back(connect: Connect) -> None:
    with Gateway(lambda _: say("x")) as gateway:
        connection = connect(gateway)
        began = time.monotonic()
        for _ in range(50):
            send(connection, body_for(CHAT)).read()

    # Where each waits for the acknowledgement of the one before it, they take 40 ms each.
    assert time.monotonic() - began < 1.5


def test_a_connection_that_has_ended_leaves_nothing_behind(connect: Connect) -> None:
    with Gateway([say("x"), say("y")]) as gateway:
        connection = connect(gateway)
        send(connection, body_for(CHAT)).read()
        [thread] = [thread for thread in gateway_threads() if thread.name == "gateway-connection"]
        connection.close()
        thread.join(PATIENCE)
        left = weakref.ref(thread)
        del thread
        post(gateway, CHAT)  # the accepting thread forgets a connection when the next one comes
        gc.collect()

        assert left() is None


def test_a_body_may_be_sent_in_chunks(connect: Connect) -> None:
    with Gateway([say("one"), say("two")]) as gateway:
        connection = connect(gateway)
        data = json.dumps(body_for(CHAT)).encode()
        headers = {"authorization": "Bearer test-key"}
        connection.request("POST", "/v1" + CHAT, iter([data[:9], data[9:]]), headers, encode_chunked=True)
        connection.getresponse().read()
        send(connection, body_for(CHAT)).read()

        assert [recorded.body for recorded in gateway.requests] == [body_for(CHAT)] * 2


POST = b"POST /v1/chat/completions HTTP/1.1\r\n"


@pytest.mark.parametrize(
    "spoken",
    [
        b"",
        b"hello\r\n\r\n",
        b"one two three\r\n\r\n",
        POST + b"content-le",
        POST + b"content-length: 9\r\n\r\n{}",
        POST + b"content-length: x\r\n\r\n",
        POST + b"transfer-encoding: chunked\r\n\r\nx\r\n",
        POST + b"transfer-encoding: chunked\r\n\r\n9\r\n{}",
    ],
)
def test_a_client_that_sends_no_whole_request_disturbs_nobody(spoken: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with Gateway([say("one")]) as gateway:
        url = urlsplit(gateway.endpoint.base_url)
        with socket.create_connection((url.hostname or "", url.port or 0)) as connection:
            connection.sendall(spoken)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
        post(gateway, CHAT)
        assert [recorded.body for recorded in gateway.requests] == [body_for(CHAT)]

    assert capfd.readouterr() == ("", "")


def test_a_client_that_goes_away_in_a_stream_leaves_no_traceback_and_no_thread(
    capfd: pytest.CaptureFixture[str],
) -> None:
    gate = WatchedGate()
    with Gateway([say("word " * 100_000).pausing(gate, after=4)]) as gateway:
        answer = post(gateway, CHAT, body_for(CHAT, stream=True), stream=True)
        assert gate.looked_at.wait(PATIENCE)
        [connection] = [thread for thread in gateway_threads() if thread.name == "gateway-connection"]
        answer.close()
        gate.set()
        connection.join(PATIENCE)
        assert not connection.is_alive()

    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "reply",
    [
        lambda gate: say("x").after(gate),
        lambda gate: say("Hello").pausing(gate, after=2),
        lambda gate: raw("abc").pausing(gate, after=1),
    ],
    ids=["before the first byte", "in an answer", "in a verbatim answer"],
)
def test_closing_ends_an_answer_at_a_closed_gate_and_leaves_no_thread(
    reply: Callable[[threading.Event], Reply], connect: Connect
) -> None:
    gate = WatchedGate()
    gateway = Gateway([reply(gate)])
    connection = connect(gateway)
    connection.request("POST", "/v1" + CHAT, json.dumps(body_for(CHAT)), {"authorization": "Bearer test-key"})
    assert gate.looked_at.wait(PATIENCE)
    gateway.close()

    assert not gateway_threads()


def test_closing_ends_idle_connections_and_leaves_no_thread(connect: Connect) -> None:
    gateway = Gateway([say("x")])
    connection = connect(gateway)
    send(connection, body_for(CHAT)).read()
    began = time.monotonic()
    gateway.close()

    assert not gateway_threads()
    assert time.monotonic() - began < 2


def test_closing_ends_a_write_to_a_client_that_does_not_read() -> None:
    gate = WatchedGate()
    gateway = Gateway([raw(b"x" * 50_000_000, framing="chunked", write_size=100_000).pausing(gate, after=1)])
    answer = post(gateway, CHAT, stream=True)
    assert gate.looked_at.wait(PATIENCE)
    gate.set()
    gateway.close()
    answer.close()

    assert not gateway_threads()


def test_a_closed_gateway_takes_no_connection() -> None:
    gateway = Gateway([say("x")])
    gateway.close()

    with pytest.raises(requests.ConnectionError):
        post(gateway, CHAT)


def test_closing_twice_is_as_good_as_once() -> None:
    gateway = Gateway([])
    gateway.close()
    gateway.close()

    assert not gateway_threads()


def test_serving_forever_ends_with_close() -> None:
    gateway = Gateway([])
    serving = threading.Thread(target=gateway.serve_forever)
    serving.start()
    gateway.close()
    serving.join(PATIENCE)

    assert not serving.is_alive()


# ---- calls


def test_calls_have_the_same_ids_plain_and_streamed() -> None:
    script = [call("search", query="x") + call("search")]
    with Gateway(script * 2) as gateway:
        plain = [block["id"] for block in post(gateway, MESSAGES).json()["content"]]
        streamed = events(post(gateway, MESSAGES, body_for(MESSAGES, stream=True)))

    starts = [one["content_block"]["id"] for one in streamed if one["type"] == "content_block_start"]
    assert plain + starts == ["call_1", "call_2", "call_3", "call_4"]
