"""The tools with which an agent works in one folder: it reads, lists, searches, writes, edits and runs commands.

The file tools cannot leave the folder (`rooted_files.py`). A command can: it has the rights of this process. That is
why it needs approval, as everything does that changes something.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from attrs import frozen

from steerkit.core.tool import Tool, ToolContext
from steerkit.tools.file_text import LARGEST_FILE, decoded, edited, encoded, page
from steerkit.tools.function import tool
from steerkit.tools.rooted_files import RootedFiles, WorkspaceError, shown
from steerkit.tools.run_process import Ended, run_process, without_keys
from steerkit.tools.search_files import REFUSED, search_process

__all__ = ["WorkspaceError", "workspace"]

FilePath = Annotated[str, "A path from the root of the workspace."]
FolderPath = Annotated[str, "A folder, from the root of the workspace."]
FilePatterns = Annotated[str, "Only files that match this, written as in .gitignore: *.py, or src/**/*.md. Empty: all."]


def workspace(
    root: str | Path,
    *,
    command_timeout: float = 120.0,
    search_timeout: float = 20.0,
    output_limit: int = 30_000,
    environment: Mapping[str, str] | None = None,
) -> list[Tool]:
    """The tools for one folder: `read_file`, `list_files`, `search`; and with approval `write_file`, `edit_file`,
    `run_command`. Each may be called from any thread.

    No file tool leaves the folder, whatever happens to it meanwhile. Listing and searching pass over what git ignores.
    Everything is bounded, and what was left out is said in the answer.

    Args:
        root: an existing folder.
        command_timeout: seconds until a command is ended, with everything that it started.
        search_timeout: seconds until a search or a listing is ended.
        output_limit: how much one answer may hold, in characters of a file or bytes of a command's output.
        environment: the variables that commands see. By default those of this process, without the ones whose name
            says that they hold a key, a token or a password.

    Raises:
        ValueError: `root` is no folder, or a limit is not positive.
        OSError: the system has no calls to open files relative to a folder (Windows).
    """
    if min(command_timeout, search_timeout, output_limit) <= 0:
        raise ValueError("A workspace's command_timeout, search_timeout and output_limit are more than 0.")
    variables = without_keys(os.environ) if environment is None else dict(environment)
    tools = _Tools(RootedFiles(root), command_timeout, search_timeout, output_limit, variables)
    with_approval = tool(needs_approval=True)
    return [
        tool(tools.read_file),
        tool(tools.list_files),
        tool(tools.search),
        with_approval(tools.write_file),
        with_approval(tools.edit_file),
        with_approval(tools.run_command),
    ]


@frozen
class _Tools:
    """The functions behind the tools. Their docstrings are what the model reads."""

    _files: RootedFiles
    _command_timeout: float
    _search_timeout: float
    _output_limit: int
    _environment: Mapping[str, str]

    def read_file(self, path: FilePath, first_line: int = 1, last_line: int | None = None) -> str:
        """Read a text file, or some of its lines. The first line of the answer says which they are and what was left
        out; below it they stand as in the file, without numbers.

        Args:
            first_line: the first line to read, from 1.
            last_line: the last line to read; by default the end of the file.
        """
        names = self._files.names(path)
        text = decoded(self._files.read(names, LARGEST_FILE), names)
        return page(text, names, first_line, last_line, self._output_limit)

    def list_files(self, context: ToolContext, path: FolderPath = ".", files: FilePatterns = "") -> str:
        """List the files in a folder and in all folders below it, without those that git ignores."""
        return self._look(context, path, None, files)

    def search(
        self,
        context: ToolContext,
        pattern: Annotated[str, "A regular expression of Python, matched in each line; (?i) ignores case."],
        path: Annotated[str, "A folder or a file, from the root of the workspace."] = ".",
        files: FilePatterns = "",
    ) -> str:
        """Search the files in a folder and in all folders below it, without those that git ignores. The answer has a
        line for each line that matches: path:line: text."""
        return self._look(context, path, pattern, files)

    def write_file(self, path: FilePath, content: Annotated[str, "The whole new content."]) -> str:
        """Write a text file: a new one, or a whole new content for one that is there. Missing folders are made."""
        names = self._files.names(path)
        data = encoded(content, names)
        self._files.write(names, data)
        return f"{shown(names)} has {len(data):,} bytes now."

    def edit_file(
        self,
        path: FilePath,
        old_text: Annotated[str, "The text to replace, exactly as in the file; it occurs there once."],
        new_text: Annotated[str, "What stands there afterwards."],
    ) -> str:
        """Replace one piece of a text file by another. Give as many lines of it as make it occur only once."""
        names = self._files.names(path)
        text = decoded(self._files.read(names, LARGEST_FILE), names)
        changed = edited(text, old_text, new_text, names)
        self._files.write(names, changed.encode("utf-8", "surrogateescape"))
        return f"{shown(names)} was changed."

    def run_command(self, context: ToolContext, command: Annotated[str, "A command line for /bin/sh."]) -> str:
        """Run a shell command in the root of the workspace, with nothing on its standard input. It has to end: when it
        does, or when its time is up, what it started in the background is ended too."""
        if "\0" in command:
            raise WorkspaceError("A command line has no NUL in it.")
        arguments = ["/bin/sh", "-c", command]
        ended = self._run(arguments, self._files.root, self._environment, self._command_timeout, context)
        return f"[{_fate(ended, self._command_timeout)}]\n{ended.output}"

    def _look(self, context: ToolContext, path: str, pattern: str | None, files: str) -> str:
        self._files.names(path)  # refused before a process is started
        order = search_process(self._files.root, path, pattern, files)
        ended = self._run(order, "/", without_keys(os.environ), self._search_timeout, context)
        if ended.why != "exit":
            cure = "name a smaller folder" if pattern is None else "use a simpler pattern, or name a smaller folder"
            return f"{ended.output}[{_fate(ended, self._search_timeout)} Not all was looked at: {cure}.]"
        if ended.code == REFUSED:
            raise WorkspaceError(ended.output.rstrip("\n"))
        if ended.code:
            raise WorkspaceError(f"It broke down: {ended.output}")
        return ended.output.rstrip("\n")

    def _run(
        self,
        arguments: list[str],
        folder: str,
        environment: Mapping[str, str],
        timeout: float,
        context: ToolContext,
    ) -> Ended:
        try:
            return run_process(
                arguments,
                folder=folder,
                environment=environment,
                timeout=timeout,
                limit=self._output_limit,
                cancelled=context.cancelled,
            )
        except (OSError, UnicodeEncodeError) as error:
            raise WorkspaceError(f"It could not be started: {error}.") from error


def _fate(ended: Ended, timeout: float) -> str:
    if ended.why == "timeout":
        return f"It had not ended after {timeout:g} s and was stopped, with all that it had started."
    if ended.why == "cancelled":
        return "The run was cancelled, and this was stopped, with all that it had started."
    return f"Exit code {ended.code}." if ended.code >= 0 else f"Ended by signal {-ended.code}."
