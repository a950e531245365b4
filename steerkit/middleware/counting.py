"""Counting: how many requests a run made, and the tokens of them all."""

from __future__ import annotations

from steerkit.core.model import ModelClient, OnText, Request, Response, Usage


class Counting:
    """A model client that adds up what the client within was asked. Written by the worker, read from any thread."""

    def __init__(self, inner: ModelClient) -> None:
        self._inner = inner
        self.requests = 0
        self.usage = Usage()

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        self.requests += 1
        response = self._inner.complete(request, on_text)
        if response.usage is not None:
            self.usage += response.usage
        return response
