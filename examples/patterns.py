"""One task under all four patterns.

It prints:

    pattern     steps  tool calls  tokens  output
    react           3           2      45  Oslo is 3 degrees colder.
    plan            4           2      60  Oslo is 3 degrees colder.
    rewoo           2           2      30  Oslo is 3 degrees colder.
    reflection      5           2      75  Oslo is 3 degrees colder (4 against 7).
"""

from steerkit import Runner, Spec, ToolCallEvent, tool, user
from steerkit.models import openai_chat
from steerkit.patterns import Plan, ReAct, Reflection, ReWOO
from steerkit.testing import call, gateway_or_env, say

DEGREES = {"Oslo": 4, "Bergen": 7}


@tool
def temperature(city: str) -> int:
    """The temperature in a city, in degrees Celsius."""
    return DEGREES[city]


ASK = [call("temperature", city="Oslo"), call("temperature", city="Bergen")]
STEPS = [{"tool": "temperature", "arguments": {"city": city}} for city in DEGREES]
ANSWER = say("Oslo is 3 degrees colder.")
SCRIPTS = {
    "react": [*ASK, ANSWER],
    "plan": [say("1. Look both up. 2. Compare."), *ASK, ANSWER],
    "rewoo": [call("submit_plan", steps=STEPS), ANSWER],
    "reflection": [
        *ASK,
        ANSWER,
        call("submit_critique", good=False, critique="It does not say the temperatures."),
        say("Oslo is 3 degrees colder (4 against 7)."),
    ],
}

if __name__ == "__main__":
    runner = Runner(openai_chat, [ReAct(), Plan(), ReWOO(), Reflection(cycles=1)])
    print("pattern     steps  tool calls  tokens  output")
    for pattern, script in SCRIPTS.items():
        with gateway_or_env(script) as (endpoint, model):
            spec = Spec(model, pattern=pattern, max_steps=8, tools=[temperature])
            run = runner.start(spec, [user("How much colder is Oslo than Bergen now?")], endpoint)
            result = run.wait()
        calls = sum(isinstance(event, ToolCallEvent) for event in run.events())
        tokens = result.usage.input_tokens + result.usage.output_tokens
        print(f"{pattern:10}  {result.steps:5}  {calls:10}  {tokens:6}  {result.output}")
