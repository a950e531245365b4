"""Agents for `--agent` in these tests: the workspace tools, and tools that behave badly."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from steerkit import Spec, tool
from steerkit.tools.workspace import workspace


@tool
def shout(words: str) -> str:
    """Print words in every way there is."""
    print(words, flush=True)
    sys.stdout.write(words + "\n")
    sys.stdout.flush()
    os.write(1, words.encode() + b"\n")
    return "shouted"


@tool
def hang() -> str:
    """Never end, and start a thread that keeps a process alive."""
    thread = threading.Thread(target=threading.Event().wait, daemon=False)
    thread.start()
    thread.join()
    return "never"


@tool
def swallow() -> str:
    """Read what is on standard input."""
    return repr(sys.stdin.read())


def noisy(cwd: Path) -> Spec:
    tools = [*workspace(cwd), shout, hang, swallow]
    return Spec("test-model", "react", max_steps=4, tools=tools, approve=lambda _call: False)


def stingy(_cwd: Path) -> Spec:
    """One continuation, no more."""
    return Spec("test-model", "react", max_steps=4, steer_continuations=1)


quiet = Spec("test-model", "react", max_steps=4)

not_an_agent = 5


def faulty(_cwd: Path) -> Spec:
    raise RuntimeError("this agent cannot be made")
