"""A pattern of your own: a class with a name and a run(turn). It is steered without a line about steering.

It prints:

    the agent heard: the cheap one, please
    spent 30 of 40 tokens, output: The red one is the cheapest.
    spent 45 of 40 tokens, output: (stopped at the ceiling) Still comparing.
"""

from steerkit import Event, Response, Run, Runner, Spec, SteerEvent, ToolCallEvent, Turn, Usage, tool, user
from steerkit.models import openai_chat
from steerkit.testing import call, gateway_or_env, say


class Thrifty:
    """ReAct that stops once it has spent its tokens."""

    name = "thrifty"

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling

    def run(self, turn: Turn) -> str:
        spent = 0
        while True:
            reply = turn.ask()
            turn.messages.append(reply.message)
            spent += self.cost(reply)
            if not reply.message.tool_calls:
                return reply.message.text
            if spent >= self.ceiling:
                return f"(stopped at the ceiling) {reply.message.text}"
            for tool_call in reply.message.tool_calls:
                turn.messages.append(turn.answer(tool_call))

    @staticmethod
    def cost(reply: Response) -> int:
        usage = reply.usage or Usage()
        return usage.input_tokens + usage.output_tokens


@tool
def price(item: str) -> int:
    """The price of an item."""
    return len(item)


def watch(run: Run, event: Event) -> None:
    if isinstance(event, ToolCallEvent) and event.call.parse()["item"] == "golden":
        run.steer("the cheap one, please")
    if isinstance(event, SteerEvent):
        print("the agent heard:", event.steer.text)


ASK = call("price", item="silver")
SCRIPTS = [
    [call("price", item="golden"), say("The red one is the cheapest.")],
    [ASK, ASK, say("Still comparing.") + ASK],
]

if __name__ == "__main__":
    runner = Runner(openai_chat, [Thrifty(ceiling=40)])
    for script in SCRIPTS:
        with gateway_or_env(script) as (endpoint, model):
            spec = Spec(model, pattern="thrifty", max_steps=8, tools=[price])
            result = runner.run(spec, [user("Which one shall I buy?")], endpoint, watch)
        spent = result.usage.input_tokens + result.usage.output_tokens
        print(f"spent {spent} of 40 tokens, output: {result.output}")
