"""What a call of a workspace tool is about to do, for the person who is asked to allow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from steerkit.core.message import ToolCall
from steerkit.tools.file_text import LARGEST_FILE, decoded, edited
from steerkit.tools.rooted_files import RootedFiles, WorkspaceError, shown

__all__ = ["Change", "Location", "Preview", "preview"]

_LONGEST_TITLE = 200

Kind = Literal["read", "search", "edit", "execute"]


@frozen
class Location:
    """A file or folder that the call is about: its absolute path, and the line (from 1) if it is about one."""

    path: str
    line: int | None = None


@frozen
class Change:
    """What the call would make of a file.

    Attributes:
        path: absolute.
        old: the whole text of the file now, or None when there is no such file.
        new: the whole text that it would have.
    """

    path: str
    old: str | None
    new: str


@frozen
class Preview:
    """What a call is about to do.

    Attributes:
        kind: what sort of thing it does.
        title: one short line for a person, such as `Edit src/vault.py`.
        locations: what it is about, in the workspace; empty when the call's path is refused.
        change: for `edit`; None when it cannot be shown (the call will fail, or the file is no text).
        command: for `execute`, the exact command, whole.
    """

    kind: Kind
    title: str
    locations: tuple[Location, ...] = ()
    change: Change | None = None
    command: str | None = None


def preview(root: str | Path, call: ToolCall) -> Preview | None:
    """What `call` is about to do in the workspace at `root`. It reads the file for a `change`, and changes nothing.

    Returns:
        None when it is no call of a workspace tool, or its arguments do not fit: then the tool will refuse it.
    """
    describe = _DESCRIPTIONS.get(call.name)
    if describe is None:
        return None
    try:
        return describe(RootedFiles(root), call.parse())
    except (KeyError, TypeError, ValueError):
        return None


def _reading(files: RootedFiles, arguments: Mapping[str, Any]) -> Preview:
    path, line = _text(arguments["path"]), arguments.get("first_line")
    if not isinstance(line, int) or line < 1:
        line = None
    return Preview("read", _title("Read", path), _locations(files, path, line))


def _listing(files: RootedFiles, arguments: Mapping[str, Any]) -> Preview:
    path = _text(arguments.get("path", "."))
    return Preview("search", _title("List", path), _locations(files, path))


def _searching(files: RootedFiles, arguments: Mapping[str, Any]) -> Preview:
    path = _text(arguments.get("path", "."))
    title = _title("Search", _text(arguments["pattern"])) + ("" if path == "." else f" in {shown(path)}")
    return Preview("search", _short(title), _locations(files, path))


def _writing(files: RootedFiles, arguments: Mapping[str, Any]) -> Preview:
    path, content = _text(arguments["path"]), _text(arguments["content"])
    return Preview("edit", _title("Write", path), _locations(files, path), _change(files, path, lambda _: content))


def _editing(files: RootedFiles, arguments: Mapping[str, Any]) -> Preview:
    path, old, new = (_text(arguments[name]) for name in ("path", "old_text", "new_text"))

    def after(text: str | None) -> str:
        if text is None:
            raise WorkspaceError("There is no such file.")
        return edited(text, old, new, files.names(path))

    change = _change(files, path, after)
    return Preview("edit", _title("Edit", path), _locations(files, path, _first_change(change)), change)


def _running(files: RootedFiles, arguments: Mapping[str, Any]) -> Preview:
    command = _text(arguments["command"])
    return Preview("execute", _title("Run", command), (Location(files.root),), command=command)


_DESCRIPTIONS: dict[str, Callable[[RootedFiles, Mapping[str, Any]], Preview]] = {
    "read_file": _reading,
    "list_files": _listing,
    "search": _searching,
    "write_file": _writing,
    "edit_file": _editing,
    "run_command": _running,
}


def _change(files: RootedFiles, path: str, after: Callable[[str | None], str]) -> Change | None:
    try:
        names = files.names(path)
        old = _text_now(files, names)
        # Bytes that are no UTF-8 are shown as '?': no front end could carry them.
        old, new = (text and text.encode("utf-8", "replace").decode() for text in (old, after(old)))
        return Change(files.absolute(names), old, new or "")
    except WorkspaceError:
        return None


def _text_now(files: RootedFiles, names: tuple[str, ...]) -> str | None:
    try:
        return decoded(files.read(names, LARGEST_FILE), names)
    except WorkspaceError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _first_change(change: Change | None) -> int | None:
    """The first line that is not the same in both."""
    if change is None or change.old is None:
        return None
    pairs = zip(change.old.split("\n"), change.new.split("\n"), strict=False)
    return next((number for number, (old, new) in enumerate(pairs, 1) if old != new), None)


def _locations(files: RootedFiles, path: str, line: int | None = None) -> tuple[Location, ...]:
    try:
        return (Location(files.absolute(files.names(path)), line),)
    except WorkspaceError:
        return ()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("an argument is no text")
    return value


def _title(verb: str, what: str) -> str:
    return _short(f"{verb} {shown(what)}")


def _short(title: str) -> str:
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 3]}..."
