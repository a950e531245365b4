"""Wire: what one provider format makes of a request and of an answer. Pure functions; no I/O, no threads.

    Request ──encode()──► JSON bytes ──(client.py, http.py)──► events ──reader()──► Response
                                                            or body ──decode()──► Response

A refusal that another rendering cures (a steer where the provider wants none, a field that it does not know) is no
retry: `cure` gives the settings with which the same request is sent once more, and the client remembers them for the
endpoint and model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from attrs import field, frozen

from steerkit.core.errors import ModelError
from steerkit.core.model import Endpoint, Request, Response
from steerkit.models.sse import ServerEvent

Mode = Literal["raw", "bridge", "fold", "join", "system"]


@frozen
class Settings:
    """How requests are rendered for one endpoint and model.

    Attributes:
        mode: how a steer behind tool results is placed.
        without: names of fields that the endpoint refused, so that they are not sent, or sent another way.
    """

    mode: Mode
    without: frozenset[str] = field(default=frozenset())


class StreamReader(Protocol):
    """Puts one streamed answer together."""

    def feed(self, event: ServerEvent) -> str:
        """Take one event and return the text in it that is to be shown, or "".

        Raises:
            ModelError: the event says that the answer failed.
        """
        ...

    @property
    def done(self) -> bool:
        """Whether the end mark has come, so that nothing more needs to be read."""
        ...

    def response(self) -> Response:
        """The answer, once the stream has ended.

        Raises:
            ModelError: (truncated, with the partial text) the stream ended without its end mark.
        """
        ...


class Wire(Protocol):
    """One provider format."""

    name: str
    path: str  # behind Endpoint.base_url, with its leading slash

    def headers(self, endpoint: Endpoint) -> Mapping[str, str]:
        """The headers that carry the key, and those that this format always has."""
        ...

    def settings(self, endpoint: Endpoint, model: str) -> Settings:
        """What to begin with for this endpoint and model: `endpoint.placement`, or what suits when it is `auto`."""
        ...

    def cure(self, error: ModelError, request: Request, endpoint: Endpoint, settings: Settings) -> Settings | None:
        """Settings with which the refused request may pass, or None. Never for a placement that the user chose."""
        ...

    def encode(self, request: Request, endpoint: Endpoint, settings: Settings, *, stream: bool) -> bytes:
        """The body. The JSON of a message is made once and kept in `message.memo`."""
        ...

    def decode(self, body: Any, request: Request, endpoint: Endpoint) -> Response:
        """The answer in a parsed JSON body of a 2xx reply.

        Raises:
            ModelError: the body is an error in spite of its status, or no answer at all.
        """
        ...

    def reader(self, request: Request, endpoint: Endpoint) -> StreamReader: ...
