"""Desk: the model server of these tests. Every request waits there until a test, or a rule, answers it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from steerkit.testing import Gateway, Recorded, Reply, say
from tests.conftest import PATIENCE


class Asked:
    """One model request that waits for its answer."""

    def __init__(self, recorded: Recorded) -> None:
        self.body = recorded.body
        self.raw = json.dumps(recorded.body, ensure_ascii=False)
        self.taken = False
        self._reply: Reply | None = None
        self._answered = threading.Event()

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    def user_texts(self) -> list[str]:
        return [str(message["content"]) for message in self.messages if message["role"] == "user"]

    def reply(self, reply: Reply | str) -> None:
        self._reply = say(reply) if isinstance(reply, str) else reply
        self._answered.set()

    def wait(self) -> Reply:
        self._answered.wait()
        assert self._reply is not None
        return self._reply


Rule = Callable[[Asked], Reply]


class Desk:
    """Owns `_asked`, `_rules` and `_closed`, under `_changed`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked: list[Asked] = []
        self._rules: dict[str, Rule] = {}
        self._closed = False
        self.never = threading.Event()  # a gate that stays closed until the desk does
        self.gateway = Gateway(self._answer)

    @property
    def url(self) -> str:
        return self.gateway.endpoint.base_url

    def next(self, token: str) -> Asked:
        """The next request with `token` in it that nobody has taken; waits for it."""

        def find() -> Asked | None:
            return next((asked for asked in self._asked if not asked.taken and token in asked.raw), None)

        with self._changed:
            asked = self._changed.wait_for(find, PATIENCE)
            assert asked is not None, f"no model request with {token}"
            asked.taken = True
            return asked

    def with_token(self, token: str) -> list[Asked]:
        with self._changed:
            return [asked for asked in self._asked if token in asked.raw]

    def rule(self, token: str, rule: Rule) -> None:
        """Answer every request with `token` in it at once."""
        with self._changed:
            self._rules[token] = rule

    def close(self) -> None:
        with self._changed:
            self._closed = True
            asked = list(self._asked)
        for one in asked:
            one.reply("The desk is closed.")
        self.never.set()
        self.gateway.close()

    def _answer(self, recorded: Recorded) -> Reply:
        asked = Asked(recorded)
        with self._changed:
            self._asked.append(asked)
            rule = next((rule for token, rule in self._rules.items() if token in asked.raw), None)
            asked.taken = rule is not None
            self._changed.notify_all()
            if self._closed:
                return say("The desk is closed.")
        return rule(asked) if rule else asked.wait()
