"""Everything that the documents show is run."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess

import pytest

from steerkit.testing import Gateway, call, fail, say
from tests.documents import DOCUMENTS, ROOT, Block, blocks

PYTHON = list(blocks("python"))
CONSOLE = list(blocks("console"))


def test_the_documents_have_blocks():
    assert {block.name.split(":")[0] for block in PYTHON} >= {"README.md", "steering.md"}


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.name)
def test_a_python_block_runs_and_prints_what_the_document_says(block: Block, monkeypatch, tmp_path):
    for name in ("README.md", "LICENSE"):
        (tmp_path / name).write_text("a file to read\n")
    monkeypatch.chdir(tmp_path)
    script = eval(f"[{block.script}]", {"say": say, "call": call, "fail": fail})
    with Gateway(script) as gateway, open("/dev/null") as nothing:
        monkeypatch.setenv("STEERKIT_BASE_URL", gateway.endpoint.base_url)
        monkeypatch.setenv("STEERKIT_API_KEY", gateway.endpoint.api_key)
        monkeypatch.setattr("sys.stdin", nothing)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, block.name, "exec"), {"__name__": "__main__"})
        assert len(gateway.requests) == len(script), "the script in the comment is longer than what the block asks"
    if block.output is not None:
        assert printed.getvalue() == block.output


@pytest.mark.parametrize("block", list(blocks("json")), ids=lambda block: block.name)
def test_a_json_block_is_json(block: Block):
    json.loads(block.code)


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.name)
def test_a_console_block_names_targets_that_make_knows(block: Block):
    commands = [line.removeprefix("$ ") for line in block.code.splitlines() if line.startswith("$ ")]
    assert commands
    for command in commands:
        done = subprocess.run([*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, timeout=20)
        assert command.startswith("make "), command
        assert done.returncode == 0, done.stderr


def test_every_path_in_the_readme_exists():
    readme = (ROOT / "README.md").read_text()
    linked = [path for path in re.findall(r"\]\(([^)#]+)\)", readme) if "://" not in path]
    assert linked
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_the_tree_in_the_readme_is_the_tree_of_the_package():
    tree = re.search(r"```text\nsteerkit/\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert tree
    named = set(re.findall(r"^  (\S+)", tree[1], re.MULTILINE))
    package = ROOT / "steerkit"
    there = {f"{path.name}/" if path.is_dir() else path.name for path in package.iterdir()}
    assert named == there - {"__pycache__/", "py.typed"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_tells_anybody_to_install_a_strangers_package(document):
    assert not re.search(r"pip install (-\S+ )*['\"]?steerkit(?!-sdk)\b", document.read_text())
