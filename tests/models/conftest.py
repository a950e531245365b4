"""What the tests of the HTTP transport need: TLS that is trusted, clients that are closed, no proxy of the machine."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from steerkit.models.client import WireClient
from tests.models.raw_server import RawServer, TextWire


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The context of a server on localhost whose certificate the environment trusts."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    return context


@pytest.fixture(params=["plain", "tls"])
def maybe_tls(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("tls") if request.param == "tls" else None


@pytest.fixture
def client_of() -> Iterator[Callable[..., WireClient]]:
    """Makes clients of a server, and closes them."""
    clients: list[WireClient] = []

    def make(server: RawServer, **settings: Any) -> WireClient:
        clients.append(WireClient(server.endpoint(**{"max_retries": 0, **settings}), TextWire()))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
