"""`make bench`: a table of what was measured, the floor of the same run, their ratio, and what we aim for."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable

from tests.bench import editor, micro, streams
from tests.bench.server import gateway_process
from tests.bench.ticking import ticking_process

REPEATS = 5


def row(name: str, measured: str, floor: str, ratio: float | None, aim: float | None) -> None:
    """One line; a `!` marks what misses its aim. The machine's mood is in both columns, so look at the ratio."""
    shown = "" if ratio is None else f"{ratio:.2f} x"
    missed = ratio is not None and aim is not None and ratio > aim
    aimed = "" if aim is None else f"aim {aim:g}"
    print(f"{name:44} {measured:>12} {floor:>12} {shown:>9}  {aimed}{'  !' if missed else ''}")


def heading(text: str, measured: str = "measured", floor: str = "floor") -> None:
    print(f"\n{text:44} {measured:>12} {floor:>12} {'ratio':>9}")


def steps() -> None:
    with gateway_process() as endpoint:

        def once(which: str, count: int, mode: str) -> dict[str, float]:
            command = [sys.executable, "-m", "tests.bench.loops", which]
            command += [endpoint.base_url, endpoint.api_key, str(count), mode]
            return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))

        for count in (50, 400):
            heading(f"ms a step, {count} steps", "steerkit", "requests")
            for mode in ("plain", "stream"):
                # In turns, so that a slow minute of the machine hits both.
                pairs = [(once("steerkit", count, mode), once("floor", count, mode)) for _ in range(REPEATS)]
                for key, what, aim in (("cpu", "CPU", 1.0), ("wall", "wall", None), ("last", "CPU, last steps", None)):
                    if key == "last" and count == 50:
                        continue
                    ours, floor = (statistics.median(pair[side][key] for pair in pairs) for side in (0, 1))
                    ratio = statistics.median(ours[key] / floor[key] for ours, floor in pairs)
                    row(f"  {mode}, {what}", f"{ours:.2f}", f"{floor:.2f}", ratio, 0.5 if key == "last" else aim)


def inside() -> None:
    heading("import, ms", "steerkit", "requests")
    ours, floor = micro.import_seconds("steerkit"), micro.import_seconds("requests")
    row("  import", f"{1000 * ours:.0f}", f"{1000 * floor:.0f}", ours / floor, 0.5)

    heading("steers a second, from 4 threads", "SteerQueue", "list + lock")
    ours, floor = micro.steers_per_second(), micro.list_appends_per_second()
    row("  put", f"{ours:,.0f}", f"{floor:,.0f}", floor / ours, None)

    heading("a request with 100 steers in 1,000 messages", "placing, ms", "encoding, ms")
    ours, floor = micro.steered_request_seconds(), micro.encoding_seconds()
    row("  the whole decorator", f"{1000 * ours:.2f}", f"{1000 * floor:.2f}", ours / floor, None)

    heading("cancel() to wait() returning, ms", "median", "99th of 100")
    times = micro.cancel_seconds()
    late = times[int(len(times) * 0.99)]
    row(
        "  while waiting for the model",
        f"{1000 * statistics.median(times):.1f}",
        f"{1000 * late:.1f}",
        late / 0.02,
        1.0,
    )


def streaming() -> None:
    with ticking_process() as endpoint:
        heading("text pieces a second of CPU", "steerkit", "iter_lines")
        # How many reads the system has to be asked for weighs as much as what is done with them, so both ends of it.
        for name, count, model in (
            ("20,000 that wait in the socket", 20_000, "flood-20000"),
            ("5,000 that come one by one", 5_000, "ticks-5000-0.05"),
        ):
            pairs = [(streams.ours(endpoint, model), streams.by_hand(endpoint, model)) for _ in range(REPEATS)]
            ours, floor = (count / statistics.median(pair[side] for pair in pairs) for side in (0, 1))
            ratio = statistics.median(mine / floor for mine, floor in pairs)
            row(f"  {name}", f"{ours:,.0f}", f"{floor:,.0f}", ratio, 1 / 0.9)

        heading("from the server's write to on_text, ms", "median", "aim")
        for framing, where in (("chunked", endpoint), ("ended by closing", streams.closing(endpoint))):
            late = streams.lateness_seconds(where)
            row(f"  {framing}", f"{1000 * late:.2f}", "1", late / 0.001, 1.0)

        heading("one event of 4 MB, ms of CPU", "steerkit", "aim")
        big = statistics.median(streams.ours(endpoint, f"big-{4 << 20}") for _ in range(REPEATS))
        row("  read and shown", f"{1000 * big:.0f}", "200", big / 0.2, 1.0)

    heading("bytes of JSON made in step 400", "made anew", "whole body")
    made, body = streams.encoded_bytes()
    row("  chat completions", f"{made:,}", f"{body:,}", made / body, None)


def in_the_editor() -> None:
    with ticking_process() as endpoint:
        heading("the agent for editors, ms", "measured", "aim")
        started = editor.start_seconds(endpoint)
        row("  from its start to initialize", f"{1000 * started:.0f}", "250", started / 0.25, 1.0)
        times = editor.steer_seconds(endpoint)
        late = times[int(len(times) * 0.99)]
        row("  a steer to `injected`, median", f"{1000 * statistics.median(times):.2f}", "", None, None)
        row("  a steer to `injected`, 99th of 100", f"{1000 * late:.2f}", "5", late / 0.005, 1.0)
    with gateway_process() as endpoint:
        piece = editor.delta_seconds(endpoint)
        row("  CPU of one piece of text", f"{1000 * piece:.3f}", "0.1", piece / 0.0001, 1.0)


def main() -> None:
    parts: dict[str, Callable[[], None]] = {
        "steps": steps,
        "inside": inside,
        "streams": streaming,
        "editor": in_the_editor,
    }
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
