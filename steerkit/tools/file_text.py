"""The text of a file for a model, and one exact change in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steerkit.tools.rooted_files import WorkspaceError, shown

__all__ = ["LARGEST_FILE", "decoded", "edited", "encoded", "is_binary", "page"]

LARGEST_FILE = 16 * 2**20  # bytes of a file that is read whole, to show or to edit it
_LONGEST_LINE = 2000


def is_binary(data: bytes) -> bool:
    """As git sees it: a NUL near the start."""
    return b"\0" in data[:8000]


def decoded(data: bytes, names: Sequence[str]) -> str:
    """The text of a file. Bytes that are no UTF-8 become lone surrogates, so that encoding gives the same bytes back.

    Raises:
        WorkspaceError: it is a binary file.
    """
    if is_binary(data):
        raise WorkspaceError(f"{shown(names)!r} is a binary file of {len(data):,} bytes (or no UTF-8 text).")
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str, names: Sequence[str]) -> bytes:
    """`text` as UTF-8. Raises WorkspaceError for a lone surrogate, which no file can hold."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise WorkspaceError(f"The text for {shown(names)!r} has a lone surrogate, which UTF-8 cannot hold.") from None


def page(text: str, names: Sequence[str], first: int, last: int | None, limit: int) -> str:
    """Lines `first` to `last` (from 1, both included) under a line that says what they are and what is left out.

    They are not numbered: so they can be given to edit_file as they stand.

    Args:
        text: the whole file, as `decoded` gives it.
        names: where it is.
        first: the first line.
        last: the last line; None: the end.
        limit: how many characters at most.
    """
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    if first < 1 or (last is not None and last < first):
        raise WorkspaceError(f"There are no lines {first} to {last}: the first line is 1, and last_line is not before.")
    if first > max(1, len(lines)):
        raise WorkspaceError(f"{shown(names)!r} has {len(lines):,} lines, so there is none from {first:,} on.")
    chosen = _up_to([_bounded(line) for line in lines[first - 1 : last]], limit)
    end = first - 1 + len(chosen)
    notes = _notes(text)
    if end < min(len(lines), last or len(lines)):
        notes.append(f"the answer is full, read on from first_line={end + 1}")
    where = f"lines {first:,} to {end:,} of {len(lines):,}" if lines else "empty"
    heading = "; ".join([f"{shown(names)}, {where}", *notes])
    return "\n".join([f"[{heading}]", *chosen]).encode("utf-8", "replace").decode()


def _up_to(lines: list[str], limit: int) -> list[str]:
    """The first lines that have `limit` characters together; one at least."""
    total = 0
    for number, line in enumerate(lines):
        total += len(line) + 1
        if total > limit and number:
            return lines[:number]
    return lines


def _bounded(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]} [{len(line) - _LONGEST_LINE:,} characters of this line were left out]"


def _notes(text: str) -> list[str]:
    notes = []
    foreign = sum("\udc80" <= character <= "\udcff" for character in text)
    if foreign:
        notes.append(f"not UTF-8: {foreign:,} bytes are shown as '?'")
    if "\r\n" in text:
        notes.append("its lines end with CRLF, which edit_file keeps")
    if text and not text.endswith("\n"):
        notes.append("no newline at its end")
    return notes


def edited(text: str, old: str, new: str, names: Sequence[str]) -> str:
    """`text` with its one `old` replaced by `new`. Line ends in both match any, and the file's own are kept.

    Raises:
        WorkspaceError: `old` is not there exactly once.
    """
    plain, old, new = (part.replace("\r\n", "\n") for part in (text, old, new))
    if not old:
        raise WorkspaceError("old_text is empty: give the text to replace, or use write_file for a whole file.")
    if old == new:
        raise WorkspaceError("old_text and new_text are the same, so there is nothing to change.")
    if any("\udc80" <= character <= "\udcff" for character in text) and not new.isascii():
        raise WorkspaceError(f"{shown(names)!r} is not UTF-8, so only ASCII text can be put into it.")
    encoded(new, names)
    times = len(re.findall(f"(?={re.escape(old)})", plain))
    if times != 1:
        cure = "read the file and copy it exactly" if not times else "give more of the lines around it"
        raise WorkspaceError(f"old_text occurs {times:,} times in {shown(names)!r}, not once: {cure}.")
    start = plain.index(old)
    begin, end = _position(text, start), _position(text, start + len(old))
    return text[:begin] + new.replace("\n", _line_end(text, begin)) + text[end:]


def _position(text: str, position: int) -> int:
    """The place in `text` of what is at `position` once every CRLF is one character."""
    for number, line_end in enumerate(re.finditer("\r\n", text)):
        if line_end.start() - number >= position:
            return position + number
    return position + text.count("\r\n")


def _line_end(text: str, position: int) -> str:
    """That of the line at `position`, or of the line before it if it is the last."""
    after = text.find("\n", position)
    at = after if after >= 0 else text.rfind("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
