"""Nothing leaves the root: not by a name, not by a link, not by a link that was not there a moment before."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit.tools.rooted_files import RootedFiles, WorkspaceError
from steerkit.tools.workspace import workspace
from tests.conftest import PATIENCE
from tests.tools.workspace_calls import SECRET, do, outcome, refusal, text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace beside a folder that is none of its business."""
    return _house(tmp_path)


def _house(folder: Path) -> Path:
    root, outside = folder / "root", folder / "outside"
    for inner in (root, root / "inner", outside, outside / "deep"):
        inner.mkdir()
    (root / "inner" / "file.txt").write_text("inside")
    (root / "file.txt").write_text("inside")
    for secret in (outside / "file.txt", outside / "deep" / "file.txt", folder / "file.txt"):
        secret.write_text(SECRET)
    (root / "link").symlink_to(outside)
    (root / "link.txt").symlink_to(outside / "file.txt")
    (root / "home").symlink_to(root / "inner")
    return root


def _outside(root: Path) -> dict[str, str]:
    """Every file beside the root, and what is in it."""
    return {
        str(path): path.read_text()
        for folder in (root.parent, root.parent / "outside", root.parent / "outside" / "deep")
        for path in folder.iterdir()
        if path.is_file()
    }


WAYS_OUT = {
    "../file.txt": "has '..' in it",
    "inner/../../file.txt": "has '..' in it",
    "/etc/passwd": "is outside the workspace",
    "link/file.txt": "'link' is a symbolic link",
    "link/deep/file.txt": "'link' is a symbolic link",
    "link.txt": "'link.txt' is a symbolic link",
    "home/file.txt": "'home' is a symbolic link",
}


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_way_out_of_the_root_can_be_read(root: Path, path: str) -> None:
    assert WAYS_OUT[path] in refusal(root, "read_file", path=path)


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_way_out_of_the_root_can_be_written(root: Path, path: str) -> None:
    before = _outside(root)
    assert WAYS_OUT[path] in refusal(root, "write_file", path=path, content="x")
    assert _outside(root) == before


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_way_out_of_the_root_can_be_edited(root: Path, path: str) -> None:
    assert WAYS_OUT[path] in refusal(root, "edit_file", path=path, old_text=SECRET, new_text="x")


@pytest.mark.parametrize("path", ["..", "/", "link", "link/deep", "inner/../.."])
@pytest.mark.parametrize("name", ["list_files", "search"])
def test_no_folder_outside_can_be_looked_into(root: Path, name: str, path: str) -> None:
    pattern = {"pattern": "."} if name == "search" else {}
    result = outcome(root, name, {"path": path, **pattern})
    assert isinstance(result.error, WorkspaceError)
    assert SECRET not in text(result)


def test_links_are_listed_and_not_followed(root: Path) -> None:
    assert do(root, "list_files").splitlines() == [
        "file.txt",
        "home (symbolic link)",
        "link (symbolic link)",
        "link.txt (symbolic link)",
        "inner/file.txt",
    ]


def test_a_search_passes_over_links(root: Path) -> None:
    assert do(root, "search", pattern="stands|inside").splitlines() == [
        "file.txt:1: inside",
        "inner/file.txt:1: inside",
        "[2 matching lines.]",
    ]


def test_an_absolute_path_inside_the_root_is_one_of_the_root(root: Path) -> None:
    assert do(root, "read_file", path=str(root / "inner" / "file.txt")).endswith("\ninside")


def test_a_folder_beside_the_root_with_a_longer_name_is_outside(root: Path) -> None:
    sibling = root.parent / "root-2"
    sibling.mkdir()
    (sibling / "file.txt").write_text(SECRET)
    assert "is outside the workspace" in refusal(root, "read_file", path=str(sibling / "file.txt"))


def test_a_root_named_through_a_link_takes_paths_under_both_names(root: Path) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)
    assert do(alias, "read_file", path=str(alias / "file.txt")).endswith("\ninside")
    assert do(alias, "read_file", path=str(root / "file.txt")).endswith("\ninside")


def test_a_root_that_is_swapped_for_a_link_is_not_followed(root: Path) -> None:
    files = RootedFiles(root)
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "outside")
    with pytest.raises(WorkspaceError, match="The workspace cannot be opened"):
        files.read(("file.txt",), 100)


def test_a_root_that_is_no_folder_is_refused(root: Path) -> None:
    with pytest.raises(ValueError, match="is no folder"):
        workspace(root / "file.txt")


# ---- what is no file


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


@pytest.mark.parametrize(("make", "kind"), [(_fifo, "FIFO"), (_socket, "socket"), (Path.mkdir, "folder")])
def test_what_is_no_file_is_not_read(root: Path, make: Callable[[Path], None], kind: str) -> None:
    make(root / "odd")
    assert refusal(root, "read_file", path="odd") == f"'odd' is a {kind}, not a file."


@pytest.mark.parametrize(("make", "kind"), [(_fifo, "FIFO"), (_socket, "socket"), (Path.mkdir, "folder")])
def test_what_is_no_file_is_not_replaced(root: Path, make: Callable[[Path], None], kind: str) -> None:
    make(root / "odd")
    assert refusal(root, "write_file", path="odd", content="x") == f"'odd' is a {kind}, not a file."


def test_a_device_is_not_opened() -> None:
    with pytest.raises(WorkspaceError, match="'null' is a device, not a file"):
        RootedFiles("/dev").read(("null",), 100)


def test_a_fifo_swapped_in_for_a_file_blocks_nobody(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap() -> None:
        (root / "file.txt").unlink()
        os.mkfifo(root / "file.txt")

    files = RootedFiles(root)
    _before_call(monkeypatch, "open", 2, swap)
    with pytest.raises(WorkspaceError, match="is a FIFO, not a file"):
        files.read(("file.txt",), 100)


@pytest.mark.parametrize("path", ["", ".", "/", "./."])
def test_the_root_itself_is_no_file(root: Path, path: str) -> None:
    path = str(root) if path == "/" else path
    assert "is a folder, not a file" in refusal(root, "read_file", path=path)


@pytest.mark.parametrize("path", ["nul\0.txt", "a/" * 3000, "lone \ud800"])
def test_what_is_no_path_at_all_is_refused(root: Path, path: str) -> None:
    assert "is no path of this system" in refusal(root, "read_file", path=path)


def test_a_name_that_is_too_long_is_refused(root: Path) -> None:
    assert "cannot be opened: File name too long" in refusal(root, "read_file", path="n" * 300)


def test_a_file_in_the_place_of_a_folder_is_said(root: Path) -> None:
    assert refusal(root, "read_file", path="file.txt/more") == "'file.txt' is a file, not a folder."


def test_a_missing_file_is_said(root: Path) -> None:
    assert refusal(root, "read_file", path="inner/none") == "There is no 'inner/none' in the workspace."


# ---- swaps between a check and what follows it


def _before_call(monkeypatch: pytest.MonkeyPatch, name: str, number: int, act: Callable[[], None]) -> list[int]:
    """Do `act` right before the call `number` (from 1) of a function of `os`; returns a list with the calls so far."""
    real, calls = getattr(os, name), [0]

    def watched(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            monkeypatch.setattr(os, name, real)
            act()
        return real(*args, **kwargs)

    monkeypatch.setattr(os, name, watched)
    return calls


def _swap_folder(root: Path) -> None:
    (root / "inner").rename(root / "aside")
    (root / "inner").symlink_to(root.parent / "outside")


def _swap_file(root: Path) -> None:
    (root / "inner" / "file.txt").unlink()
    (root / "inner" / "file.txt").symlink_to(root.parent / "outside" / "file.txt")


SYSTEM_CALLS = [(name, number) for name in ("open", "stat", "mkdir", "rename", "fstat") for number in (1, 2, 3)]


@pytest.mark.parametrize("swap", [_swap_folder, _swap_file])
@pytest.mark.parametrize(("name", "number"), SYSTEM_CALLS)
def test_a_swap_before_any_system_call_does_not_make_a_read_escape(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int, swap: Callable[[Path], None]
) -> None:
    files = RootedFiles(root)
    _before_call(monkeypatch, name, number, lambda: swap(root))
    try:
        data = files.read(("inner", "file.txt"), 100)
    except WorkspaceError:
        return
    assert data == b"inside"


@pytest.mark.parametrize("swap", [_swap_folder, _swap_file])
@pytest.mark.parametrize(("name", "number"), SYSTEM_CALLS)
def test_a_swap_before_any_system_call_does_not_make_a_write_escape(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int, swap: Callable[[Path], None]
) -> None:
    before, files = _outside(root), RootedFiles(root)
    _before_call(monkeypatch, name, number, lambda: swap(root))
    try:
        files.write(("inner", "file.txt"), b"written")
    except WorkspaceError as error:
        assert "symbolic link" in str(error)
    assert _outside(root) == before


@contextlib.contextmanager
def _swapping(root: Path) -> Iterator[None]:
    """While the block runs, `inner` is the folder, then a link to the outside, then not there, again and again."""
    stop, ready = threading.Event(), threading.Event()
    (root / "spare").symlink_to(root.parent / "outside")

    def put(source: str) -> None:
        while True:
            try:
                return os.rename(root / source, root / "inner")
            except OSError:  # a writer made the folder that it missed
                shutil.rmtree(root / "inner", ignore_errors=True)

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "inner", root / "aside")
            put("spare")
            os.rename(root / "inner", root / "spare")
            put("aside")
            ready.set()

    thread = threading.Thread(target=swap, name="steerkit-test")
    thread.start()
    ready.wait(PATIENCE)
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _again_and_again(work: Callable[[], str]) -> set[str]:
    """Everything that `work` returned and the sentences of its refusals, until both kinds of outcome were seen."""
    seen: set[str] = set()
    for number in range(20_000):
        try:
            seen.add(work())
        except WorkspaceError as error:
            seen.add(str(error))
        if number >= 3000 and any("symbolic link" in outcome for outcome in seen):
            break
    return seen


def test_a_folder_swapped_for_a_link_again_and_again_is_never_read_through(root: Path) -> None:
    files = RootedFiles(root)
    with _swapping(root):
        seen = _again_and_again(lambda: files.read(("inner", "file.txt"), 100).decode())
    assert SECRET not in seen
    assert "inside" in seen
    assert any("symbolic link" in outcome for outcome in seen), seen


def test_a_folder_swapped_for_a_link_again_and_again_is_never_written_through(root: Path) -> None:
    files, before = RootedFiles(root), _outside(root)

    def write() -> str:
        files.write(("inner", "file.txt"), b"written")
        return "written"

    with _swapping(root):
        seen = _again_and_again(write)
    assert _outside(root) == before
    assert any("symbolic link" in outcome for outcome in seen), seen


# ---- any path


NAMES = st.sampled_from(
    ["..", ".", "", "inner", "link", "link.txt", "home", "file.txt", "outside", "deep", "root", "new", "..."]
)


@pytest.fixture(scope="module")
def kept_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield _house(tmp_path_factory.mktemp("house"))


@given(names=st.lists(NAMES, max_size=6), start=st.sampled_from(["", "/", "root/", "outside/", "parent/"]))
def test_whatever_the_path_nothing_outside_is_read_or_changed(kept_root: Path, names: list[str], start: str) -> None:
    starts = {"root/": f"{kept_root}/", "outside/": f"{kept_root.parent}/outside/", "parent/": f"{kept_root.parent}/"}
    path = starts.get(start, start) + "/".join(names)
    files, before = RootedFiles(kept_root), _outside(kept_root)
    for work in (lambda: files.read(files.names(path), 100), lambda: files.write(files.names(path), b"inside")):
        with contextlib.suppress(WorkspaceError):
            assert work() in (b"inside", None)
    assert _outside(kept_root) == before


@given(path=st.text(max_size=30))
def test_any_text_as_a_path_is_read_or_refused_with_a_sentence(kept_root: Path, path: str) -> None:
    files = RootedFiles(kept_root)
    try:
        files.read(files.names(path), 100)
    except WorkspaceError as error:
        assert str(error).endswith(".")
