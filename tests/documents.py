"""The code blocks of the project's Markdown files, and what is said to come out of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

# A block, the comment before it (`<!-- script: ... -->`) if there is one, and the text block straight behind it.
_BLOCK = re.compile(
    r"(?:^<!-- script: (?P<script>.*?) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$"
    r"(?:\n\n(?=```text\n)```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@frozen
class Block:
    """A fenced block.

    Attributes:
        name: file and line, for the name of its test.
        language: what stands behind the fence.
        script: the replies of the Gateway that it talks to, as Python, or "".
        output: what it is said to print, or None.
    """

    name: str
    language: str
    code: str
    script: str
    output: str | None


def blocks(language: str) -> Iterator[Block]:
    """Every block of this language, in all documents."""
    for document in DOCUMENTS:
        text = document.read_text()
        for found in _BLOCK.finditer(text):
            if found["language"] == language:
                line = text.count("\n", 0, found.start("code"))
                yield Block(f"{document.name}:{line}", language, found["code"], found["script"] or "", found["output"])
