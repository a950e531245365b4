"""ScriptedModel: a model client that answers from a script, in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from steerkit.core.errors import ModelError, ModelErrorKind
from steerkit.core.message import assistant
from steerkit.core.model import Endpoint, OnText, Request, Response
from steerkit.core.pairing import check_pairs
from steerkit.testing.reply import Answer, Failure, Reply
from steerkit.testing.script import ConnectionCut, Script, Step, pieces, wait_for

_KINDS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}


class ScriptedModel:
    """A model client that answers from a script. It is its own factory: `Runner(model, [ReAct()])`.

    Args:
        script: the replies in order, or one function that gives the reply to every request. A step of a list may also
            be a function `(request) -> Reply`, called in the thread that asks, or an exception, which is raised.

    It refuses what every provider refuses: tool calls and results that do not belong together. Such a request uses up
    no reply; any other one does, also when it is cancelled or fails. May be called from many threads at once.

    Attributes:
        endpoint: one to start runs with; nothing is sent to it.
    """

    def __init__(self, script: Iterable[Step[Request]] | Callable[[Request], Reply]) -> None:
        self._script = Script(script)
        self._lock = threading.Lock()  # guards _requests
        self._requests: list[Request] = []
        self.endpoint = Endpoint("http://scripted.invalid/v1", "test-key")

    def __call__(self, _endpoint: Endpoint) -> ScriptedModel:
        """The client for any endpoint: itself."""
        return self

    @property
    def requests(self) -> list[Request]:
        """Every request so far, refused ones too, in the order in which they came."""
        with self._lock:
            return list(self._requests)

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        """Give the next reply; with `on_text`, its text in small pieces.

        Raises:
            ModelError: the conversation is refused, or the script says so.
            Cancelled: the run is cancelled, within milliseconds also while a gate is closed.
            ScriptOver: there is no reply left.
        """
        request.cancellation.raise_if_requested()
        with self._lock:
            self._requests.append(request)
        _refuse(request)
        reply = self._script.take(request)
        wait_for(reply.gate, request.cancellation)
        if isinstance(reply, Failure):
            raise _model_error(reply)
        if not isinstance(reply, Answer):
            raise TypeError("A raw() reply is an HTTP answer, which ScriptedModel cannot give: use the Gateway.")
        return _play(reply, request, on_text)


def _refuse(request: Request) -> None:
    try:
        if not request.messages:
            raise ValueError("messages is empty.")
        check_pairs(request.messages)
    except ValueError as error:
        raise ModelError(f"The model refused the request: {error}", kind="bad_request", status=400) from None


def _play(answer: Answer, request: Request, on_text: OnText | None) -> Response:
    heard = ""
    try:
        for piece in pieces(answer, request.cancellation):
            if on_text and piece.call is None:
                heard += piece.text
                on_text(piece.text)
    except ConnectionCut:
        raise ModelError("The connection was dropped in the answer.", kind="truncated", partial=heard) from None
    return Response(assistant(answer.text, answer.calls), answer.reason, answer.tokens)


def _model_error(failure: Failure) -> ModelError:
    status = failure.status
    if status is None:
        return ModelError(failure.message, kind="connection", retryable=True)
    wait = {name.lower(): value for name, value in failure.headers}.get("retry-after")
    return ModelError(
        failure.message,
        kind=_KINDS.get(status, "server" if status >= 500 else "bad_request"),
        status=status,
        retryable=status in (408, 409, 429) or status >= 500,
        retry_after=float(wait) if wait else None,
    )
