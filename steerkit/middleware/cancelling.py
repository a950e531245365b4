"""Cancelling: no request after a cancel, and what a cancel breaks is the cancel, whatever the client calls it."""

from __future__ import annotations

from steerkit.core.cancel import Cancelled
from steerkit.core.model import ModelClient, OnText, Request, Response


class Cancelling:
    """A model client that asks the client within only while the run goes on.

    An answer that arrived whole is passed on even when the cancel came meanwhile: the model has read what it carried,
    and its tokens are spent.
    """

    def __init__(self, inner: ModelClient) -> None:
        self._inner = inner

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        request.cancellation.raise_if_requested()
        try:
            return self._inner.complete(request, on_text)
        except Exception as error:
            # A broken connection is told in many ways by as many clients.
            if request.cancellation.requested:
                raise Cancelled from error
            raise
