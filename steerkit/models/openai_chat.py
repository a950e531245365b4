"""The client for chat completions: OpenAI, and nearly every server and gateway there is."""

from __future__ import annotations

from steerkit.core.model import Endpoint
from steerkit.models.client import WireClient
from steerkit.models.openai_chat_wire import ChatWire


def openai_chat(endpoint: Endpoint) -> WireClient:
    """A model client for chat completions, such as `Endpoint("http://localhost:11434/v1")`.

    The differences between OpenAI, Azure, OpenRouter, LiteLLM, vLLM, Ollama, llama.cpp, LM Studio, Gemini, Mistral,
    DeepSeek, Groq and Together are told apart by what they answer. Any number of threads may share the client.
    """
    return WireClient(endpoint, ChatWire())
