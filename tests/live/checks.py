"""Run functions as checks: a line for each, and an exit code for all."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable


def run_checks(title: str, checks: Iterable[Callable[[], str]]) -> None:
    """Call each check; what it returns is shown behind its name. Exits with 1 if one raises."""
    failed = 0
    for check in checks:
        name = check.__name__.replace("_", " ")
        try:
            print(f"PASS {title}: {name} ({check()})", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL {title}: {name}", flush=True)
            traceback.print_exc()
    sys.exit(1 if failed else 0)
