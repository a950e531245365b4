"""An agent for editors: the Agent Client Protocol on stdio, with `_session/steering`.

To read it, begin with `session.py` (its rules are the heart), then `agent.py` (the methods) and `connection.py`.
"""

from steerkit.frontends.acp.agent import Agent
from steerkit.frontends.acp.serve import serve
from steerkit.frontends.acp.setup import Setup
from steerkit.frontends.acp.store import Store

__all__ = ["Agent", "Setup", "Store", "serve"]
