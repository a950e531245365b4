"""Files under one folder, and no way out of it.

Every path is walked from the root, one folder after the other: each is opened relative to the descriptor of the one
before, and never through a symbolic link. So there is no moment between a check and an opening in which a folder could
be swapped for a link; what was checked is what is held. Whatever is opened is looked at again by its descriptor.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import field, frozen

__all__ = ["RootedFiles", "WorkspaceError", "kind_of", "read_in", "shown"]

_LONGEST_PATH = 4096
_KINDS = {
    stat.S_IFLNK: "symbolic link",
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFREG: "file",
}


class WorkspaceError(Exception):
    """What was asked for is refused or cannot be done. The text is for the model."""


def shown(path: str | Sequence[str]) -> str:
    """A path (or its names) as a model may read it and give it back: one line, and no byte lost."""
    text = path if isinstance(path, str) else "/".join(path) or "."
    return text if text.isprintable() else ascii(text)[1:-1]


def kind_of(mode: int) -> str:
    """`file`, `folder`, `symbolic link` and so on, for the `st_mode` of an entry."""
    return _KINDS.get(stat.S_IFMT(mode), "special file")


def _absolute(root: str | Path) -> str:
    return os.path.abspath(root)


def _real_folder(root: str | Path) -> str:
    real = os.path.realpath(root)
    if not os.path.isdir(real):
        raise ValueError(f"The workspace {os.fspath(root)!r} is no folder.")
    return real


@frozen
class RootedFiles:
    """The files under `root`. Any thread may use it; nothing is held between two calls.

    A path is relative to the root, or absolute and inside it; `..` is refused, and so is every symbolic link, also one
    that leads back into the root. Every refusal is a WorkspaceError.

    Attributes:
        given: the root as it was named.
        root: absolute, with links in the way to it resolved once.
    """

    given: str = field(converter=_absolute)
    root: str = field(init=False)

    @root.default
    def _resolve(self) -> str:
        if os.open not in os.supports_dir_fd:
            raise OSError("This system cannot open a file relative to a folder, so a workspace would not be closed.")
        return _real_folder(self.given)

    def names(self, path: str) -> tuple[str, ...]:
        """The names from the root to `path`; none for the root itself. The file system is not asked."""
        if "\0" in path or len(path) > _LONGEST_PATH or not _encodable(path):
            raise WorkspaceError(f"{shown(path[:100])!r} is no path of this system.")
        names = _names(path)
        if ".." in names:
            raise WorkspaceError(f"{shown(path)!r} has '..' in it: name files from the root of the workspace.")
        if not path.startswith("/"):
            return names
        for root in (self.root, self.given):
            above = _names(root)
            if names[: len(above)] == above:
                return names[len(above) :]
        raise WorkspaceError(f"{shown(path)!r} is outside the workspace, which is {shown(self.root)!r}.")

    def absolute(self, names: Sequence[str]) -> str:
        return os.path.join(self.root, *names)

    @contextlib.contextmanager
    def folder(self, names: Sequence[str], *, create: bool = False) -> Iterator[int]:
        """The descriptor of a folder, closed after the block; with `create`, missing ones are made."""
        descriptor = self._open_folder(names, create)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def read(self, names: Sequence[str], limit: int) -> bytes:
        """The bytes of a regular file that has no more than `limit` of them."""
        with self._parent(names) as parent:
            return read_in(parent, names, limit)

    def write(self, names: Sequence[str], data: bytes) -> None:
        """Make `data` the file, all of it or nothing: a reader sees the old or the new. Its mode is kept.

        Missing folders are made. The file is replaced, so another name of it (a hard link) keeps the old content.
        """
        if any(name.lower() == ".git" for name in names):
            # A hook or a config entry in there is run by the next git command, which nobody would be asked about.
            raise WorkspaceError(f"{shown(names)!r} belongs to git and is not written: use git in run_command.")
        with self._parent(names, create=True) as parent:
            _replace(parent, names, data)

    @contextlib.contextmanager
    def _parent(self, names: Sequence[str], *, create: bool = False) -> Iterator[int]:
        if not names:
            raise WorkspaceError("'.' is a folder, not a file: list_files shows what is in it.")
        with self.folder(names[:-1], create=create) as parent:
            yield parent

    def _open_folder(self, names: Sequence[str], create: bool) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self.root, flags)
        except OSError as error:
            raise WorkspaceError(f"The workspace cannot be opened: {error.strerror}.") from error
        for depth in range(1, len(names) + 1):
            try:
                inner = _step(descriptor, names[:depth], flags, create)
            finally:
                os.close(descriptor)
            descriptor = inner
        return descriptor


def read_in(folder: int, names: Sequence[str], limit: int) -> bytes:
    """The bytes of the regular file `names[-1]` in the folder that is open as `folder`.

    Raises:
        WorkspaceError: it is no regular file, has more than `limit` bytes, or cannot be read.
    """
    # Without O_NONBLOCK a FIFO that was swapped in would block here for ever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        # Asked before the opening as well: to open a device can already do something.
        _check_regular(os.stat(names[-1], dir_fd=folder, follow_symlinks=False), names)
        descriptor = os.open(names[-1], flags, dir_fd=folder)
    except OSError as error:
        raise _refusal(error, folder, names, wanted="file") from error
    with open(descriptor, "rb") as file:
        _check_regular(os.fstat(descriptor), names)
        try:
            data = file.read(limit + 1)
        except OSError as error:
            raise WorkspaceError(f"{shown(names)!r} cannot be read: {error.strerror}.") from error
    if len(data) > limit:
        raise WorkspaceError(f"{shown(names)!r} has more than {limit:,} bytes: look into it with search or a command.")
    return data


def _replace(folder: int, names: Sequence[str], data: bytes) -> None:
    temporary = f".steerkit-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        mode = _mode_to_keep(folder, names)
        descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if mode is not None:
                    os.fchmod(descriptor, mode)
            os.rename(temporary, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
    except OSError as error:
        raise _refusal(error, folder, names, wanted="file") from error


def _mode_to_keep(folder: int, names: Sequence[str]) -> int | None:
    """The permissions of the file that is to be replaced; None when there is none yet."""
    try:
        status = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_regular(status, names)
    if not status.st_mode & 0o222:
        # The rename would go through: it asks the folder for permission, not the file.
        raise WorkspaceError(f"{shown(names)!r} is read-only and was not written.")
    return status.st_mode & 0o777


def _step(folder: int, names: Sequence[str], flags: int, create: bool) -> int:
    """The descriptor of the folder `names[-1]` in `folder`."""
    try:
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(names[-1], dir_fd=folder)
        return os.open(names[-1], flags, dir_fd=folder)
    except OSError as error:
        raise _refusal(error, folder, names, wanted="folder") from error


def _check_regular(status: os.stat_result, names: Sequence[str]) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _wrong_kind(kind_of(status.st_mode), names, wanted="file")


def _refusal(error: OSError, folder: int, names: Sequence[str], wanted: str) -> WorkspaceError:
    """A sentence for a failed system call; what stands there says more than its error number."""
    if isinstance(error, FileNotFoundError):
        return WorkspaceError(f"There is no {shown(names)!r} in the workspace.")
    try:
        kind = kind_of(os.stat(names[-1], dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        kind = wanted
    if kind != wanted:
        return _wrong_kind(kind, names, wanted)
    return WorkspaceError(f"{shown(names)!r} cannot be opened: {error.strerror}.")


def _wrong_kind(kind: str, names: Sequence[str], wanted: str) -> WorkspaceError:
    if kind == "symbolic link":
        return WorkspaceError(f"{shown(names)!r} is a symbolic link: none is followed, since it may lead anywhere.")
    return WorkspaceError(f"{shown(names)!r} is a {kind}, not a {wanted}.")


def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name not in ("", "."))


def _encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True
