"""Watch a run and type at it: what most programs want.

    STEER_FROM_STDIN=1 python examples/steering_typed.py     reads your keyboard

Without that variable a scripted line is put where the keyboard was and goes through the same call, so that
`make example` never waits for anybody.

It prints:

    (type while it works; each line is a steer)
    the agent runs the tests ...
    the agent heard: only the vault tests, please
    the agent runs the tests in vault ...
    the agent said The vault tests pass.
"""

import os

from steerkit import Event, Run, Runner, Spec, SteerEvent, ToolCallEvent, ToolContext, tool, user
from steerkit.frontends.terminal import steer_from_stdin
from steerkit.models import openai_chat
from steerkit.patterns import ReAct
from steerkit.testing import call, gateway_or_env, say


@tool
def run_tests(context: ToolContext, folder: str = "") -> str:
    """Run the tests of the project, or of one folder. All of them take half a minute."""
    if not folder and context.wait(30):
        return "Stopped early: the user has something to say."
    return "12 passed"


def show(_run: Run, event: Event) -> None:
    if isinstance(event, ToolCallEvent):
        folder = event.call.parse().get("folder", "")
        print(f"the agent runs the tests{' in ' + folder if folder else ''} ...", flush=True)
    if isinstance(event, SteerEvent):
        print("the agent heard:", event.steer.text, flush=True)


def type_for_the_reader(line: str) -> None:
    """Put a pipe with this line where the keyboard was."""
    read_end, write_end = os.pipe()
    os.write(write_end, line.encode() + b"\n")
    os.dup2(read_end, 0)


SCRIPT = [call("run_tests"), call("run_tests", folder="vault"), say("The vault tests pass.")]

if __name__ == "__main__":
    if not os.environ.get("STEER_FROM_STDIN"):
        type_for_the_reader("only the vault tests, please")
    print("(type while it works; each line is a steer)", flush=True)
    with gateway_or_env(SCRIPT) as (endpoint, model):
        spec = Spec(model, pattern="react", max_steps=12, tools=[run_tests])
        with Runner(openai_chat, [ReAct()]).start(spec, [user("Do the tests pass?")], endpoint, show) as run:
            steer_from_stdin(run)
            print("the agent said", run.wait().output)
