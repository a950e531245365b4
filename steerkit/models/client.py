"""WireClient: the one client loop for all wire formats. For one request:

1. encode it with the settings of its model, send it, and read the answer, as a stream when `on_text` is given;
2. refused, and the wire knows other settings that may pass: encode and send again, and remember them if they do;
3. failed, and it may pass later: wait and send again, `max_retries` times at most;
4. never 2 or 3 once a piece of the answer was shown: it would be shown twice.
"""

from __future__ import annotations

import json
import logging
import random
from typing import Any

from steerkit.core.cancel import Cancelled
from steerkit.core.errors import ModelError
from steerkit.core.model import Endpoint, OnText, Request, Response
from steerkit.models.failures import MAX_WAIT, error_from_reply, error_in_text, named
from steerkit.models.http import Reply, Transport
from steerkit.models.wire import Settings, Wire

logger = logging.getLogger(__name__)


class WireClient:
    """A model client that speaks `wire` with `endpoint`. Built once; any number of threads.

    The proxy and the CA bundle of the environment are those of the moment it is built.

    Args:
        endpoint: where the model is reached.
        wire: the format of requests and answers.

    Raises:
        ValueError: the environment names a proxy or a CA bundle that cannot be used.
    """

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._endpoint = endpoint
        self._wire = wire
        self._transport = Transport(endpoint, wire.path, wire.headers(endpoint))
        # By model. Threads may learn different things at once; what is lost is learned again.
        self._settings: dict[str, Settings] = {}

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        """Send `request` and return the whole answer. Any thread.

        Raises:
            ModelError: there is no whole answer; the error says what was asked, and holds the text that had come.
            Cancelled: `request.cancellation` broke the wait.
        """
        model = request.model.name
        first = settings = self._settings.get(model) or self._wire.settings(self._endpoint, model)
        tried = {settings}
        shown = _Shown(on_text)
        retries = _Retries(self._endpoint.max_retries)
        body = self._wire.encode(request, self._endpoint, settings, stream=shown.streams)
        while True:
            try:
                response = self._ask(body, request, shown)
            except ModelError as error:
                if shown.texts:
                    error.partial = error.partial or "".join(shown.texts)
                    error.retryable = False
                    raise self._named(error, model) from None
                cured = self._wire.cure(error, request, self._endpoint, settings)
                if cured is None or cured in tried:
                    retries.wait(self._named(error, model), request)
                    continue
                settings = cured
                tried.add(settings)
                body = self._wire.encode(request, self._endpoint, settings, stream=shown.streams)
                continue
            if settings != first:
                self._settings[model] = settings
            return response

    def close(self) -> None:
        """Close the connections that are kept; a later request fails. Without it they close with the client."""
        self._transport.close()

    def _ask(self, body: bytes, request: Request, shown: _Shown) -> Response:
        with self._transport.post(body, stream=shown.streams, cancellation=request.cancellation) as reply:
            if not 200 <= reply.status < 300:
                raise error_from_reply(reply.status, reply.headers, reply.error_body())
            # What came decides, not what was asked for: some servers never stream, and some always do.
            plain = "json" in reply.media_type or "html" in reply.media_type or not shown.streams
            if reply.media_type == "text/event-stream" or not plain:
                return self._read_stream(reply, request, shown)
            response = self._wire.decode(_parsed(reply.body()), request, self._endpoint)
            shown.add(response.message.text)
            return response

    def _read_stream(self, reply: Reply, request: Request, shown: _Shown) -> Response:
        reader = self._wire.reader(request, self._endpoint)
        for events in reply.events():
            for event in events:
                shown.add(reader.feed(event))
                if reader.done:
                    reply.finish()
                    return reader.response()
        return reader.response()

    def _named(self, error: ModelError, model: str) -> ModelError:
        return named(error, model, self._transport.url, self._endpoint)


class _Shown:
    """What was passed on of the answer, which cannot be taken back."""

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self.streams = on_text is not None
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        if text and self._on_text is not None:
            self.texts.append(text)
            self._on_text(text)


class _Retries:
    """Says whether and when a failed request is sent again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sent = 1
        self._timed_out = False

    def wait(self, error: ModelError, request: Request) -> None:
        """Return when the request is to be sent again.

        Raises:
            ModelError: `error`, if it is not.
            Cancelled: instead of the rest of the wait.
        """
        seconds = self._pause(error)
        if seconds is None:
            if self._sent > 1:
                error.args = (f"{error} It was sent {self._sent} times.",)
            raise error from None
        logger.info("%s It is sent again in %.2f s.", error, seconds)
        if request.cancellation.requested.wait(seconds):
            raise Cancelled
        self._sent += 1

    def _pause(self, error: ModelError) -> float | None:
        if not error.retryable or self._sent > self._most:
            return None
        if error.kind == "timeout" and error.status is None:
            # The server may still be at work on it, and bill it: once more, not more often.
            if self._timed_out:
                return None
            self._timed_out = True
        if error.retry_after:
            return error.retry_after if error.retry_after <= MAX_WAIT else None
        backoff: float = min(0.5 * 2 ** (self._sent - 1), 8.0)
        return backoff * (1 - 0.25 * random.random())


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, strict=False)
    except (ValueError, RecursionError):
        raise error_in_text(body) from None
