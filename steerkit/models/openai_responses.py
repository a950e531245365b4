"""The client for OpenAI Responses and servers that speak it too."""

from __future__ import annotations

from steerkit.core.model import Endpoint
from steerkit.models.client import WireClient
from steerkit.models.openai_responses_wire import OpenAIResponsesWire


def openai_responses(endpoint: Endpoint) -> WireClient:
    """A model client for the Responses API, such as `Endpoint("https://api.openai.com/v1", api_key)`.

    Nothing is stored at the provider: each request holds the whole conversation, the model's reasoning encrypted in
    it. Any number of threads may share the client.
    """
    return WireClient(endpoint, OpenAIResponsesWire())
