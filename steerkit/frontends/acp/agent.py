"""Agent: the methods of the protocol, and the sessions that are open.

The reading thread calls `receive`. What could wait (the disk, the user's own code) is done in a thread of its own and
answers from there; everything else is decided at once, in the order in which it came.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from steerkit.core.errors import SteerkitError
from steerkit.frontends.acp.connection import Connection, Reply, internal_error
from steerkit.frontends.acp.permission import modes_state
from steerkit.frontends.acp.protocol import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Params,
    RpcError,
    bad_params,
    content_blocks,
    folder_param,
    hello,
    mcp_server_names,
    message_parts,
    text_param,
    unknown_session,
    wants_prompt_required,
)
from steerkit.frontends.acp.session import Session
from steerkit.frontends.acp.setup import MakeSetup
from steerkit.frontends.acp.store import DamagedSession, Saved, SessionLog, Store
from steerkit.frontends.acp.updates import replay

logger = logging.getLogger(__name__)

_PAGE = 100


class Agent:
    """One agent on one connection.

    Owns `_sessions` (open ones) and `_busy` (ids that are being loaded or closed), under `_lock`.

    Args:
        make_setup: called for each session with its folder.
        store: where sessions are kept.
        version: of the agent, as the client shows it.
        images: whether the models take images.
    """

    def __init__(self, make_setup: MakeSetup, store: Store, *, version: str, images: bool) -> None:
        self._make_setup = make_setup
        self._store = store
        self._version = version
        self._images = images
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._busy: set[str] = set()
        self._initialized = False
        self._connection: Connection
        self._requests: dict[str, Callable[[Params, Reply], None]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/prompt": self._prompt,
            "_session/steering": self._steer,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
        }

    def connect(self, incoming: int, outgoing: int) -> Connection:
        """Start to serve these descriptors; returns the connection, whose `over` tells when to stop."""
        self._connection = Connection(incoming, outgoing, self.receive)
        self._connection.start()
        return self._connection

    def stop(self, timeout: float) -> None:
        """Cancel every turn, and wait up to `timeout` seconds until all have ended and been answered."""
        deadline = time.monotonic() + timeout
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        runs = [session.run for session in sessions]
        for session in sessions:
            session.close(lambda: None)
        for run in runs:
            if run is not None:
                with contextlib.suppress(SteerkitError, TimeoutError):
                    run.wait(max(0.0, deadline - time.monotonic()))
        self._connection.close(max(0.1, deadline - time.monotonic()))

    def receive(self, method: str, params: Params, reply: Reply | None) -> None:
        """Do what a frame asks for. In the reading thread; never waits.

        Raises:
            RpcError: what answers the request.
        """
        if reply is None:
            self._notified(method, params)
            return
        if not self._initialized and method != "initialize":
            raise RpcError(INVALID_REQUEST, "The first request is initialize.")
        answer = self._requests.get(method)
        if answer is None:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {method!r}.")
        answer(params, reply)

    def _notified(self, method: str, params: Params) -> None:
        if method == "session/cancel":
            session = self._sessions.get(str(params.get("sessionId")))
            if session is not None:
                session.cancel()
        elif method == "$/cancel_request":
            with self._lock:
                sessions = list(self._sessions.values())
            any(session.cancel_request(params.get("requestId")) for session in sessions)

    # ---- answered at once

    def _initialize(self, params: Params, reply: Reply) -> None:
        version = params.get("protocolVersion")
        if isinstance(version, bool) or not isinstance(version, int):
            raise bad_params("protocolVersion is a whole number.")
        self._initialized = True
        reply.result(hello(self._version, images=self._images))

    def _prompt(self, params: Params, reply: Reply) -> None:
        session_id = text_param(params, "sessionId")
        blocks = content_blocks(params, empty=True)
        session = self._session(session_id)
        session.prompt(reply, message_parts(blocks, images=session.takes_images))

    def _steer(self, params: Params, reply: Reply) -> None:
        opted_in = wants_prompt_required(params)
        session_id = text_param(params, "sessionId")
        blocks = content_blocks(params, empty=False)
        session = self._session(session_id)
        parts = message_parts(blocks, images=session.takes_images)
        if not parts:
            raise bad_params("prompt is blank, so there is nothing to say.")
        session.steer(reply, parts, opted_in=opted_in)

    def _close(self, params: Params, reply: Reply) -> None:
        session = self._session(text_param(params, "sessionId"))
        self._leave(session, lambda: reply.result({}))

    def _leave(self, session: Session, then: Callable[[], None]) -> None:
        """Close a session. Until its turn has ended its file is its own: nobody may load it."""

        def ended() -> None:
            with self._lock:
                self._busy.discard(session.id)
            then()

        with self._lock:
            self._sessions.pop(session.id, None)
            self._busy.add(session.id)
        session.close(ended)

    def _set_mode(self, params: Params, reply: Reply) -> None:
        session_id, mode = text_param(params, "sessionId"), text_param(params, "modeId")
        self._session(session_id).set_mode(mode)
        reply.result({})

    def _session(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise unknown_session(session_id)
        return session

    # ---- answered from a thread of its own

    def _new(self, params: Params, reply: Reply) -> None:
        cwd, servers = folder_param(params), mcp_server_names(params)

        def create() -> Any:
            session_id = uuid.uuid4().hex
            new = lambda: (self._store.create(session_id, cwd), Saved(cwd))  # noqa: E731
            session = self._make_session(session_id, cwd, servers, new)
            with self._lock:
                self._sessions[session_id] = session
            return {"sessionId": session_id, "modes": modes_state(session.mode)}

        _aside(reply, create)

    def _load(self, params: Params, reply: Reply) -> None:
        self._open(params, reply, replayed=True)

    def _resume(self, params: Params, reply: Reply) -> None:
        self._open(params, reply, replayed=False)

    def _open(self, params: Params, reply: Reply, *, replayed: bool) -> None:
        session_id, cwd, servers = text_param(params, "sessionId"), folder_param(params), mcp_server_names(params)
        with self._lock:
            if session_id in self._busy:
                raise RpcError(INVALID_REQUEST, "This session is being opened or closed: wait for the answer to that.")
            self._busy.add(session_id)

        def load() -> Any:
            try:
                session = self._sessions.get(session_id)
                if session is None:
                    session = self._make_session(session_id, cwd, servers, lambda: self._store.open(session_id))
                if replayed:
                    self._replay(session)
                with self._lock:
                    self._sessions.setdefault(session_id, session)
            finally:
                with self._lock:
                    self._busy.discard(session_id)
            return {"modes": modes_state(session.mode)}

        _aside(reply, load)

    def _make_session(
        self, session_id: str, cwd: str, servers: tuple[str, ...], kept: Callable[[], tuple[SessionLog, Saved]]
    ) -> Session:
        try:
            log, saved = kept()
        except LookupError:
            raise unknown_session(session_id) from None
        except DamagedSession as error:
            raise RpcError(INVALID_REQUEST, str(error)) from None
        try:
            setup = self._make_setup(cwd)
        except ValueError as error:
            raise bad_params(str(error)) from None
        notice = ""
        if servers:
            notice = f"(MCP servers are not used yet: {', '.join(servers)}.)\n\n"
            logger.warning("MCP servers are not used yet: %s.", ", ".join(servers))
        return Session(session_id, setup, self._connection, log, saved, notice)

    def _replay(self, session: Session) -> None:
        for update in replay(session.messages, session.calls):
            self._connection.wait_for_room()
            self._connection.notify("session/update", {"sessionId": session.id, "update": update})

    def _list(self, params: Params, reply: Reply) -> None:
        cwd, cursor = params.get("cwd"), params.get("cursor")
        if not isinstance(cwd, (str, type(None))):
            raise bad_params("cwd is a string.")
        if cursor is not None and not (isinstance(cursor, str) and cursor.isascii() and cursor.isdigit()):
            raise bad_params("cursor is the nextCursor of another answer.")
        start = int(cursor or 0)

        def list_sessions() -> Any:
            listed = self._store.list(cwd)
            page = [
                {"sessionId": item.session_id, "cwd": item.cwd, "title": item.title or None, "updatedAt": item.updated}
                for item in listed[start : start + _PAGE]
            ]
            more = {"nextCursor": str(start + _PAGE)} if len(listed) > start + _PAGE else {}
            return {"sessions": page, **more}

        _aside(reply, list_sessions)

    def _delete(self, params: Params, reply: Reply) -> None:
        session_id = text_param(params, "sessionId")

        def delete() -> Any:
            self._store.delete(session_id)
            return {}

        session = self._sessions.get(session_id)
        if session is None:
            _aside(reply, delete)
        else:
            self._leave(session, lambda: _aside(reply, delete))


def _aside(reply: Reply, work: Callable[[], Any]) -> None:
    """Answer with what `work` returns, from a thread of its own; one that hangs does not keep the process alive."""

    def answer() -> None:
        try:
            result = work()
        except RpcError as error:
            reply.error(error)
        except Exception as error:
            logger.exception("A request failed.")
            reply.error(internal_error(error))
        else:
            reply.result(result)

    threading.Thread(target=answer, name="steerkit-acp-aside", daemon=True).start()
