"""Where steering ends, and how each end can be seen.

It prints:

    1. a plan that was fixed before the steer existed
       planned and run: search(unlock), search(lock)
       the steer 'only unlock, please' was applied in request 1, which solves from what the plan brought
    2. a steer during the last call
       unapplied: ['and add a test']
    3. a steer after the end
       RunFinished: The run has ended. This steer was not queued.
       it still holds what was said: 'are you there?'
"""

from steerkit import (
    Endpoint,
    Event,
    Run,
    RunFinished,
    Runner,
    Spec,
    Steer,
    SteerEvent,
    TextEvent,
    ToolCallEvent,
    tool,
    user,
)
from steerkit.models import openai_chat
from steerkit.patterns import ReAct, ReWOO
from steerkit.testing import call, gateway_or_env, say


@tool
def search(query: str) -> str:
    """Search the codebase."""
    return f"vault.py defines {query}"


RUNNER = Runner(openai_chat, [ReAct(), ReWOO()])


def a_plan_is_not_changed(endpoint: Endpoint, model: str) -> None:
    planned: list[str] = []
    said: list[Steer] = []

    def watch(run: Run, event: Event) -> None:
        if isinstance(event, ToolCallEvent):
            planned.append(f"{event.call.name}({event.call.parse()['query']})")
            if not said:
                said.append(run.steer("only unlock, please"))
        if isinstance(event, SteerEvent):
            print(f"   planned and run: {', '.join(planned)}")

    spec = Spec(model, pattern="rewoo", max_steps=8, tools=[search])
    RUNNER.run(spec, [user("Find unlock and lock.")], endpoint, watch)
    (steer,) = said
    print(f"   the steer {steer.text!r} was {steer.state} in request {steer.request}, ", end="")
    print("which solves from what the plan brought")


def a_late_steer_comes_back(endpoint: Endpoint, model: str) -> Run:
    said: list[Steer] = []

    def watch(run: Run, event: Event) -> None:
        if isinstance(event, TextEvent) and not said:  # the answer is on its way: no request will follow
            said.append(run.steer("and add a test"))

    run = RUNNER.start(Spec(model, pattern="react", max_steps=8), [user("Explain unlock.")], endpoint, watch)
    print("   unapplied:", [steer.text for steer in run.wait().unapplied_steers])
    return run


def an_ended_run_refuses(run: Run) -> None:
    try:
        run.steer("are you there?")
    except RunFinished as error:
        print(f"   RunFinished: {error}")
        print(f"   it still holds what was said: {error.text!r}")


PLAN = [{"tool": "search", "arguments": {"query": "unlock"}}, {"tool": "search", "arguments": {"query": "lock"}}]
SCRIPT = [
    call("submit_plan", steps=PLAN),
    say("unlock is in vault.py."),
    say("It compares the key with SECRET."),
]

if __name__ == "__main__":
    with gateway_or_env(SCRIPT) as (endpoint, model):
        print("1. a plan that was fixed before the steer existed")
        a_plan_is_not_changed(endpoint, model)
        print("2. a steer during the last call")
        run = a_late_steer_comes_back(endpoint, model)
        print("3. a steer after the end")
        an_ended_run_refuses(run)
