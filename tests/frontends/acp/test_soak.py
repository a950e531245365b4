"""Fifty people at once, at random: nothing is answered twice or never, and no accepted steer is lost.

`STEERKIT_SOAK=60` makes it a minute; by default it is a few seconds.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from steerkit.testing import Reply, call, say
from tests.frontends.acp.client import OPT_IN, AcpError, Client
from tests.frontends.acp.desk import Asked, Desk

SECONDS = float(os.environ.get("STEERKIT_SOAK", "3"))
PEOPLE = 50
ROUNDS = 8  # turns of one session, so that its history stays short


def model(asked: Asked) -> Reply:
    """What it does hangs on what it reads alone."""
    dice = random.Random(asked.raw)
    if asked.messages[-1]["role"] == "user" and "FLUSH" not in asked.raw and dice.random() < 0.5:
        tool = dice.choice([call("list_files"), call("write_file", path=f"{dice.random()}", content="x")])
        return say("let me see. ") + tool
    return say("words " * dice.randrange(30))


@pytest.fixture
def soak(tmp_path: Path) -> Iterator[tuple[Client, Desk]]:
    desk = Desk()
    desk.rule("SOAK", model)
    client = Client(desk.url, tmp_path, "--agent", "tests.frontends.acp.agents:noisy")
    client.initialize()
    yield client, desk
    client.kill()
    desk.close()
    assert not client.faults


class Person:
    """Drives sessions of their own, one after another, and notes what must and must not have been read."""

    def __init__(self, number: int, client: Client, desk: Desk, folder: Path) -> None:
        self.dice = random.Random(number)
        self.client = client
        self.desk = desk
        self.folder = folder
        self.answered: set[int] = set()
        self.count = 0
        self.steers = 0
        self.outcomes: dict[str, int] = {}

    def live(self, until: float) -> None:
        while time.monotonic() < until:
            self.session(self.client.new(self.folder), until)

    def session(self, session: str, until: float) -> None:
        must: list[str] = []
        must_not: list[str] = []
        for _ in range(ROUNDS):
            self.turn(session, must, must_not)
            if time.monotonic() > until:
                break
        self.client.call("session/set_mode", {"sessionId": session, "modeId": "auto"})
        flush = f"SOAK-FLUSH-{session}."
        prompt = self.client.prompt(session, flush)
        self.answer_permissions(session, [prompt])
        assert prompt.wait()["stopReason"] == "end_turn"
        read = self.desk.with_token(flush)[-1].raw
        assert [token for token in must if token not in read] == []
        assert [token for token in must_not if token in read] == []
        assert self.client.call("session/close", {"sessionId": session}) == {}

    def turn(self, session: str, must: list[str], must_not: list[str]) -> None:
        token = self.token(session)
        prompt = self.client.prompt(session, token)
        cancels = self.dice.random() < 0.25
        steers = [self.steer(session) for _ in range(self.dice.randrange(4))]
        if cancels:
            self.client.cancel(session)
        steers += [self.steer(session) for _ in range(self.dice.randrange(2))]
        self.answer_permissions(session, [prompt, *(pending for _, pending in steers)])
        if prompt.wait()["stopReason"] != "cancelled":
            must.append(token)
        may_be_dropped = cancels
        for text, pending in steers:
            outcome = self.note(text, pending, must, must_not, dropped=may_be_dropped)
            # What joins a turn that a steer started is dropped if the next turn's cancel ends that one first.
            may_be_dropped = may_be_dropped or outcome == "startedNewTurn"

    def answer_permissions(self, session: str, requests: list[Any]) -> None:
        """Until every one of these requests is answered."""

        def asked() -> list[Any]:
            calls = self.client.calls_of("session/request_permission", session)
            return [one for one in calls if one["id"] not in self.answered]

        def settled() -> bool:
            return all(request.answered for request in requests)

        while not settled():
            self.client.until(lambda: asked() or settled(), "a permission or the end")
            for one in asked():
                self.answered.add(one["id"])
                self.client.answer(one, self.dice.choice(["allow", "reject", None]))

    def steer(self, session: str) -> tuple[str, Any]:
        token = self.token(session)
        return token, self.client.steer(session, token, **self.dice.choice([{}, OPT_IN]))

    def note(self, token: str, pending: Any, must: list[str], must_not: list[str], *, dropped: bool) -> str:
        self.steers += 1
        try:
            outcome: str = pending.wait()["outcome"]
        except AcpError as error:
            assert error.code == -32600
            outcome = "refused"
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if outcome == "startedNewTurn" or (outcome == "injected" and not dropped):
            must.append(token)
        elif outcome in ("promptRequired", "refused"):
            must_not.append(token)
        return outcome

    def token(self, session: str) -> str:
        self.count += 1
        return f"SOAK-{session[:12]}-{self.count}."


class Held(NamedTuple):
    """What the agent's process holds, as Linux tells it; nothing elsewhere. Idle connections to the model stay open."""

    threads: int
    files: int
    mebibytes: float

    @classmethod
    def by(cls, client: Client) -> Held:
        process = Path(f"/proc/{client.process.pid}")
        if not (process / "task").is_dir():
            return cls(0, 0, 0)
        links = [os.readlink(link) for link in (process / "fd").iterdir()]
        pages = int((process / "statm").read_text().split()[1])
        return cls(
            threads=len(list((process / "task").iterdir())),
            files=sum(not link.startswith("socket:") for link in links),
            mebibytes=pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        )


def test_fifty_sessions_at_random(soak: tuple[Client, Desk], tmp_path: Path) -> None:
    client, desk = soak
    work = tmp_path / "work"
    work.mkdir()
    Person(1000, client, desk, work).session(client.new(work), time.monotonic() + SECONDS)
    before = Held.by(client)
    people = [Person(number, client, desk, work) for number in range(PEOPLE)]
    failures: list[BaseException] = []

    def live(person: Person, until: float) -> None:
        try:
            person.live(until)
        except BaseException as error:
            failures.append(error)

    until = time.monotonic() + SECONDS
    drivers = [threading.Thread(target=live, args=(person, until), name="person", daemon=True) for person in people]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(SECONDS + 60)
        assert not driver.is_alive(), "a person waits for ever"
    if failures:
        raise failures[0]
    total = sum((Counter(person.outcomes) for person in people), Counter())
    after = Held.by(client)
    print(f"{sum(person.count for person in people)} messages; steers: {dict(total)}; {before} -> {after}")
    assert {"injected", "startedNewTurn", "promptRequired"} <= set(total)
    assert after.mebibytes - before.mebibytes < 40, "what fifty sessions at once need, however long they last"
    client.until(lambda: Held.by(client).threads <= before.threads, "the threads to end")
    assert Held.by(client).files <= before.files
    assert client.end() == 0
