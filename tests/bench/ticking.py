"""A chat-completions server in a process of its own that streams at a pace, and says in each piece when it was sent.

The model's name says what: `ticks-COUNT-MILLISECONDS` (each text is the monotonic clock, which all processes share),
`flood-COUNT` (the same, but made before and sent in one write), `big-BYTES` (one event with a text of so many bytes).
A path that begins with /close ends bodies by closing.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import subprocess
import sys
import time
from collections.abc import Iterator

from steerkit.core.model import Endpoint

_END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        closing = self.path.startswith("/close")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header(*(("Connection", "close") if closing else ("Transfer-Encoding", "chunked")))
        self.end_headers()
        writes = (data if closing else b"%x\r\n%b\r\n" % (len(data), data) for data in self.events(body["model"]))
        with contextlib.suppress(OSError):
            for data in [b"".join(writes)] if body["model"].startswith("flood") else writes:
                self.wfile.write(data)
            if not closing:
                self.wfile.write(b"0\r\n\r\n")

    def events(self, model: str) -> Iterator[bytes]:
        kind, *numbers = model.split("-")
        if kind == "big":
            yield event("x" * int(numbers[0]))
        else:
            for _ in range(int(numbers[0])):
                yield event(f"{time.monotonic()} ")
                if kind == "ticks":
                    time.sleep(float(numbers[1]) / 1000)
        yield _END

    def log_message(self, *_arguments: object) -> None:
        pass


def event(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return (
        b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
    )


@contextlib.contextmanager
def ticking_process() -> Iterator[Endpoint]:
    """The endpoint of such a server; it ends with its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.ticking"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    try:
        yield Endpoint(f"http://127.0.0.1:{process.stdout.readline().strip()}/v1", "key")
    finally:
        process.stdin.close()
        process.wait(10)


if __name__ == "__main__":
    import threading

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_address[1], flush=True)
        sys.stdin.read()
        server.shutdown()
