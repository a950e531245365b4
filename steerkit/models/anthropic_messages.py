"""The client for Anthropic Messages and what speaks it: Claude, and gateways to it."""

from __future__ import annotations

from attrs import evolve

from steerkit.core.model import Endpoint
from steerkit.models.anthropic_messages_wire import AnthropicMessagesWire
from steerkit.models.client import WireClient


def anthropic_messages(endpoint: Endpoint) -> WireClient:
    """A model client for the Messages API, such as `Endpoint("https://api.anthropic.com", api_key)`.

    A `base_url` that ends in `/v1` is taken too. Without `ModelRef.max_tokens` an answer may have 8192 tokens: the
    API wants a limit. Any number of threads may share the client.
    """
    return WireClient(evolve(endpoint, base_url=endpoint.base_url.removesuffix("/v1")), AnthropicMessagesWire())
