"""A Gateway in a process of its own, so that its work counts for nobody. It ends with its standard input."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from steerkit.core.model import Endpoint
from steerkit.testing import Gateway, call, say


def answer(recorded):
    """What the model's name says: `steps-50` calls a tool until it has so many results, `deltas-50` says 50 pieces."""
    kind, _, number = recorded.body["model"].partition("-")
    wanted = int(number)
    if kind == "deltas":
        return say("text" * wanted)
    results = sum(message["role"] == "tool" for message in recorded.body["messages"])
    return call("add", a=results, b=1) if results < wanted - 1 else say("That is the sum.")


@contextlib.contextmanager
def gateway_process() -> Iterator[Endpoint]:
    """The endpoint of a Gateway in another process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    try:
        base_url, key = process.stdout.readline().split()
        yield Endpoint(base_url, key)
    finally:
        process.stdin.close()
        process.wait(10)


if __name__ == "__main__":
    with Gateway(answer) as gateway:
        print(gateway.endpoint.base_url, gateway.endpoint.api_key, flush=True)
        sys.stdin.read()
