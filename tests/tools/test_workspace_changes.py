"""Writing and editing: all or nothing, and only what was asked for."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit.core.cancel import Cancellation
from steerkit.core.message import ToolCall
from steerkit.core.tool import ToolContext, run_tool
from steerkit.tools.file_text import edited
from steerkit.tools.rooted_files import RootedFiles, WorkspaceError
from steerkit.tools.workspace import workspace
from tests.tools.workspace_calls import do, refusal


def test_what_changes_something_needs_approval(tmp_path: Path) -> None:
    assert {tool.name: tool.needs_approval for tool in workspace(tmp_path)} == {
        "read_file": False,
        "list_files": False,
        "search": False,
        "write_file": True,
        "edit_file": True,
        "run_command": True,
    }


def test_a_write_that_is_not_allowed_leaves_no_file(tmp_path: Path) -> None:
    call, flag = ToolCall("1", "write_file", '{"path": "a", "content": "x"}'), Cancellation().requested
    run_tool(workspace(tmp_path), call, lambda _: False, ToolContext(call, flag, flag))
    assert list(tmp_path.iterdir()) == []


# ---- write_file


def test_a_new_file_is_written_with_the_folders_above_it(tmp_path: Path) -> None:
    assert do(tmp_path, "write_file", path="a/b/c.txt", content="né\r\n") == "a/b/c.txt has 5 bytes now."
    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == "né\r\n".encode()


def test_a_new_file_gets_the_mode_that_others_get(tmp_path: Path) -> None:
    (tmp_path / "by-hand").touch()
    do(tmp_path, "write_file", path="by-tool", content="")
    assert (tmp_path / "by-tool").stat().st_mode == (tmp_path / "by-hand").stat().st_mode


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    (tmp_path / "a.sh").touch()
    (tmp_path / "a.sh").chmod(mode)
    do(tmp_path, "write_file", path="a.sh", content="x")
    assert stat.S_IMODE((tmp_path / "a.sh").stat().st_mode) == mode


def test_a_read_only_file_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("kept")
    (tmp_path / "a.txt").chmod(0o444)
    assert refusal(tmp_path, "write_file", path="a.txt", content="x") == "'a.txt' is read-only and was not written."
    assert (tmp_path / "a.txt").read_text() == "kept"


def test_a_reader_sees_the_old_file_or_the_new_and_never_a_part(tmp_path: Path) -> None:
    files, stop, seen = RootedFiles(tmp_path), threading.Event(), set[bytes]()
    versions = [letter * 300_000 for letter in (b"a", b"b")]
    files.write(("a.txt",), versions[0])

    def read() -> None:
        while not stop.is_set():
            seen.add((tmp_path / "a.txt").read_bytes())

    reader = threading.Thread(target=read, name="steerkit-test")
    reader.start()
    try:
        for number in range(200):
            files.write(("a.txt",), versions[number % 2])
    finally:
        stop.set()
        reader.join()
    assert seen <= set(versions)


def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(WorkspaceError, match="No space left"):
        RootedFiles(tmp_path).write(("a.txt",), b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_another_name_of_the_file_keeps_what_was_in_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.txt").write_text("outside")
    os.link(tmp_path / "outside.txt", root / "a.txt")
    do(root, "write_file", path="a.txt", content="x")
    assert (tmp_path / "outside.txt").read_text() == "outside"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".GIT/config", "sub/.git", "sub/.git/config"])
def test_what_belongs_to_git_is_not_written(tmp_path: Path, path: str) -> None:
    assert "belongs to git" in refusal(tmp_path, "write_file", path=path, content="x")
    assert list(tmp_path.iterdir()) == []


def test_a_lone_surrogate_is_not_written(tmp_path: Path) -> None:
    assert "lone surrogate" in refusal(tmp_path, "write_file", path="a", content="\udcff")
    assert list(tmp_path.iterdir()) == []


def test_a_lone_surrogate_is_not_put_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    assert "lone surrogate" in refusal(tmp_path, "edit_file", path="a.txt", old_text="one", new_text="\udcff")
    assert (tmp_path / "a.txt").read_text() == "one"


# ---- edit_file


def _edit(root: Path, data: bytes, old: str, new: str) -> bytes:
    (root / "a.txt").write_bytes(data)
    do(root, "edit_file", path="a.txt", old_text=old, new_text=new)
    return (root / "a.txt").read_bytes()


def test_an_edit_replaces_the_one_place(tmp_path: Path) -> None:
    assert _edit(tmp_path, b"one\ntwo\nthree\n", "two\n", "2\n2\n") == b"one\n2\n2\nthree\n"


def test_an_edit_can_remove_text(tmp_path: Path) -> None:
    assert _edit(tmp_path, b"one\ntwo\n", "two\n", "") == b"one\n"


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", "two", "2\n2", b"one\r\n2\r\n2\r\nthree\r\n"),
        (b"one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2", b"1\r\n2\r\nthree\r\n"),
        (b"one\r\ntwo", "two", "2\n2", b"one\r\n2\r\n2"),
        (b"one\r\ntwo\nthree", "two", "2\n2", b"one\r\n2\n2\nthree"),
        (b"one\ntwo\n", "two\r\n", "2\r\n2\r\n", b"one\n2\n2\n"),
        (b"one", "one", "1\n2", b"1\n2"),
    ],
)
def test_an_edit_keeps_the_line_ends_of_its_place(
    tmp_path: Path, data: bytes, old: str, new: str, after: bytes
) -> None:
    assert _edit(tmp_path, data, old, new) == after


@pytest.mark.parametrize("times", [0, 2, 3])
def test_a_text_that_is_not_there_once_is_refused_with_how_often_it_is(tmp_path: Path, times: int) -> None:
    (tmp_path / "a.txt").write_text("word\n" * times)
    sentence = refusal(tmp_path, "edit_file", path="a.txt", old_text="word", new_text="x")
    assert sentence.startswith(f"old_text occurs {times} times in 'a.txt', not once")
    assert (tmp_path / "a.txt").read_text() == "word\n" * times


def test_places_that_overlap_are_more_than_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("aaa")
    assert "occurs 2 times" in refusal(tmp_path, "edit_file", path="a.txt", old_text="aa", new_text="x")


@pytest.mark.parametrize(("old", "new", "reason"), [("", "x", "is empty"), ("one", "one", "are the same")])
def test_an_edit_of_nothing_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    (tmp_path / "a.txt").write_text("one")
    assert reason in refusal(tmp_path, "edit_file", path="a.txt", old_text=old, new_text=new)


def test_bytes_that_are_no_text_survive_an_edit(tmp_path: Path) -> None:
    assert _edit(tmp_path, b"\xef\xbb\xbfcaf\xe9 one\n", "one", "two") == b"\xef\xbb\xbfcaf\xe9 two\n"


def test_encodings_are_not_mixed_by_an_edit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 one\n")
    assert "only ASCII" in refusal(tmp_path, "edit_file", path="a.txt", old_text="one", new_text="né")


def test_a_binary_file_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"one\0")
    assert "is a binary file" in refusal(tmp_path, "edit_file", path="a.bin", old_text="one", new_text="two")


PIECES = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r", "é", "\udce9"]), max_size=8).map("".join)


@given(before=PIECES, after=PIECES)
def test_an_edit_touches_nothing_but_its_place(before: str, after: str) -> None:
    assert edited(f"{before}<old>{after}", "<old>", "<new>", ("f",)) == f"{before}<new>{after}"
