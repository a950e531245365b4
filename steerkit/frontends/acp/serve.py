"""serve(): one agent on standard input and output, until the input ends."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from types import FrameType

from steerkit.frontends.acp.agent import Agent
from steerkit.frontends.acp.connection import claim_stdio

# Seconds for turns to end once the input has; the client is promised an exit within two.
_LAST_WORDS = 1.5

# Seconds for which a busy thread may keep the interpreter. With Python's own 5 ms a steer waits 30 ms (99th percentile)
# while a turn streams as fast as it can; with this, 6.
_SWITCH_INTERVAL = 0.0005


def serve(agent: Agent) -> None:
    """Serve until the input ends, the client reads no more, or the process is asked to stop; then end the process.

    For the main thread of a process that does nothing else: it ends even if a tool hangs.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL)
    signal.signal(signal.SIGTERM, _stop)
    connection = agent.connect(*claim_stdio())
    try:
        # In steps: on Windows nothing can interrupt a wait without an end.
        while not connection.over.wait(60.0):
            pass
    except KeyboardInterrupt:
        pass
    agent.stop(_LAST_WORDS)
    logging.shutdown()
    if _somebody_hangs():
        os._exit(0)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _somebody_hangs() -> bool:
    """Whether a thread would keep the process alive: a tool that did not end when its run was cancelled."""
    return any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate())
