"""What a model is shown of files, and what it is told about the rest."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steerkit.core.cancel import Cancellation
from steerkit.core.message import ToolCall
from steerkit.core.tool import ToolContext
from steerkit.tools.rooted_files import RootedFiles
from steerkit.tools.search_files import Tree
from steerkit.tools.workspace import workspace
from tests.tools.workspace_calls import do, outcome, refusal, text

# ---- read_file


def test_a_file_is_read_as_it_stands_under_a_line_that_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ttwo\n")
    assert do(tmp_path, "read_file", path="a.txt") == "[a.txt, lines 1 to 2 of 2]\none\n\ttwo"


def test_a_range_of_lines_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    answer = do(tmp_path, "read_file", path="a.txt", first_line=2, last_line=3)
    assert answer == "[a.txt, lines 2 to 3 of 4]\ntwo\nthree"


def test_a_range_that_goes_beyond_the_end_is_read_to_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert do(tmp_path, "read_file", path="a.txt", first_line=2, last_line=99) == "[a.txt, lines 2 to 2 of 2]\ntwo"


def test_a_range_that_starts_behind_the_end_is_refused_with_the_number_of_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert refusal(tmp_path, "read_file", path="a.txt", first_line=3) == (
        "'a.txt' has 2 lines, so there is none from 3 on."
    )


@pytest.mark.parametrize("lines", [{"first_line": 0}, {"first_line": -2}, {"first_line": 3, "last_line": 2}])
def test_a_range_that_is_none_is_refused(tmp_path: Path, lines: dict[str, int]) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    assert refusal(tmp_path, "read_file", path="a.txt", **lines).startswith("There are no lines")


def test_an_empty_file_is_read_as_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert do(tmp_path, "read_file", path="a.txt") == "[a.txt, empty]"


def test_a_long_file_is_read_in_parts_and_each_says_where_to_go_on(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1, 5001)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    read: list[str] = []
    while len(read) < len(lines):
        arguments = {"path": "a.txt", "first_line": len(read) + 1}
        heading, *part = text(outcome(tmp_path, "read_file", arguments, output_limit=9000)).split("\n")
        read += part
        assert ("read on from first_line=" + str(len(read) + 1) in heading) == (len(read) < len(lines))
        assert sum(len(line) + 1 for line in part) <= 9000
    assert read == lines


def test_a_long_line_is_cut_and_it_is_said_by_how_much(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 5000 + "\n")
    assert do(tmp_path, "read_file", path="a.txt").endswith("x [3,000 characters of this line were left out]")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0\0")
    assert refusal(tmp_path, "read_file", path="a.bin") == "'a.bin' is a binary file of 6 bytes (or no UTF-8 text)."


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with open(tmp_path / "a.txt", "wb") as file:
        file.truncate(16 * 2**20 + 1)
    assert refusal(tmp_path, "read_file", path="a.txt").startswith("'a.txt' has more than 16,777,216 bytes")


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"caf\xe9\n", "not UTF-8: 1 bytes are shown as '?'"),
        (b"one\r\ntwo\r\n", "its lines end with CRLF"),
        (b"one", "no newline at its end"),
    ],
)
def test_what_is_odd_about_a_file_is_said(tmp_path: Path, data: bytes, note: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    assert note in do(tmp_path, "read_file", path="a.txt").split("\n")[0]


def test_an_ordinary_file_gets_no_notes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    assert ";" not in do(tmp_path, "read_file", path="a.txt")


# ---- list_files


def _write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def test_files_are_listed_with_the_upper_folders_first(tmp_path: Path) -> None:
    _write(tmp_path, {"b/c/deep.py": "", "b/two.py": "", "z.py": "", "a/one.py": ""})
    assert do(tmp_path, "list_files").splitlines() == ["z.py", "a/one.py", "b/two.py", "b/c/deep.py"]


def test_a_listing_can_be_limited_to_a_folder_and_to_some_files(tmp_path: Path) -> None:
    _write(tmp_path, {"b/c/deep.py": "", "b/two.md": "", "z.py": ""})
    assert do(tmp_path, "list_files", path="b", files="*.py") == "b/c/deep.py"


def test_a_folder_without_files_is_said_to_have_none(tmp_path: Path) -> None:
    assert do(tmp_path, "list_files") == "[No files.]"


def test_a_listing_of_a_file_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, {"a.txt": ""})
    assert refusal(tmp_path, "list_files", path="a.txt") == "'a.txt' is a file, not a folder."


def test_a_long_listing_says_how_many_files_it_left_out_and_where_they_are(tmp_path: Path) -> None:
    _write(tmp_path, {f"few/{number}.txt": "" for number in range(10)})
    _write(tmp_path, {f"many/{number}.txt": "" for number in range(600)})
    *files, last = do(tmp_path, "list_files").splitlines()
    assert len(files) == 500
    assert last == "[110 more files were left out; name a folder to see them: many 110]"


def test_a_name_with_a_newline_takes_one_line(tmp_path: Path) -> None:
    (tmp_path / "two\nlines").write_text("inside")
    assert do(tmp_path, "list_files") == "two\\nlines"


def test_a_name_that_is_no_utf8_can_be_read_by_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("inside\n")
    assert do(tmp_path, "list_files") == r"caf\udce9"
    assert do(tmp_path, "read_file", path="caf\udce9").endswith("inside")


def test_a_path_that_no_process_could_be_given_is_refused_like_any_other(tmp_path: Path) -> None:
    assert "is no path of this system" in refusal(tmp_path, "list_files", path="a/" * 100_000)


def test_a_folder_that_is_swapped_for_a_link_after_it_was_seen_is_passed_over(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    _write(tmp_path, {"root/a.txt": "", "root/b/inside.txt": "", "root/c/d.txt": "", "outside/secret.txt": ""})
    listing = Tree(RootedFiles(root), None).listing(())
    assert next(listing) == "a.txt"
    (root / "b").rename(root / "aside")
    (root / "b").symlink_to(outside)
    assert list(listing) == ["c/d.txt"]


# ---- what git ignores


def test_nested_ignore_files_count_and_git_itself_is_left_out(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n/only-here.txt\n",
            "sub/.gitignore": "!keep.log\n*.tmp\n",
            "sub/keep.log": "",
            "sub/drop.log": "",
            "sub/x.tmp": "",
            "sub/only-here.txt": "",
            "only-here.txt": "",
            "build/out.txt": "",
            "x.tmp": "",
            ".git/config": "",
            ".git/info/exclude": "private.txt\n",
            "private.txt": "",
        },
    )
    assert do(tmp_path, "list_files").splitlines() == [
        ".gitignore",
        "x.tmp",
        "sub/.gitignore",
        "sub/keep.log",
        "sub/only-here.txt",
    ]


def test_a_bad_pattern_in_an_ignore_file_spoils_no_other(tmp_path: Path) -> None:
    _write(tmp_path, {".gitignore": "!\n[z-a]\n*.log\n", "a.log": "", "a.txt": ""})
    assert do(tmp_path, "list_files").splitlines() == [".gitignore", "a.txt"]


def test_an_ignored_folder_that_is_named_is_looked_into(tmp_path: Path) -> None:
    _write(tmp_path, {".gitignore": "build/\n", "build/deep/out.txt": "needle\n"})
    assert do(tmp_path, "search", pattern="needle", path="build/deep").startswith("build/deep/out.txt:1: needle")


def test_an_ignore_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    _write(tmp_path, {"patterns": "*.txt\n", "a.txt": ""})
    (tmp_path / ".gitignore").symlink_to(tmp_path / "patterns")
    assert "a.txt" in do(tmp_path, "list_files").splitlines()


PATTERNS = st.sampled_from(
    ["a", "b", "*.x", "!*.x", "/a", "a/", "!a", "a/b", "**/b", "a/**", "!a/b", "*", "!*/", "?.x", "# a", "", "[ab].x"]
)
PLACES = st.sampled_from(["a", "b", "c.x", "a/b", "a/c.x", "b/a/b", "b/a/c.x", "b/b.x", "c/a", "c/b/a.x"])


@settings(max_examples=25)
@example(upper=["a/**", "!*.x"], lower=[], places=["a/c.x"])
@given(upper=st.lists(PATTERNS, max_size=4), lower=st.lists(PATTERNS, max_size=3), places=st.lists(PLACES, max_size=8))
def test_what_is_listed_is_what_git_lists(upper: list[str], lower: list[str], places: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write(root, {".gitignore": "\n".join(upper), "b/.gitignore": "\n".join(lower)})
        for place in places:
            if not (root / place).exists() and not any((root / above).is_file() for above in Path(place).parents):
                _write(root, {place: ""})
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        for command in (["init", "-q"], ["ls-files", "--cached", "--others", "--exclude-standard"]):
            git = subprocess.run(
                ["git", *command], cwd=root, env=environment, check=True, capture_output=True, text=True
            )
        listed = [line for line in Tree(RootedFiles(root), None).listing(()) if line != "[No files.]"]
        assert sorted(listed) == sorted(git.stdout.splitlines())


# ---- search


def test_a_match_is_shown_with_its_file_and_its_line(tmp_path: Path) -> None:
    _write(tmp_path, {"a/b.txt": "one\ntwo words\n", "c.txt": "two\n"})
    assert do(tmp_path, "search", pattern=r"^two\b").splitlines() == [
        "c.txt:1: two",
        "a/b.txt:2: two words",
        "[2 matching lines.]",
    ]


def test_a_search_can_be_limited_to_one_file(tmp_path: Path) -> None:
    _write(tmp_path, {"a.txt": "x\n", "b.txt": "x\n"})
    assert do(tmp_path, "search", pattern="x", path="b.txt") == "b.txt:1: x\n[1 matching lines.]"


def test_the_end_of_a_crlf_line_is_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert do(tmp_path, "search", pattern="one$") == "a.txt:1: one\n[1 matching lines.]"


def test_no_match_is_said(tmp_path: Path) -> None:
    _write(tmp_path, {"a.txt": "x\n"})
    assert do(tmp_path, "search", pattern="y") == "[No matches.]"


def test_thousands_of_matches_are_counted_and_some_are_shown(tmp_path: Path) -> None:
    _write(tmp_path, {"a.txt": "x\n" * 5000})
    *shown, last = do(tmp_path, "search", pattern="x").splitlines()
    assert len(shown) == 200
    assert last.startswith("[5,000 matching lines, the first 200 of which are shown")


def test_a_match_in_a_long_line_is_shown_with_what_is_around_it(tmp_path: Path) -> None:
    _write(tmp_path, {"a.txt": "x" * 9000 + "needle" + "y" * 9000})
    answer = do(tmp_path, "search", pattern="needle")
    assert "xxneedleyy" in answer
    assert len(answer) < 400


def test_files_that_were_not_searched_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"needle\0")
    with open(tmp_path / "large.txt", "wb") as file:
        file.write(b"needle\n")
        file.truncate(5 * 2**20)
    assert do(tmp_path, "search", pattern="needle").startswith("[No matches; 2 files were passed over")


def test_a_pattern_that_is_no_regular_expression_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert refusal(tmp_path, "search", pattern="(") == (
        "The pattern is no regular expression of Python: missing ), unterminated subpattern at position 0."
    )


def test_a_pattern_without_end_is_refused(tmp_path: Path) -> None:
    assert "more than 10,000 characters" in refusal(tmp_path, "search", pattern="x" * 200_000)


def test_modules_in_the_workspace_are_not_run_by_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil = "open('spoiled', 'w')\n"
    _write(tmp_path, {"json.py": spoil, "re.py": spoil, "sitecustomize.py": spoil, "pathspec.py": spoil})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert do(tmp_path, "list_files").splitlines() == ["json.py", "pathspec.py", "re.py", "sitecustomize.py"]
    assert not (tmp_path / "spoiled").exists()


# ---- what takes for ever


def test_a_pattern_that_would_take_years_is_stopped_and_what_was_found_is_kept(tmp_path: Path) -> None:
    _write(tmp_path, {"a.txt": "xx\n", "b.txt": "x" * 60 + "!\n"})
    found, stopped = text(outcome(tmp_path, "search", {"pattern": "^(x+x)+$"}, search_timeout=1.0)).splitlines()
    assert found == "a.txt:1: xx"
    assert stopped.startswith("[It had not ended after 1 s and was stopped")
    assert "use a simpler pattern" in stopped


def test_an_ignore_file_that_would_take_years_is_stopped(tmp_path: Path) -> None:
    _write(tmp_path, {".gitignore": "*a" * 20 + "b\n", "a" * 200: ""})
    answer = text(outcome(tmp_path, "list_files", {}, search_timeout=0.5))
    assert "It had not ended after 0.5 s" in answer
    assert "name a smaller folder" in answer


def test_a_cancel_stops_a_search(tmp_path: Path) -> None:
    _write(tmp_path, {"b.txt": "x" * 60 + "!\n"})
    cancellation = Cancellation()
    cancellation.request()
    search = next(tool for tool in workspace(tmp_path, search_timeout=1000.0) if tool.name == "search")
    context = ToolContext(ToolCall("1", "search"), cancellation.requested, cancellation.requested)
    assert "The run was cancelled" in search.run({"pattern": "^(x+x)+$"}, context)
