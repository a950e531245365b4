"""steer() returns a receipt: what became of it, and a way to take it back.

It prints:

    'be brief' is pending
    'be brief' is pending
    'and thank the user' is pending
    one of the two equal ones is withdrawn: True
    'be brief' is withdrawn
    'be brief' is applied, in request 1 at index 3
    'and thank the user' is continued
    turns: 2
    withdrawing it now: False
"""

from steerkit import Event, Run, Runner, Spec, Steer, ToolCallEvent, tool, user
from steerkit.models import openai_chat
from steerkit.patterns import ReAct
from steerkit.testing import call, gateway_or_env, say


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: a strong room"


receipts: list[Steer] = []


def tell(steer: Steer) -> None:
    where = f", in request {steer.request} at index {steer.index}" if steer.state == "applied" else ""
    print(f"{steer.text!r} is {steer.state}{where}")


def speak(run: Run, event: Event) -> None:
    if isinstance(event, ToolCallEvent) and not receipts:
        receipts.append(run.steer("be brief"))
        receipts.append(run.steer("be brief"))
        receipts.append(run.steer("and thank the user", when="idle"))  # not before the pattern has returned
        for steer in receipts:
            tell(steer)
        print("one of the two equal ones is withdrawn:", run.withdraw(receipts[0]))


SCRIPT = [call("look_up", word="vault"), say("A strong room."), say("Thank you for asking.")]

if __name__ == "__main__":
    with gateway_or_env(SCRIPT) as (endpoint, model):
        spec = Spec(model, pattern="react", max_steps=4, tools=[look_up], steer_continuations=1)
        run = Runner(openai_chat, [ReAct()]).start(spec, [user("What is a vault?")], endpoint, speak)
        result = run.wait()
    for steer in receipts:
        steer.wait()  # returns as soon as its fate is known
        tell(steer)
    print("turns:", result.turns)
    print("withdrawing it now:", run.withdraw(receipts[1]))
