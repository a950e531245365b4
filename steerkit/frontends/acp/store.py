"""Store: one file a session, in JSON lines that are only ever appended.

    {"format": 1, "session": id, "cwd": folder}
    {"keep": n, "messages": [...], "held": [...]}     the first n messages stand, then these; held: said, not yet read

A record is one write. A crash can leave only its last line unfinished, and that is cut off when the file is opened.
Files and folder are readable by their owner alone. No lock is held between processes: one works on a session at a time.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from steerkit.core.codec import FORMAT, message_from_dict, message_to_dict
from steerkit.core.message import Message

logger = logging.getLogger(__name__)

_ID = re.compile(r"[0-9a-f]{32}")
_TITLE_LENGTH = 80


class DamagedSession(Exception):
    """A session's file cannot be read."""


@frozen(eq=False)
class Saved:
    """What is known of a session: its conversation, and what was said that no model has read yet."""

    cwd: str
    messages: tuple[Message, ...] = ()
    held: tuple[Message, ...] = ()


@frozen
class Listed:
    """One line of the list of sessions; `updated` is ISO 8601, UTC."""

    session_id: str
    cwd: str
    title: str
    updated: str


class SessionLog:
    """The file of one session. Used by one thread at a time.

    Owns `_recorded`: the messages that the file amounts to.
    """

    def __init__(self, path: Path, saved: Saved) -> None:
        self._path = path
        self._recorded: tuple[Message, ...] = saved.messages
        self._held: tuple[Message, ...] = saved.held

    def record(self, messages: Sequence[Message], held: Sequence[Message] = ()) -> None:
        """Append what is new. A file that was deleted meanwhile stays so; another failure is logged, and mended by
        the next record."""
        keep = _alike(self._recorded, messages)
        if keep == len(self._recorded) == len(messages) and tuple(held) == self._held:
            return
        new = [message_to_dict(message) for message in messages[keep:]]
        try:
            _append(self._path, {"keep": keep, "messages": new, "held": [message_to_dict(message) for message in held]})
        except FileNotFoundError:
            return
        except (OSError, TypeError, ValueError) as error:
            logger.error("The session could not be saved, so a later load lacks its latest part: %s", error)
            return
        self._recorded, self._held = tuple(messages), tuple(held)


class Store:
    """The folder of all sessions. Any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, session_id: str, cwd: str) -> SessionLog:
        """The file of a new session.

        Raises:
            OSError: it cannot be written.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(session_id)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _append(path, {"format": FORMAT, "session": session_id, "cwd": cwd})
        return SessionLog(path, Saved(cwd))

    def open(self, session_id: str) -> tuple[SessionLog, Saved]:
        """A session that was kept.

        Raises:
            LookupError: there is none of this id.
            DamagedSession: its file cannot be read.
        """
        path = self._path(session_id)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise LookupError(session_id) from None
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)
        saved = _read(data[:whole], path)
        return SessionLog(path, saved), saved

    def list(self, cwd: str | None = None) -> list[Listed]:
        """Every session, or those of one folder; the one that was used last comes first."""
        found = []
        for path in self._folder.glob("*.jsonl"):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                updated = path.stat().st_mtime
                found.append((updated, _listed(path, updated)))
        found.sort(key=lambda item: item[0], reverse=True)
        return [listed for _, listed in found if cwd is None or listed.cwd == cwd]

    def delete(self, session_id: str) -> None:
        """Forget a session; one that is not there is forgotten already."""
        with contextlib.suppress(LookupError, FileNotFoundError):
            self._path(session_id).unlink()

    def _path(self, session_id: str) -> Path:
        # Ids come from the client: only what this store could have made becomes a path.
        if not _ID.fullmatch(session_id):
            raise LookupError(session_id)
        return self._folder / f"{session_id}.jsonl"


def _append(path: Path, line: Mapping[str, Any]) -> None:
    data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        size = os.fstat(descriptor).st_size
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError("the disk is full")
        except OSError:
            # Half a line would swallow the next one.
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def _read(data: bytes, path: Path) -> Saved:
    messages: list[Message] = []
    held: tuple[Message, ...] = ()
    try:
        header, *lines = [json.loads(line) for line in data.splitlines()]
        if header["format"] != FORMAT:
            raise ValueError(f"its format is {header['format']!r}, and this steerkit reads {FORMAT}")
        for line in lines:
            messages[line["keep"] :] = [message_from_dict(item) for item in line["messages"]]
            held = tuple(message_from_dict(item) for item in line["held"])
        return Saved(str(header["cwd"]), tuple(messages), held)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DamagedSession(f"The session's file {path} cannot be read: {error}. Mend or delete it.") from None


def _listed(path: Path, updated: float) -> Listed:
    with path.open("rb") as file:
        header = json.loads(file.readline())
        first = json.loads(file.readline() or b"{}")
    if header["format"] != FORMAT:
        raise ValueError
    when = datetime.datetime.fromtimestamp(updated, datetime.timezone.utc)
    return Listed(
        str(header["session"]), str(header["cwd"]), _title(first.get("messages", ())), when.isoformat("T", "seconds")
    )


def _title(messages: Sequence[Mapping[str, Any]]) -> str:
    text = " ".join(next(_user_texts(messages), "").split())
    return text if len(text) <= _TITLE_LENGTH else f"{text[: _TITLE_LENGTH - 1]}…"


def _user_texts(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        if message["role"] == "user":
            yield from (part["text"] for part in message["content"] if part["type"] == "text")


def _alike(recorded: Sequence[Message], messages: Sequence[Message]) -> int:
    """How many messages both begin with. Messages are never changed, so the same object is the same message."""
    count = min(len(recorded), len(messages))
    return next((index for index in range(count) if recorded[index] is not messages[index]), count)
