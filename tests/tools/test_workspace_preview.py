"""What a person is shown of a call before it is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steerkit.core.message import ToolCall
from steerkit.tools.preview import Change, Location, Preview, preview


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    return tmp_path.resolve()


def _preview(root: Path, name: str, **arguments: Any) -> Preview | None:
    return preview(root, ToolCall("1", name, json.dumps(arguments)))


def _change(root: Path, name: str, **arguments: Any) -> Change | None:
    seen = _preview(root, name, **arguments)
    assert seen is not None
    assert seen.kind == "edit"
    return seen.change


def test_a_read_shows_the_file_and_the_line(root: Path) -> None:
    assert _preview(root, "read_file", path="a.txt", first_line=2) == Preview(
        "read", "Read a.txt", (Location(str(root / "a.txt"), 2),)
    )


@pytest.mark.parametrize("line", [0, -1, "two"])
def test_a_line_that_is_none_is_not_shown(root: Path, line: object) -> None:
    seen = _preview(root, "read_file", path="a.txt", first_line=line)
    assert seen is not None
    assert seen.locations == (Location(str(root / "a.txt")),)


def test_a_listing_shows_the_folder(root: Path) -> None:
    assert _preview(root, "list_files") == Preview("search", "List .", (Location(str(root)),))


def test_a_search_shows_the_pattern_and_the_folder(root: Path) -> None:
    assert _preview(root, "search", pattern="x+", path="src") == Preview(
        "search", "Search x+ in src", (Location(str(root / "src")),)
    )


def test_a_command_is_shown_whole(root: Path) -> None:
    command = "echo one\necho " + "x" * 1000
    seen = _preview(root, "run_command", command=command)
    assert seen is not None
    assert (seen.kind, seen.command, seen.locations) == ("execute", command, (Location(str(root)),))
    assert len(seen.title) == 200
    assert "\n" not in seen.title


def test_an_edit_shows_the_file_before_and_after_and_where_it_changes(root: Path) -> None:
    assert _preview(root, "edit_file", path="a.txt", old_text="two", new_text="2\n2") == Preview(
        "edit",
        "Edit a.txt",
        (Location(str(root / "a.txt"), 2),),
        Change(str(root / "a.txt"), "one\r\ntwo\r\nthree\r\n", "one\r\n2\r\n2\r\nthree\r\n"),
    )


def test_a_write_of_a_new_file_has_nothing_before(root: Path) -> None:
    path = str(root / "new" / "b.txt")
    assert _change(root, "write_file", path="new/b.txt", content="x") == Change(path, None, "x")


def test_a_write_shows_what_it_replaces(root: Path) -> None:
    change = _change(root, "write_file", path="a.txt", content="x")
    assert change == Change(str(root / "a.txt"), "one\r\ntwo\r\nthree\r\n", "x")


def test_a_preview_changes_nothing(root: Path) -> None:
    _preview(root, "write_file", path="new/b.txt", content="x")
    _preview(root, "edit_file", path="a.txt", old_text="two", new_text="2")
    assert [path.name for path in root.iterdir()] == ["a.txt"]
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\r\nthree\r\n"


def test_an_edit_that_will_fail_has_no_change_to_show(root: Path) -> None:
    assert _change(root, "edit_file", path="a.txt", old_text="none", new_text="x") is None
    assert _change(root, "edit_file", path="none.txt", old_text="none", new_text="x") is None


def test_a_file_that_is_no_text_is_not_shown(root: Path) -> None:
    (root / "a.bin").write_bytes(b"\0")
    assert _change(root, "write_file", path="a.bin", content="x") is None


def test_a_file_outside_is_neither_named_nor_read(root: Path) -> None:
    (root / "link").symlink_to("/etc")
    outside = _preview(root, "write_file", path="../a.txt", content="x")
    linked = _preview(root, "write_file", path="link/hostname", content="x")
    assert outside == Preview("edit", "Write ../a.txt")
    assert linked is not None
    assert linked.change is None


def test_a_title_is_one_line(root: Path) -> None:
    seen = _preview(root, "read_file", path="two\nlines")
    assert seen is not None
    assert seen.title == "Read two\\nlines"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("other", "{}"), ("read_file", "{}"), ("read_file", '{"path": 1}'), ("run_command", "not json")],
)
def test_what_is_no_call_of_a_workspace_tool_has_no_preview(root: Path, name: str, arguments: str) -> None:
    assert preview(root, ToolCall("1", name, arguments)) is None


def test_bytes_that_are_no_text_can_be_carried_by_a_front_end(root: Path) -> None:
    (root / "a.txt").write_bytes(b"caf\xe9 one")
    change = _change(root, "edit_file", path="a.txt", old_text="one", new_text="two")
    assert change == Change(str(root / "a.txt"), "caf? one", "caf? two")
