"""Every example runs, and prints what its docstring says."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap

import pytest

from tests.documents import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def said_to_print(source: str) -> str | None:
    """The indented text behind `It prints:` in the docstring."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    _, found, text = docstring.partition("It prints:\n\n")
    return textwrap.dedent(text).rstrip() + "\n" if found else None


def test_there_are_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_its_docstring_says(path, monkeypatch):
    for name in ("STEERKIT_BASE_URL", "STEERKIT_MODEL", "STEER_FROM_STDIN"):
        monkeypatch.delenv(name, raising=False)
    expected = said_to_print(path.read_text())
    assert expected, f"{path.name} does not say what it prints"
    done = subprocess.run(
        [sys.executable, str(path)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout == expected
