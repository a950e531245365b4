"""The house as it is meant to be: who may import whom, and how large a room may get."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import steerkit

PACKAGE = Path(steerkit.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(PACKAGE.rglob("*.py"))


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def _imports(file: Path) -> Iterator[tuple[str, int]]:
    """The top-level names of what a file imports, anywhere in it, and the line."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{_name(file)}:{node.lineno} is a relative import"
            yield (node.module or "").split(".")[0], node.lineno


def test_the_layers_import_only_what_they_may() -> None:
    # In a process of its own, for the linter keeps what it has read of a package.
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports('setup.cfg', no_cache=True))"
    lint = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout + lint.stderr
    assert "0 broken" in lint.stdout


# Loading these takes longer than the rest of `import steerkit`, and not every run needs them.
HEAVY = [
    "requests",
    "urllib3",
    "pydantic",
    "jsonschema",
    "docstring_parser",
    "steerkit.frontends",
    "steerkit.models",
    "steerkit.patterns",
    "steerkit.testing",
    "asyncio",
]


def test_import_steerkit_loads_nothing_heavy() -> None:
    code = f"import sys, steerkit; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_only_models_talk_http_with_a_library(file: Path) -> None:
    if file.is_relative_to(PACKAGE / "models"):
        return
    assert [(name, line) for name, line in _imports(file) if name in ("requests", "urllib3")] == []


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_no_event_loop_is_used_anywhere(file: Path) -> None:
    assert [(name, line) for name, line in _imports(file) if name in ("asyncio", "anyio", "trio")] == []


def test_only_a_front_ends_command_chooses_models_and_patterns() -> None:
    chosen = ("steerkit.models", "steerkit.patterns", "steerkit.stores", "steerkit.testing")
    for file in sorted((PACKAGE / "frontends").rglob("*.py")):
        if file.name not in ("cli.py", "__main__.py"):
            assert [name for name in chosen if name in file.read_text()] == [], _name(file)


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_a_file_is_short_enough_to_be_read_in_one_go(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 320


@pytest.mark.parametrize("file", [file for file in FILES if file.name != "__init__.py"], ids=_name)
def test_a_module_begins_with_what_it_is_for(file: Path) -> None:
    docstring = ast.get_docstring(ast.parse(file.read_text()))
    assert docstring


def test_core_starts_no_thread_and_reads_no_file() -> None:
    for file in sorted((PACKAGE / "core").glob("*.py")):
        source = file.read_text()
        assert "threading.Thread(" not in source, _name(file)
        assert "open(" not in source.replace("urlopen(", ""), _name(file)
        assert {name for name, _ in _imports(file)}.isdisjoint({"socket", "subprocess", "pathlib", "queue"}), _name(
            file
        )


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {file.parent for file in FILES}
    assert [_name(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_the_package_says_that_it_has_types() -> None:
    assert (PACKAGE / "py.typed").exists()
