"""A steer that comes too late can start another turn, a bounded number of times.

It prints:

    turn 1: Renamed unlock to open_vault.
    turn 2, for 'and its test': Renamed test_unlock too.
    turn 3, for 'and the docs': Updated the docs.

    one result: 3 turns, 3 steps, 45 tokens
        user       Rename unlock.
        assistant  Renamed unlock to open_vault.
        user       and its test
        assistant  Renamed test_unlock too.
        user       and the docs
        assistant  Updated the docs.
    after the allowance: ['and commit']
"""

from steerkit import Event, Run, Runner, Spec, TextEvent, TurnEvent, user
from steerkit.models import openai_chat
from steerkit.patterns import ReAct
from steerkit.testing import gateway_or_env, say

LATE = ["and its test", "and the docs", "and commit"]


def say_it_late(run: Run, event: Event) -> None:
    """Says one thing in each turn, once its answer has begun: too late for any request of that turn."""
    if isinstance(event, TurnEvent):
        heard = f", for {event.steers[0].text!r}" if event.steers else ""
        print(f"turn {event.turn}{heard}: ", end="")
    if isinstance(event, TextEvent):
        if event.turn not in spoken:
            spoken.add(event.turn)
            run.steer(LATE[event.turn - 1])
        print(event.text, end="\n" if event.text.endswith(".") else "")


spoken: set[int] = set()
SCRIPT = [say("Renamed unlock to open_vault."), say("Renamed test_unlock too."), say("Updated the docs.")]

if __name__ == "__main__":
    with gateway_or_env(SCRIPT) as (endpoint, model):
        spec = Spec(model, pattern="react", max_steps=4, steer_continuations=2)
        result = Runner(openai_chat, [ReAct()]).run(spec, [user("Rename unlock.")], endpoint, say_it_late)

    tokens = result.usage.input_tokens + result.usage.output_tokens
    print(f"\none result: {result.turns} turns, {result.steps} steps, {tokens} tokens")
    for message in result.messages:
        print(f"    {message.role:9}  {message.text}")
    print("after the allowance:", [steer.text for steer in result.unapplied_steers])
