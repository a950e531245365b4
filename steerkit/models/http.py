"""HTTP for every client: one session an endpoint, deadlines, and a wait that cancel() can break.

What is decided once, when a Transport is built: the headers, the proxy and the CA bundle of the environment, the TLS
context. A request then costs what is new in it. Never: a redirect followed, a cookie kept, ~/.netrc read; each of them
would send the key elsewhere, or another in its place.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.util.ssl_ import create_urllib3_context

from steerkit.core.cancel import Cancellation
from steerkit.core.errors import ModelError
from steerkit.core.model import Endpoint
from steerkit.models.connections import POOL_CLASSES, Exchange
from steerkit.models.failures import error_from_exception
from steerkit.models.sse import Decoder, ServerEvent

LIMIT = 64 << 20  # bytes of a plain answer, and of one event of a stream
_ERROR_LIMIT = 1 << 20  # bytes of an error body; the rest says nothing new
_CHUNK = 65536
_POOL_SIZE = 256  # connections that are kept; more may be open at once
_GRACE = 0.05  # seconds for the end of the body to come behind the end mark, so that the connection can be kept

_NETWORK_ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)


class Transport:
    """Sends POST requests to one URL. Built once; any number of threads.

    Args:
        endpoint: where; its own headers win over `headers`.
        path: what is added to the path of its base_url.
        headers: sent with each request.

    Raises:
        ValueError: the environment names a proxy or a CA bundle that cannot be used.
    """

    def __init__(self, endpoint: Endpoint, path: str, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        base = urlsplit(endpoint.base_url)
        self._session = requests.Session()
        every: CaseInsensitiveDict[str] = CaseInsensitiveDict()
        for some in (_own_headers(), headers, dict(endpoint.headers)):
            every.update(some)
        prepared = requests.Request("POST", base._replace(path=base.path + path).geturl(), headers=every).prepare()
        prepared.headers.pop("Content-Length", None)
        assert prepared.url is not None
        self.url = prepared.url
        self._headers = dict(prepared.headers)
        settings = self._session.merge_environment_settings(self.url, {}, None, None, None)
        self._session.mount(self.url, _Adapter(prepared, settings["proxies"], settings["verify"]))
        self._timeout = urllib3.Timeout(connect=endpoint.connect_timeout, read=endpoint.read_timeout)

    @contextlib.contextmanager
    def post(self, body: bytes, *, stream: bool, cancellation: Cancellation) -> Iterator[Reply]:
        """Send `body`; the reply, whatever its status, is to be read within the block.

        Leaving the block keeps the connection if the reply was read to its end, and closes it otherwise.

        Raises:
            ModelError: there is no reply. `Reply` raises it too, when its body does not come.
            Cancelled: the wait was broken.
        """
        exchange = Exchange(self._endpoint.read_timeout)
        with cancellation.calling(exchange.break_off):
            try:
                cancellation.raise_if_requested()
                raw = self._send(body, stream, exchange, cancellation)
                try:
                    yield Reply(raw, exchange, self._endpoint, cancellation)
                finally:
                    raw.close()
            finally:
                exchange.release()

    def close(self) -> None:
        """Close the connections that are kept; a later request fails."""
        self._session.close()

    def _send(self, body: bytes, stream: bool, exchange: Exchange, cancellation: Cancellation) -> urllib3.HTTPResponse:
        request = requests.PreparedRequest()
        request.method, request.url, request.body = "POST", self.url, body
        # A plain dict is all that urllib3 needs, and takes a fifth of the time to copy.
        headers = {**self._headers, "Content-Length": str(len(body))}
        headers.setdefault("Accept-Encoding", "identity" if stream else "gzip, deflate")
        request.headers = cast("CaseInsensitiveDict[str]", headers)
        adapter = self._session.get_adapter(self.url)
        while True:
            try:
                with exchange.sending():
                    response = adapter.send(request, stream=True, timeout=cast(Any, self._timeout))
                return cast(urllib3.HTTPResponse, response.raw)
            except _NETWORK_ERRORS as error:
                cancellation.raise_if_requested()
                # The server may close a kept connection at any time: that says nothing about the request. The pool
                # has ever fewer such connections, so this ends.
                if exchange.reused and exchange.sent and _was_dropped(error):
                    continue
                raise error_from_exception(error, "headers" if exchange.sent else "connect", self._endpoint) from None


class Reply:
    """The reply to one request; belongs to the thread that asked.

    Attributes:
        status: the HTTP status.
        headers: the look-up ignores case.
        media_type: of the body, in lower case and without parameters; "" when the server gave none.
    """

    def __init__(
        self, raw: urllib3.HTTPResponse, exchange: Exchange, endpoint: Endpoint, cancellation: Cancellation
    ) -> None:
        self.status = raw.status
        self.headers: Mapping[str, str] = raw.headers
        self.media_type = raw.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._raw = raw
        self._encoded = "content-encoding" in raw.headers  # else every read would look it up again
        self._exchange = exchange
        self._endpoint = endpoint
        self._cancellation = cancellation
        self._timeout = endpoint.read_timeout

    def events(self) -> Iterator[list[ServerEvent]]:
        """The events of the body as they come. `read_timeout` holds between them: comments do not count."""
        decoder = Decoder(LIMIT)
        left = self._endpoint.read_timeout
        while True:
            chunk, waited = self._read(left)
            if not chunk:
                yield [event for event in decoder.close() if _is_whole(event)]
                return
            events = decoder.feed(chunk)
            if events:
                left = self._endpoint.read_timeout
                yield events
            else:
                left -= waited

    def body(self) -> bytes:
        """The whole body. `read_timeout` holds between its parts: blank ones, sent to keep alive, do not count.

        Raises:
            ModelError: it does not come, or is larger than any answer.
        """
        parts: list[bytes] = []
        size, left = 0, self._endpoint.read_timeout
        while True:
            part, waited = self._read(left)
            if not part:
                return b"".join(parts)
            size += len(part)
            if size > LIMIT:
                raise ModelError(
                    f"The server sent more than {LIMIT} bytes, which is no model's answer; the rest was not read.",
                    kind="server",
                )
            parts.append(part)
            left = left - waited if part.isspace() else self._endpoint.read_timeout

    def error_body(self) -> bytes:
        """The beginning of the body of an error: as much as comes. The status says enough, should nothing come."""
        parts: list[bytes] = []
        size, left = 0, self._endpoint.read_timeout
        with contextlib.suppress(ModelError):
            while size < _ERROR_LIMIT:
                part, waited = self._read(left)
                if not part:
                    break
                parts.append(part)
                size += len(part)
                left -= waited
        return b"".join(parts)

    def finish(self) -> None:
        """The end mark has come: read the end of the body too if it is there, so that the connection is kept."""
        with contextlib.suppress(*_NETWORK_ERRORS):
            self._exchange.set_timeout(_GRACE)
            self._raw.read1(_CHUNK, decode_content=self._encoded)

    def _read(self, timeout: float) -> tuple[bytes, float]:
        """The next part of the body, b"" at its end; and the seconds that it took to come."""
        began = time.monotonic()
        try:
            if timeout <= 0:
                raise TimeoutError
            if timeout != self._timeout:
                self._exchange.set_timeout(timeout)
                self._timeout = timeout
            part = self._raw.read1(_CHUNK, decode_content=self._encoded)
        except _NETWORK_ERRORS as error:
            self._cancellation.raise_if_requested()
            raise error_from_exception(error, "body", self._endpoint) from None
        if not part and self._exchange.was_shut:
            # A body that ends with the connection looks whole when cancel() has cut it.
            self._cancellation.raise_if_requested()
        return part, time.monotonic() - began


class _Adapter(HTTPAdapter):
    """Reaches one URL: what requests looks up for every request, it looks up once."""

    def __init__(self, prepared: requests.PreparedRequest, proxies: Any, verify: bool | str | None) -> None:
        self._tls: dict[str, Any] = {}
        used = [prepared.url, *proxies.values()]
        if any(str(url).lower().startswith("https:") for url in used):
            self._tls = {"ssl_context": _tls_context(verify)}
        super().__init__(pool_maxsize=_POOL_SIZE)
        try:
            self._pool = super().get_connection_with_tls_context(prepared, True, proxies)
            self._target = super().request_url(prepared, proxies)
        except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
            raise ValueError(f"The proxy that the environment names cannot be used: {type(error).__name__}.") from None

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **self._tls, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOL_CLASSES

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        if proxy.lower().startswith("socks"):
            # Those pools are of another kind: a wait there ends at its time-out, not by cancel().
            return super().proxy_manager_for(proxy, **self._tls, **kwargs)
        tls = {**self._tls, "proxy_ssl_context": self._tls["ssl_context"]} if self._tls else {}
        manager = super().proxy_manager_for(proxy, **tls, **kwargs)
        manager.pool_classes_by_scheme = POOL_CLASSES
        return manager

    def close(self) -> None:
        self._pool.close()
        super().close()

    def get_connection_with_tls_context(self, *_args: Any, **_kwargs: Any) -> Any:
        return self._pool

    def cert_verify(self, *_args: Any, **_kwargs: Any) -> None:
        """The TLS context has the authorities; named again, they would be read for each connection."""

    def request_url(self, *_args: Any, **_kwargs: Any) -> str:
        return self._target

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        response = requests.Response()
        response.request, response.raw = req, resp
        return response


def _tls_context(verify: bool | str | None) -> ssl.SSLContext:
    authorities = verify if isinstance(verify, str) else DEFAULT_CA_BUNDLE_PATH
    context = create_urllib3_context()
    try:
        if os.path.isdir(authorities):
            context.load_verify_locations(capath=authorities)
        else:
            context.load_verify_locations(cafile=authorities)
    except OSError as error:
        raise ValueError(
            f"The CA bundle {authorities!r} cannot be read ({error}), so no server could be trusted: "
            "mend REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE."
        ) from None
    return context


def _was_dropped(error: Exception) -> bool:
    """Whether the other side had closed the connection, as opposed to answering late or wrongly."""
    causes = [error]
    while causes[-1].args and isinstance(causes[-1].args[-1], Exception):
        causes.append(causes[-1].args[-1])
    return any(isinstance(cause, (ConnectionError, ssl.SSLEOFError)) for cause in causes)


def _is_whole(event: ServerEvent) -> bool:
    """Whether the last event of a body, which no blank line closed, was not cut short."""
    try:
        json.loads(event.data, strict=False)
    except (ValueError, RecursionError):
        return event.data == "[DONE]"
    return True


def _own_headers() -> dict[str, str]:
    try:
        version = importlib.metadata.version("steerkit-sdk")
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    return {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": f"steerkit/{version}"}
