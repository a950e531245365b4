"""A run that goes the wrong way is told so by its own event handler.

It prints:

    the agent reads tests/test_vault.py
    the agent reads vault.py
    the agent reads config.py

    carried by  a user message of its own, at index 3 of 8:
        | The user sent this while you were working; their earlier request still stands:
        | the failure is in vault.py, stop reading tests
    still last  a tool message

    the agent said The test fails because vault.py compares the key with SECRET, which config.py never sets.
"""

from steerkit import Event, Run, Runner, Spec, ToolCallEvent, tool, user
from steerkit.models import openai_chat
from steerkit.patterns import ReAct
from steerkit.testing import call, gateway_or_env, say

FILES = {
    "tests/test_vault.py": "from vault import unlock\n\ndef test_unlock():\n    assert unlock('tiger')\n",
    "vault.py": "from config import SECRET\n\ndef unlock(key):\n    return key == SECRET\n",
    "config.py": "SECRET = None\n",
}


@tool
def read_file(path: str) -> str:
    """Read a file of the project."""
    return FILES.get(path, "There is no such file.")


def watch(run: Run, event: Event) -> None:
    """Called in the run's worker for every event, with the run: so it can say something to it."""
    if isinstance(event, ToolCallEvent):
        path = event.call.parse()["path"]
        print("the agent reads", path)
        if path.startswith("tests/"):
            run.steer("the failure is in vault.py, stop reading tests")


SCRIPT = [
    call("read_file", path="tests/test_vault.py"),
    call("read_file", path="vault.py"),
    call("read_file", path="config.py"),
    say("The test fails because vault.py compares the key with SECRET, which config.py never sets."),
]

if __name__ == "__main__":
    with gateway_or_env(SCRIPT) as (endpoint, model):
        spec = Spec(model, pattern="react", max_steps=12, tools=[read_file])
        task = f"Why does test_unlock fail? The files are: {', '.join(FILES)}."
        result = Runner(openai_chat, [ReAct()]).run(spec, [user(task)], endpoint, watch)

    request = result.messages[:-1]  # what the last request held: everything but the answer to it
    for index, message in enumerate(request):
        if "steer_id" in message.meta:
            print(f"\ncarried by  a user message of its own, at index {index} of {len(request)}:")
            print("\n".join(f"    | {line}" for line in message.text.splitlines()))
    print(f"still last  a {request[-1].role} message\n")
    print("the agent said", result.output)
