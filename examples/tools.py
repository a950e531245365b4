"""Read this first: a tool is a function, and an agent is a model that may call it.

It prints:

    search    {'query': {'description': 'a regular expression', 'type': 'string'}, 'limit': {'default': 10, ...}}
    the model called search({"query": "def unlock"})
    the tool answered vault.py:1
    the model called delete({"path": "vault.py"})
    the tool answered The user did not allow this call of delete. It was not run.
    the agent said unlock() is defined in vault.py, line 1.
"""

import re
from typing import Annotated

from steerkit import Event, Run, Runner, Spec, ToolCall, ToolCallEvent, ToolResultEvent, tool, user
from steerkit.models import openai_chat
from steerkit.patterns import ReAct
from steerkit.testing import call, gateway_or_env, say

FILES = {"vault.py": "def unlock(key):\n    return key == SECRET\n", "main.py": "from vault import unlock\n"}


@tool
def search(query: Annotated[str, "a regular expression"], limit: int = 10) -> str:
    """Search all files; answers with one `file:line` a match.

    Args:
        limit: the most matches.
    """
    found = [
        f"{name}:{number}"
        for name, text in FILES.items()
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(query, line)
    ]
    return "\n".join(found[:limit]) or "no match"


@tool(needs_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    del FILES[path]
    return "deleted"


def approve(tool_call: ToolCall) -> bool:
    """Asked before each call of a tool that needs approval. A program would ask its user."""
    return tool_call.name != "delete"


def tell(_run: Run, event: Event) -> None:
    if isinstance(event, ToolCallEvent):
        print(f"the model called {event.call.name}({event.call.arguments})")
    if isinstance(event, ToolResultEvent):
        print(f"the tool answered {event.message.text}")


SCRIPT = [
    call("search", query="def unlock"),
    call("delete", path="vault.py"),
    say("unlock() is defined in vault.py, line 1."),
]

if __name__ == "__main__":
    properties = search.parameters["properties"]
    print(
        f"search    {{'query': {properties['query']}, 'limit': {{'default': {properties['limit']['default']}, ...}}}}"
    )
    with gateway_or_env(SCRIPT) as (endpoint, model):
        spec = Spec(model, pattern="react", max_steps=8, tools=[search, delete], approve=approve)
        result = Runner(openai_chat, [ReAct()]).run(spec, [user("Where is unlock() defined?")], endpoint, tell)
        print("the agent said", result.output)
