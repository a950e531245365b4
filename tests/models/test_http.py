from __future__ import annotations

import gzip
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from steerkit.core.errors import ModelError
from steerkit.core.model import Endpoint
from steerkit.models import http as http_module
from steerkit.models.client import WireClient
from tests.models.raw_server import (
    DONE,
    LAST_CHUNK,
    STREAM,
    STREAM_TO_CLOSE,
    Connection,
    RawServer,
    Received,
    TextWire,
    always,
    cancelled_while,
    chunk,
    head,
    http,
    plain,
    question,
    streamed,
    text_event,
    text_of,
)

Make = Callable[..., WireClient]


def drip(piece: bytes, begin: bytes) -> Callable[[Received, Connection], None]:
    """Sends `piece` every few milliseconds until the client leaves."""

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(begin)
        connection.sock.settimeout(0.02)
        while True:
            connection.send(piece)
            try:
                if not connection.sock.recv(1):
                    return
            except TimeoutError:
                pass

    return answer


@pytest.mark.parametrize("begin", [STREAM, STREAM + chunk(text_event("a"))])
def test_comments_do_not_put_off_the_deadline_of_a_stream(begin: bytes, client_of: Make) -> None:
    with (
        RawServer(drip(chunk(b": keep-alive\n\n"), begin)) as server,
        pytest.raises(ModelError, match=r"nothing more of its answer for 0\.2 s") as caught,
    ):
        text_of(client_of(server, read_timeout=0.2))
    assert caught.value.kind == "timeout"


def test_a_comment_leaves_the_stream_the_rest_of_its_deadline(client_of: Make) -> None:
    clock = threading.Event()  # never set

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(STREAM)
        clock.wait(0.8)
        connection.send(chunk(b": wait\n"))
        connection.wait_until_client_leaves()

    began = time.monotonic()
    with RawServer(answer) as server, pytest.raises(ModelError, match="nothing more of its answer for 1 s"):
        text_of(client_of(server, read_timeout=1.0))
    assert time.monotonic() - began < 1.5  # and not 0.8 + 1.0


def test_a_comment_that_comes_byte_by_byte_does_not_put_off_the_deadline(client_of: Make) -> None:
    clock = threading.Event()  # never set

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(STREAM)
        while True:
            for piece in (b"5", b"\r\n", b": x\n\n", b"\r\n"):
                clock.wait(0.15)
                connection.send(piece)

    with RawServer(answer) as server, pytest.raises(ModelError, match=r"nothing more of its answer for 0\.2 s"):
        text_of(client_of(server, read_timeout=0.2))


def test_blank_lines_do_not_put_off_the_deadline_of_a_plain_answer(client_of: Make) -> None:
    begin = head(content_type="application/json", transfer_encoding="chunked")
    with (
        RawServer(drip(chunk(b"\n"), begin)) as server,
        pytest.raises(ModelError, match=r"nothing more of its answer for 0\.2 s"),
    ):
        client_of(server, read_timeout=0.2).complete(question())


def test_each_event_of_a_stream_puts_off_its_deadline(client_of: Make) -> None:
    """As many events as take twice the deadline altogether, with comments between."""

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(STREAM)
        for _ in range(12):
            go_on.wait(0.05)
            connection.send(chunk(b": wait\n"), chunk(text_event("a")))
        connection.send(chunk(DONE), LAST_CHUNK)

    go_on = threading.Event()  # never set: it is a clock
    with RawServer(answer) as server:
        assert text_of(client_of(server, read_timeout=0.3)) == "a" * 12


def test_the_time_that_on_text_takes_is_not_the_servers(client_of: Make) -> None:
    clock = threading.Event()
    with RawServer(always(STREAM + chunk(text_event("a")) + chunk(b": x\n") + chunk(DONE) + LAST_CHUNK)) as server:
        client = client_of(server, read_timeout=0.2)

        def slow(_text: str) -> None:
            clock.wait(0.3)

        assert client.complete(question(), slow).message.text == "a"


def test_a_plain_answer_above_the_limit_is_an_error(client_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "LIMIT", 100_000)
    endless = head(content_type="application/json", connection="close")
    with RawServer(drip(b" " * 65536, endless)) as server, pytest.raises(ModelError, match="more than 100000 bytes"):
        client_of(server).complete(question())


def test_an_event_above_the_limit_is_an_error(client_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "LIMIT", 100_000)
    with (
        RawServer(drip(b"x" * 65536, STREAM_TO_CLOSE + b"data: ")) as server,
        pytest.raises(ModelError, match="one event of more than 100000 bytes"),
    ):
        text_of(client_of(server))


def test_a_large_error_page_is_read_in_part_only(client_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "_ERROR_LIMIT", 100_000)
    began = time.monotonic()
    page = head(500, content_type="text/plain", connection="close") + b"It broke."
    with RawServer(drip(b" " * 65536, page)) as server, pytest.raises(ModelError, match=r"HTTP 500: It broke\."):
        client_of(server).complete(question())
    assert time.monotonic() - began < 10  # the page has no end


def test_a_stream_that_comes_compressed_is_read(client_of: Make) -> None:
    body = gzip.compress(text_event("Hello") + DONE)
    reply = http(200, body, content_type="text/event-stream", content_encoding="gzip")
    with RawServer(always(reply)) as server:
        client = client_of(server)
        assert text_of(client) == text_of(client) == "Hello"
        assert len(server.connections) == 1
        assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_long_request_may_take_longer_to_send_than_connect_timeout(client_of: Make) -> None:
    pause = threading.Event()

    class SlowReader(RawServer):
        """Reads nothing for longer than the client may take to connect."""

        def _serve(self, sock: socket.socket) -> None:
            pause.wait(0.4)
            super()._serve(sock)

    with SlowReader(always(plain("ok"))) as server:
        client = client_of(server, connect_timeout=0.2)
        assert client.complete(question("x" * (16 << 20))).message.text == "ok"


# ---- what must not travel, and what must


def test_a_redirect_is_an_error_and_the_key_does_not_travel(client_of: Make) -> None:
    with RawServer(always(plain("never"))) as other:
        moved = http(307, location=f"{other.url}/v2/ask?secret=1")
        expected = f"HTTP 307 points to {other.url}/v2/ask. Redirects are not"
        with RawServer(always(moved)) as server, pytest.raises(ModelError, match=expected) as caught:
            client_of(server).complete(question())
        assert other.requests == []
    assert caught.value.kind == "bad_request"


def test_netrc_does_not_replace_the_key(client_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine localhost login me password mine\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with RawServer(always(plain("ok"))) as server:
        client_of(server).complete(question())
        assert server.requests[0].headers["authorization"] == "Bearer sk-secret-key"


def test_a_cookie_is_not_sent_back(client_of: Make) -> None:
    with RawServer(always(http(200, '{"text": "ok"}', set_cookie="a=1"))) as server:
        client = client_of(server)
        client.complete(question())
        client.complete(question())
        assert all("cookie" not in received.headers for received in server.requests)


def test_the_headers_of_the_endpoint_win_in_any_case_of_letters(client_of: Make) -> None:
    with RawServer(always(plain("ok"))) as server:
        client_of(server, headers={"authorization": "Token x", "X-Team": "blue"}).complete(question())
        headers = server.requests[0].headers
    assert (headers["authorization"], headers["x-team"]) == ("Token x", "blue")
    assert headers["user-agent"].startswith("steerkit/")


def test_the_query_of_base_url_stays_behind_the_path(client_of: Make) -> None:
    with RawServer(always(plain("ok"))) as server:
        client_of(server, base_url=f"{server.url}/deployments/x?api-version=1").complete(question())
        assert server.requests[0].target == "/deployments/x/ask?api-version=1"


def test_the_proxy_of_the_environment_is_used(client_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer(always(streamed("through the proxy"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        client = client_of(proxy, base_url="http://model.invalid/v1")
        assert text_of(client) == "through the proxy"
        assert proxy.requests[0].target == "http://model.invalid/v1/ask"


def test_no_proxy_of_the_environment_is_heeded(client_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    monkeypatch.setenv("no_proxy", "localhost")
    with RawServer(always(plain("straight"))) as server:
        assert client_of(server).complete(question()).message.text == "straight"


def test_tls_goes_through_a_tunnel_and_a_cancel_breaks_it(
    tls: ssl.SSLContext, client_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def tunnel(received: Received, connection: Connection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        secured = Connection(tls.wrap_socket(connection.sock, server_side=True))
        assert received.target == "localhost:443"
        inner = secured.receive()
        assert inner is not None
        assert inner.headers["authorization"] == "Bearer sk-secret-key"
        asked.set()
        secured.wait_until_client_leaves()
        secured.close()

    with RawServer(tunnel) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        client = client_of(proxy, base_url="https://localhost/v1")
        assert cancelled_while(asked, client, None) < 5
        assert "authorization" not in proxy.requests[0].headers


def test_a_server_whose_certificate_is_not_trusted_is_sent_nothing(tls: ssl.SSLContext, client_of: Make) -> None:
    with RawServer(always(plain("never")), tls) as server:
        os.environ.pop("REQUESTS_CA_BUNDLE")
        with pytest.raises(ModelError, match="certificate is not trusted") as caught:
            client_of(server, max_retries=3).complete(question())
        assert server.requests == []
    assert not caught.value.retryable


def test_a_certificate_for_another_host_is_not_trusted(tls: ssl.SSLContext, client_of: Make) -> None:
    with RawServer(always(plain("never")), tls) as server:
        with pytest.raises(ModelError, match="certificate is not trusted"):
            client_of(server, base_url=server.url.replace("localhost", "127.0.0.1")).complete(question())
        assert server.requests == []


def test_a_ca_bundle_that_cannot_be_read_is_told_when_the_client_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    with RawServer(always(b"")) as server, pytest.raises(ValueError, match=r"'/nowhere/ca\.pem' cannot be read"):
        WireClient(server.endpoint(base_url="https://localhost/v1"), TextWire())


def test_a_host_that_is_not_known_is_an_error_that_may_pass(client_of: Make) -> None:
    with RawServer(always(b"")) as server, pytest.raises(ModelError, match="could not be reached") as caught:
        client_of(server, base_url="http://model.invalid/v1").complete(question())
    assert (caught.value.kind, caught.value.retryable) == ("connection", True)


def test_a_port_where_nobody_listens_is_an_error_that_may_pass(client_of: Make) -> None:
    with RawServer(always(b"")) as server:
        client = client_of(server)
    with pytest.raises(ModelError, match=r"Connection refused.*Check base_url") as caught:
        client.complete(question())
    assert (caught.value.kind, caught.value.retryable) == ("connection", True)


def test_a_server_that_never_ends_the_tls_handshake_was_not_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = Endpoint(f"https://localhost:{silent.getsockname()[1]}", connect_timeout=0.1, max_retries=0)
        client = WireClient(endpoint, TextWire())
        with pytest.raises(ModelError, match=r"could not be reached within 0\.1 s") as caught:
            client.complete(question())
        client.close()
    assert caught.value.kind == "connection"
