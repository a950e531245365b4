"""For examples: the same program against a script, or against a real model."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from steerkit.core.model import Endpoint
from steerkit.testing.gateway import Gateway


@contextlib.contextmanager
def gateway_or_env(script: Any) -> Iterator[tuple[Endpoint, str]]:
    """An endpoint and a model name: those of `STEERKIT_BASE_URL`, `STEERKIT_API_KEY` and `STEERKIT_MODEL`.

    Without the first and the last of these it is a Gateway with this script: no key, no network.
    """
    model = os.environ.get("STEERKIT_MODEL", "").strip()
    if model and os.environ.get("STEERKIT_BASE_URL"):
        yield Endpoint.from_env(), model
        return
    with Gateway(script) as gateway:
        yield gateway.endpoint, "scripted"
