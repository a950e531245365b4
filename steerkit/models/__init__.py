"""Talk to a provider. Each name makes the client of an `Endpoint`, fit for `Runner(openai_chat, [...])`.

`openai_chat` is the one that nearly every server and gateway speaks; OpenAI's own newest models want
`openai_responses`, and Claude `anthropic_messages`.
"""

from steerkit.models.anthropic_messages import anthropic_messages
from steerkit.models.openai_chat import openai_chat
from steerkit.models.openai_responses import openai_responses

__all__ = ["anthropic_messages", "openai_chat", "openai_responses"]
