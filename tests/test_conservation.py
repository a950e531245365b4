"""Conservation by brute force: whatever happens to a run, every accepted steer meets exactly one fate."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest

from steerkit import Message, Pattern, Run, RunFinished, Steer, Turn, tool
from steerkit.core.model import Request
from steerkit.patterns import Plan, ReAct, Reflection, ReWOO
from steerkit.testing import Reply, ScriptedModel, call, fail, say
from tests.conftest import PATIENCE, FunctionPattern, accounted, ask_until_answered, start

THREADS = 8
EACH_SAYS = 50  # if the run lasts
STEERS = 5_000  # to every pattern
FATES = {"applied", "continued", "withdrawn", "unapplied"}


@tool
def look() -> str:
    """Look."""
    return "seen"


def wild(turn: Turn) -> str:
    """A pattern that does to its list what patterns do: it copies, shortens, summarises, and tries again."""
    private = list(turn.messages)
    for step in range(2):
        turn.messages.append(ask_until_answered(turn).message)
        turn.messages += [turn.answer(each) for each in turn.messages[-1].tool_calls]
        if step % 2:
            turn.ask(messages=private, tools=(), carry_steers=False)
        reply = turn.ask(messages=[*private, turn.messages[-1]] if turn.messages[-1].role != "tool" else private)
        private = [Message(m.role, m.content, m.tool_calls, m.tool_call_id) for m in private]
        if not reply.message.tool_calls:
            private.append(reply.message)
    if turn.number == 1:  # later, what was said before is part of the list, and a pattern may drop that too
        del turn.messages[1:-1]
    if turn.messages[-1].role == "tool":
        turn.messages[-1] = private[-1]
    return private[-1].text


class Crowd:
    """Eight threads that steer one run, withdraw some of it, and sometimes cancel.

    The model answers only when some of them have spoken, so that every request has something to carry.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._spoken = threading.Semaphore(0)
        self._random = random.Random(seed)  # the worker's own
        self.accepted: list[Steer] = []
        self.withdrawn: list[Steer] = []

    def reply(self, request: Request) -> Reply:
        """What the model says; called by the worker."""
        for _ in range(self._random.randint(0, 60)):
            assert self._spoken.acquire(timeout=PATIENCE)
        chance = self._random.random()
        if chance < 0.06:
            return fail(500)
        if chance < 0.1:
            return say("half an answer").cut(self._random.randint(0, 8))
        return say("A") if request.tool_choice == "none" else self._answer(request)

    def _answer(self, request: Request) -> Reply:
        own = next((each.name for each in request.tools if each.name.startswith("submit_")), None)
        if own == "submit_plan":
            return call(own, steps=[{"tool": "look", "arguments": {}}] * self._random.randint(1, 3))
        if own == "submit_critique":
            return call(own, good=self._random.random() < 0.3, critique="hm")
        return call("look") + call("look") if request.tools and self._random.random() < 0.7 else say("A")

    def storm(self, run: Run) -> None:
        threads = [threading.Thread(target=self._speak, args=(run, number)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(4 * PATIENCE)
            assert not thread.is_alive(), "a thread is stuck"
        for _ in range(10_000):
            self._spoken.release()

    def _speak(self, run: Run, number: int) -> None:
        dice = random.Random(f"{self._seed} {number}")
        mine: list[Steer] = []
        when: Any = ["next_request"] * 9 + ["idle"]
        for count in range(EACH_SAYS):
            try:
                mine.append(run.steer(f"S{number}.{count}", when=dice.choice(when)))
            except RunFinished:
                break
            finally:
                self._spoken.release()
            if dice.random() < 0.1 and run.withdraw(taken_back := dice.choice(mine)):
                self.withdrawn.append(taken_back)
            if dice.random() < 0.0005:
                run.cancel()
        self.accepted += mine  # one step of the interpreter


PATTERNS: list[Pattern] = [ReAct(), Plan(), ReWOO(), Reflection(2), FunctionPattern(wild)]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_every_accepted_steer_of_a_storm_meets_exactly_one_fate(pattern: Pattern) -> None:
    fates: Counter[str] = Counter()
    seeds = iter(range(300))
    # How many are accepted depends on who is quicker, so it goes on until there are enough of each fate.
    while sum(fates.values()) < STEERS or len(fates) < len(FATES):
        seed = next(seeds)
        crowd = Crowd(seed)
        model = ScriptedModel(crowd.reply)
        run = start(model, pattern, tools=[look], max_steps=12, steer_continuations=seed % 3 + 1)
        crowd.storm(run)
        accounted(run, crowd.accepted, model)
        assert Counter(crowd.withdrawn) == Counter(each for each in crowd.accepted if each.state == "withdrawn")
        fates.update(steer.state for steer in crowd.accepted)
    assert set(fates) == FATES
