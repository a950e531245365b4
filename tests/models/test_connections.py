from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest

from steerkit.core.cancel import Cancellation, Cancelled
from steerkit.core.errors import ModelError
from steerkit.core.model import Endpoint, Request, Response
from steerkit.models.client import WireClient
from steerkit.models.connections import Exchange
from tests.models.raw_server import (
    DONE,
    LAST_CHUNK,
    PATIENCE,
    STREAM,
    STREAM_TO_CLOSE,
    Connection,
    RawServer,
    Received,
    TextReader,
    TextWire,
    always,
    cancelled_while,
    chunk,
    head,
    plain,
    question,
    streamed,
    text_event,
    text_of,
)

Make = Callable[..., WireClient]


def test_a_cancel_breaks_the_wait_for_the_answer(maybe_tls: Any, client_of: Make) -> None:
    asked = threading.Event()

    def answer(_received: Received, connection: Connection) -> None:
        asked.set()
        connection.wait_until_client_leaves()

    with RawServer(answer, maybe_tls) as server:
        assert cancelled_while(asked, client_of(server), lambda _text: None) < 5


@pytest.mark.parametrize("begin", [STREAM + chunk(text_event("a")), STREAM_TO_CLOSE + text_event("a")])
def test_a_cancel_breaks_the_reading_of_a_stream(begin: bytes, maybe_tls: Any, client_of: Make) -> None:
    shown = threading.Event()

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(begin)
        connection.wait_until_client_leaves()

    with RawServer(answer, maybe_tls) as server:
        assert cancelled_while(shown, client_of(server), lambda _text: shown.set()) < 5


def test_a_cancel_breaks_the_reading_of_a_plain_answer_that_ends_with_the_connection(client_of: Make) -> None:
    begun = threading.Event()

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(head(content_type="application/json", connection="close") + b'{"text": ')
        begun.set()
        connection.wait_until_client_leaves()

    with RawServer(answer) as server:
        assert cancelled_while(begun, client_of(server), None) < 5


def test_a_request_of_a_cancelled_run_is_not_sent(client_of: Make) -> None:
    cancellation = Cancellation()
    cancellation.request()
    with RawServer(always(plain("never"))) as server:
        with pytest.raises(Cancelled):
            client_of(server).complete(question(cancellation=cancellation))
        assert server.requests == []


def test_after_a_cancel_the_client_goes_on_with_a_new_connection(client_of: Make) -> None:
    asked = threading.Event()

    def answer(_received: Received, connection: Connection) -> None:
        if len(server.requests) == 1:
            asked.set()
            connection.wait_until_client_leaves()
        else:
            connection.send(plain("ok"))

    with RawServer(answer) as server:
        client = client_of(server)
        cancelled_while(asked, client, None)
        assert client.complete(question()).message.text == "ok"


def test_a_cancel_after_the_answer_does_not_touch_the_connection(client_of: Make) -> None:
    with RawServer(always(streamed("ok"))) as server:
        client = client_of(server)
        for _ in range(5):
            cancellation = Cancellation()
            assert text_of(client, cancellation=cancellation) == "ok"
            cancellation.request()
        assert len(server.connections) == 1


class CancellingWire(TextWire):
    """Cancels when the answer is whole and its connection is back in the pool, but the request has not returned."""

    def __init__(self, cancellation: Cancellation) -> None:
        self._cancellation = cancellation

    def reader(self, request: Request, endpoint: Endpoint) -> TextReader:
        cancellation = self._cancellation

        class Reader(TextReader):
            def response(self) -> Response:
                cancellation.request()
                return super().response()

        return Reader()


def test_a_cancel_cannot_reach_a_connection_that_is_back_in_the_pool() -> None:
    cancellation = Cancellation()
    with RawServer(always(streamed("ok"))) as server:
        client = WireClient(server.endpoint(), CancellingWire(cancellation))
        assert text_of(client, cancellation=cancellation) == "ok"
        assert text_of(client) == "ok"
        client.close()
        assert len(server.connections) == 1


def test_an_answer_that_had_come_when_the_cancel_came_is_passed_on_whole(client_of: Make) -> None:
    cancellation = Cancellation()
    with RawServer(always(streamed("a", "b"))) as server:
        client = client_of(server)
        response = client.complete(question(cancellation=cancellation), lambda _text: cancellation.request())
        assert response.message.text == "ab"
        assert text_of(client) == "ab"


def test_an_exchange_that_let_go_of_its_socket_cannot_shut_it() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        exchange = Exchange(1.0)
        exchange.carry(ours, reused=False)
        exchange.release()
        exchange.break_off()
        theirs.send(b"x")
        assert ours.recv(1) == b"x"


def test_an_exchange_that_was_broken_before_shuts_what_it_is_given() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        exchange = Exchange(1.0)
        exchange.break_off()
        with pytest.raises(Cancelled):
            exchange.carry(ours, reused=False)
        exchange.release()


def test_an_exchange_shuts_its_own_descriptor_and_not_the_number_that_was_reused() -> None:
    ours, theirs = socket.socketpair()
    exchange = Exchange(1.0)
    exchange.carry(ours, reused=False)
    number = ours.fileno()
    ours.close()
    others, peer = socket.socketpair()
    with others, peer, theirs:
        assert number in (others.fileno(), peer.fileno())
        exchange.break_off()
        peer.send(b"x")
        assert others.recv(1) == b"x"
        exchange.release()


def test_a_time_out_is_not_set_on_a_socket_that_was_let_go() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        exchange = Exchange(1.0)
        exchange.carry(ours, reused=False)
        exchange.release()
        exchange.set_timeout(0.25)
        assert ours.gettimeout() is None


class Crowd:
    """Threads that ask one client at once; about half of their requests are cancelled at a random moment."""

    def __init__(self, client: WireClient, threads: int, turns: int) -> None:
        self.wrong: list[object] = []
        self.whole: list[str] = []
        self.cancelled: list[str] = []
        workers = [threading.Thread(target=self._work, args=(client, number, turns)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)

    def _work(self, client: WireClient, number: int, turns: int) -> None:
        dice = random.Random(number)
        for turn in range(turns):
            cancellation = Cancellation()
            canceller = threading.Timer(dice.random() * 0.004, cancellation.request) if dice.random() < 0.5 else None
            if canceller:
                canceller.start()
            self._ask(client, f"{number}-{turn}", cancellation, doomed=canceller is not None)
            if canceller:
                canceller.join()

    def _ask(self, client: WireClient, name: str, cancellation: Cancellation, doomed: bool) -> None:
        try:
            text = client.complete(question(name, cancellation=cancellation), lambda _text: None).message.text
            self.whole.append(name)
            if text != name * 4:
                self.wrong.append((name, text))
        except Cancelled:
            self.cancelled.append(name)
            if not doomed:
                self.wrong.append((name, "cancelled with another"))
        except BaseException as error:
            self.wrong.append((name, error))


def open_files() -> set[int]:
    """The descriptors that are open in this process."""
    found = set()
    for number in range(1024):
        with contextlib.suppress(OSError):
            os.fstat(number)
            found.add(number)
    return found


def echo_four_times(received: Received, connection: Connection) -> None:
    event = chunk(text_event(json.loads(received.body)["text"]))
    connection.send(STREAM, event, event, event, event, chunk(DONE) + LAST_CHUNK)


def test_streams_that_are_cancelled_at_random_harm_no_other(client_of: Make) -> None:
    with RawServer(echo_four_times) as server:
        crowd = Crowd(client_of(server), 12, 160)
    assert crowd.wrong == []
    assert min(len(crowd.whole), len(crowd.cancelled)) > 160, "the cancels came too early or too late to test anything"


def test_streams_over_tls_that_are_cancelled_at_random_harm_no_other(tls: ssl.SSLContext, client_of: Make) -> None:
    with RawServer(echo_four_times, tls) as server:
        crowd = Crowd(client_of(server), 12, 40)
    assert crowd.wrong == []
    assert min(len(crowd.whole), len(crowd.cancelled)) > 40, "the cancels came too early or too late to test anything"


def test_no_socket_is_left_open_by_streams_that_were_cancelled(client_of: Make) -> None:
    before = open_files()
    with RawServer(echo_four_times) as server:
        client = client_of(server)
        Crowd(client, 12, 20)
        client.close()
    gc.collect()
    assert open_files() - before == set()


# ---- connections


def test_a_stream_that_was_read_to_its_end_mark_leaves_its_connection_to_the_next(client_of: Make) -> None:
    with RawServer(always(streamed("ok"))) as server:
        client = client_of(server)
        for _ in range(3):
            text_of(client)
        assert len(server.connections) == 1


def test_the_end_of_the_body_may_come_a_little_after_the_end_mark(client_of: Make) -> None:
    def answer(_received: Received, connection: Connection) -> None:
        connection.send(STREAM, chunk(text_event("ok")), chunk(DONE))
        connection.send(LAST_CHUNK)

    with RawServer(answer) as server:
        client = client_of(server)
        for _ in range(20):
            text_of(client)
        assert len(server.connections) == 1


def test_a_server_that_holds_the_body_open_behind_the_end_mark_holds_nobody_up(client_of: Make) -> None:
    def answer(_received: Received, connection: Connection) -> None:
        connection.send(STREAM, chunk(text_event("ok")), chunk(DONE))
        connection.wait_until_client_leaves()

    with RawServer(answer) as server:
        client = client_of(server)
        assert text_of(client) == text_of(client) == "ok"
        assert len(server.connections) == 2


def test_a_kept_connection_that_the_server_closed_is_replaced_at_once(client_of: Make) -> None:
    def answer(_received: Received, connection: Connection) -> None:
        if len(server.requests) == 2:
            connection.close()  # having read the request: the client cannot know before it sends
        else:
            connection.send(plain("ok"))

    with RawServer(answer) as server:
        client = client_of(server)
        client.complete(question())
        assert client.complete(question()).message.text == "ok"
        assert (len(server.requests), len(server.connections)) == (3, 2)


def test_a_new_connection_that_the_server_closes_is_an_error(client_of: Make) -> None:
    with RawServer(lambda _received, connection: connection.close()) as server:
        with pytest.raises(ModelError, match="broke before the answer came") as caught:
            client_of(server).complete(question())
        assert len(server.requests) == 1
    assert (caught.value.kind, caught.value.retryable) == ("connection", True)


def test_a_server_that_is_gone_behind_a_kept_connection_is_an_error(client_of: Make) -> None:
    with RawServer(always(plain("ok"))) as server:
        client = client_of(server)
        client.complete(question())
    with pytest.raises(ModelError, match="could not be reached"):
        client.complete(question())


def test_a_server_that_goes_with_a_kept_connection_is_an_error(client_of: Make) -> None:
    def answer(_received: Received, connection: Connection) -> None:
        if len(server.requests) == 2:
            server.stop_listening()
            connection.close()
        else:
            connection.send(plain("ok"))

    with RawServer(answer) as server:
        client = client_of(server)
        client.complete(question())
        with pytest.raises(ModelError, match="could not be reached"):
            client.complete(question())


def test_many_connections_may_be_open_at_once(client_of: Make) -> None:
    everyone = threading.Barrier(70)

    def answer(_received: Received, connection: Connection) -> None:
        everyone.wait(PATIENCE)
        connection.send(plain("ok"))

    with RawServer(answer) as server:
        client = client_of(server)
        for _ in range(2):
            threads = [threading.Thread(target=client.complete, args=(question(),)) for _ in range(70)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
        assert len(server.requests) == 140
        assert len(server.connections) == 70
