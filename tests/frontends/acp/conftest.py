from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.frontends.acp.client import Client
from tests.frontends.acp.desk import Desk

Spawn = Callable[..., Client]


@pytest.fixture(scope="package")
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.close()


@pytest.fixture(scope="package")
def shared_client(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One process for all tests that need no other: each works in sessions of its own."""
    client = Client(desk.url, tmp_path_factory.mktemp("acp"), "--agent", "tests.frontends.acp.agents:noisy")
    client.initialize()
    yield client
    client.kill()


@pytest.fixture
def client(shared_client: Client) -> Iterator[Client]:
    yield shared_client
    faults = list(shared_client.faults)
    shared_client.faults.clear()
    assert not faults


@pytest.fixture
def session(client: Client, tmp_path: Path) -> str:
    return client.new(tmp_path)


@pytest.fixture
def spawn(desk: Desk, tmp_path: Path) -> Iterator[Spawn]:
    """Starts further processes; each is checked like the shared one."""
    clients: list[Client] = []

    def start(*arguments: str, initialize: bool = True, deaf: bool = False, without: str = "") -> Client:
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        client = Client(desk.url, folder, *arguments, deaf=deaf, without=without)
        clients.append(client)
        if initialize:
            client.initialize()
        return client

    yield start
    for client in clients:
        client.kill()
        assert not client.faults
