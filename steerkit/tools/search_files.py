"""List and search the files of a workspace, in a process of its own.

A pattern of the model, and a pattern in a .gitignore, can keep Python's `re` busy for years, and it holds the
interpreter lock all the while: then no thread of this process would move, and nobody could cancel. Only another process
can be ended. So `search_process` says how to start one, and `main` is what it runs; what it prints is for the model.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from steerkit.tools.file_text import is_binary
from steerkit.tools.rooted_files import RootedFiles, WorkspaceError, kind_of, shown

try:
    from pathspec import GitIgnoreSpec
except ModuleNotFoundError as error:
    raise ImportError("A workspace reads .gitignore with pathspec: pip install 'steerkit-sdk[workspace]'.") from error

__all__ = ["REFUSED", "main", "search_process"]

REFUSED = 3  # the exit code when the output is the sentence of a refusal
_MOST_FILES = 500
_MOST_MATCHES = 200
_MOST_FOLDERS_NAMED = 20
_LARGEST_FILE = 4 * 2**20
_LARGEST_IGNORE_FILE = 2**18
_LONGEST_PATTERN = 10_000
_LINE = 240

Names = tuple[str, ...]


def search_process(root: str, path: str, pattern: str | None, files: str) -> list[str]:
    """The program and arguments that list (`pattern` is None) or search what is under `path`.

    Raises:
        WorkspaceError: the pattern is too long.
    """
    if len(pattern or "") + len(files) > _LONGEST_PATTERN:
        raise WorkspaceError(f"The pattern has more than {_LONGEST_PATTERN:,} characters.")
    # -I, and the paths of this process only behind the standard library: the files in the workspace are no modules.
    code = (
        "import sys, json; order = json.loads(sys.argv[1]); sys.path.extend(order.pop('modules'));"
        "from steerkit.tools.search_files import main; main(order)"
    )
    modules = [os.path.abspath(entry) for entry in sys.path]
    order = {"modules": modules, "root": root, "path": path, "pattern": pattern, "files": files}
    return [sys.executable, "-I", "-Xutf8", "-Wignore", "-c", code, json.dumps(order)]


def main(order: Mapping[str, Any]) -> None:
    """Carry out an order of `search_process`, and print the answer as it is found."""
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        tree = Tree(RootedFiles(order["root"]), _spec(order["files"].splitlines()) if order["files"] else None)
        names = tree.files.names(order["path"])
        pattern = order["pattern"]
        lines = tree.listing(names) if pattern is None else tree.matches(names, pattern)
        for line in lines:
            _tell(line)
    except WorkspaceError as error:
        _tell(str(error))
        sys.exit(REFUSED)


def _tell(line: str) -> None:
    # Flushed: when the time is up, what was found until then still counts.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@frozen(order=True)
class Entry:
    """Something in a folder that git does not ignore: its names from the root, and what it is."""

    names: Names
    kind: str


@frozen
class Rules:
    """The ignore patterns that stand in one folder, `depth` names below the root."""

    depth: int
    spec: GitIgnoreSpec

    def verdict(self, names: Names, *, folder: bool) -> bool | None:
        """Whether it is ignored; None when no pattern here says so or otherwise. The last that matches decides."""
        path = "/".join(names[self.depth :]) + "/" * folder
        patterns: list[Any] = list(self.spec.patterns)
        return next((each.include for each in reversed(patterns) if _matches_itself(each, path)), None)


@frozen
class Tree:
    """What git does not ignore under a root, in the files that `wanted` matches; None for all."""

    files: RootedFiles
    wanted: GitIgnoreSpec | None

    def listing(self, start: Names) -> Iterator[str]:
        """A line for each file, the upper folders first, and one that says what was left out."""
        listed = 0
        left_out: Counter[Names] = Counter()
        for entry in self._entries_below(start):
            if not self._wants(entry):
                continue
            if listed < _MOST_FILES:
                listed += 1
                yield shown(entry.names) + ("" if entry.kind == "file" else f" ({entry.kind})")
            else:
                # Under the folder to name next: the one just below `start`.
                deeper = len(entry.names) > len(start) + 1
                left_out[entry.names[: len(start) + deeper]] += 1
        if not listed:
            yield "[No files.]"
        if left_out:
            yield _files_left_out(left_out)

    def matches(self, start: Names, pattern: str) -> Iterator[str]:
        """A line for each match, and one that says how many there are and what was not searched."""
        try:
            expression = re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise WorkspaceError(f"The pattern is no regular expression of Python: {error}.") from None
        found = passed_over = 0
        for names in self._candidates(start):
            lines = self._lines(names)
            if lines is None:
                passed_over += 1
                continue
            for number, line in enumerate(lines, 1):
                if match := expression.search(line):
                    found += 1
                    if found <= _MOST_MATCHES:
                        yield f"{shown(names)}:{number}: {_around(line, match.start())}"
        yield _matches_summary(found, passed_over)

    def _candidates(self, start: Names) -> Iterator[Names]:
        if self._is_file(start):
            yield start
            return
        for entry in self._entries_below(start):
            if entry.kind == "file" and self._wants(entry):
                yield entry.names

    def _is_file(self, names: Names) -> bool:
        if not names:
            return False
        with self.files.folder(names[:-1]) as parent:
            try:
                return stat.S_ISREG(os.stat(names[-1], dir_fd=parent, follow_symlinks=False).st_mode)
            except OSError:
                return False

    def _lines(self, names: Names) -> list[str] | None:
        """The lines of a text file; None when it is no text, too large, gone or closed to us."""
        try:
            data = self.files.read(names, _LARGEST_FILE)
        except WorkspaceError:
            return None
        if is_binary(data):
            return None
        return [line.removesuffix("\r") for line in data.decode("utf-8", "replace").split("\n")]

    def _wants(self, entry: Entry) -> bool:
        if entry.kind == "folder":
            return False
        return self.wanted is None or bool(self.wanted.check_file("/".join(entry.names)).include)

    def _entries_below(self, start: Names) -> Iterator[Entry]:
        """Everything under `start` that is not ignored, the upper folders first."""
        waiting = deque([(start, self._rules_above(start))])
        while waiting:
            names, rules = waiting.popleft()
            try:
                entries, rules = self._entries(names, rules)
            except WorkspaceError:
                if names == start:
                    raise
                continue  # gone, swapped or closed to us since it was seen
            waiting += ((entry.names, rules) for entry in entries if entry.kind == "folder")
            yield from entries

    def _entries(self, names: Names, rules: tuple[Rules, ...]) -> tuple[list[Entry], tuple[Rules, ...]]:
        """What is in a folder, sorted, and the rules for what is below it. Links are listed, and not followed."""
        with self.files.folder(names) as descriptor:
            rules += self._rules_in(names)
            with os.scandir(descriptor) as found:
                all_entries = sorted(Entry((*names, item.name), _kind(item)) for item in found if item.name != ".git")
        return [entry for entry in all_entries if not _ignored(rules, entry)], rules

    def _rules_above(self, start: Names) -> tuple[Rules, ...]:
        """The rules of the folders above `start`; none of them if they ignore it: it was asked for by its name."""
        rules = self._rules_in((), ".git", "info", "exclude")
        for depth in range(len(start)):
            rules += self._rules_in(start[:depth])
            if _ignored(rules, Entry(start[: depth + 1], "folder")):
                return ()
        return rules

    def _rules_in(self, folder: Names, *file: str) -> tuple[Rules, ...]:
        try:
            data = self.files.read(folder + (file or (".gitignore",)), _LARGEST_IGNORE_FILE)
        except WorkspaceError:  # there is none, or git would not read it either
            return ()
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        return (Rules(len(folder), _spec(lines)),)


def _spec(lines: Sequence[str]) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(_as_pathspec(line) for line in lines if _is_pattern(line))


def _as_pathspec(line: str) -> str:
    line = line.removesuffix("\r")
    # `a/**` is all that is in a. pathspec takes a folder `a/` for a part of that, and git does not: `!` could not bring
    # anything in it back.
    return f"{line.rstrip(' ')}/*" if line.rstrip(" ").endswith("/**") else line


def _matches_itself(pattern: Any, path: str) -> bool:
    """Whether a pattern of pathspec matches `path`, and not only a folder above it, which was asked about before.

    Where it matches a folder, the group "ps_d" is the slash behind it.
    """
    if pattern.include is None:
        return False
    found = pattern.regex.finditer(path)
    return any(each.groupdict().get("ps_d") is None or each.end("ps_d") == len(path) for each in found)


def _is_pattern(line: str) -> bool:
    # git passes over a bad pattern; pathspec refuses the whole file for it.
    try:
        GitIgnoreSpec.from_lines([line.removesuffix("\r")])
    except (ValueError, re.error):
        return False
    return True


def _ignored(rules: Sequence[Rules], entry: Entry) -> bool:
    """As git decides: the innermost folder that says something about it."""
    verdicts = (rule.verdict(entry.names, folder=entry.kind == "folder") for rule in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _kind(item: os.DirEntry[str]) -> str:
    try:
        return kind_of(item.stat(follow_symlinks=False).st_mode)
    except OSError:  # gone since
        return "file"


def _around(line: str, position: int) -> str:
    """The part of a line in which a match begins."""
    if len(line) <= _LINE:
        return line
    start = max(0, position - _LINE // 3)
    cut = line[start : start + _LINE]
    return "..." * (start > 0) + cut + "..." * (start + _LINE < len(line))


def _files_left_out(left_out: Counter[Names]) -> str:
    folders = ", ".join(f"{shown(names)} {count:,}" for names, count in left_out.most_common(_MOST_FOLDERS_NAMED))
    more = ", ..." if len(left_out) > _MOST_FOLDERS_NAMED else ""
    return f"[{left_out.total():,} more files were left out; name a folder to see them: {folders}{more}]"


def _matches_summary(found: int, passed_over: int) -> str:
    summary = f"{found:,} matching lines" if found else "No matches"
    if found > _MOST_MATCHES:
        summary += f", the first {_MOST_MATCHES} of which are shown: narrow the pattern, the path or the files"
    if passed_over:
        size = f"{_LARGEST_FILE // 2**20} MiB"
        summary += f"; {passed_over:,} files were passed over: binary, larger than {size}, or not readable"
    return f"[{summary}.]"
