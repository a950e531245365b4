"""Standard input for a child: a pipe, or a pipe and then a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.frontends.terminal.child import Pipe


@pytest.fixture(params=["pipe", "pty"])
def line(request: pytest.FixtureRequest) -> Iterator[Pipe]:
    made = Pipe(request.param)
    yield made
    made.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe("pipe")
    yield made
    made.close()
