"""Costs inside one process: the queue, a request full of steers, a cancel, and the import."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import threading
import time

from steerkit import Message, Request, Response, Runner, Spec, ToolCall, assistant, tool_result, user
from steerkit.core.message import Text
from steerkit.core.model import ModelRef
from steerkit.core.steer_queue import SteerQueue
from steerkit.middleware.steering import Steering
from steerkit.models import openai_chat
from steerkit.patterns import ReAct
from steerkit.testing import Gateway, say


def import_seconds(module: str) -> float:
    """What `import module` takes beyond an empty interpreter."""

    def run(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    return statistics.median(run(f"import {module}") - run("pass") for _ in range(15))


def puts_per_second(queue_put, threads: int = 4, each: int = 20_000) -> float:
    go = threading.Event()

    def put():
        go.wait()
        for _ in range(each):
            queue_put()

    workers = [threading.Thread(target=put) for _ in range(threads)]
    for worker in workers:
        worker.start()
    started = time.perf_counter()
    go.set()
    for worker in workers:
        worker.join()
    return threads * each / (time.perf_counter() - started)


def steers_per_second() -> float:
    queue = SteerQueue(limit=10**9)
    content = (Text("look there"),)
    return puts_per_second(lambda: queue.put(content))


def list_appends_per_second() -> float:
    """The floor: a list behind a lock."""
    lock = threading.Lock()
    waiting: list[str] = []

    def put():
        with lock:
            waiting.append("look there")

    return puts_per_second(put)


class Instant:
    """A model that answers at once."""

    def complete(self, request: Request, on_text=None) -> Response:
        return Response(assistant("ok"))


def conversation(length: int) -> list[Message]:
    messages = [user("begin")]
    for number in range(length // 2):
        call = ToolCall(f"call_{number}", "search", '{"query": "vault"}')
        messages += [assistant("", [call]), tool_result(call.id, "vault.py mentions it")]
    return messages[:length]


def steered_request_seconds(steers: int = 100, length: int = 1000) -> float:
    """One request that carries `steers` pinned steers, spread over a conversation of `length` messages."""
    queue = SteerQueue()
    steering = Steering(Instant(), queue, "label", itertools.count(), lambda event: None)
    messages = conversation(length)
    model = ModelRef("m")
    for number in range(1, steers + 1):
        queue.put((Text("look there"),))
        steering.complete(Request(model, tuple(messages[: number * length // steers // 2 * 2 - 1])))
    request = Request(model, tuple(messages))
    times = []
    for _ in range(50):
        started = time.perf_counter()
        steering.complete(request)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def encoding_seconds(length: int = 1100) -> float:
    """The floor: the JSON of a conversation of that length, which every hand-written loop makes for every request."""
    messages = [
        {"role": message.role, "content": message.text or None, "tool_call_id": message.tool_call_id}
        for message in conversation(length)
    ]
    times = []
    for _ in range(50):
        started = time.perf_counter()
        json.dumps(messages)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def cancel_seconds(runs: int = 300) -> list[float]:
    """From `cancel()` to `wait()` returning, while the model has not answered: sorted."""
    times = []
    gate = threading.Event()
    with Gateway(lambda recorded: say("never").after(gate)) as gateway:
        runner = Runner(openai_chat, [ReAct()])
        for number in range(1, runs + 1):
            run = runner.start(Spec("m", "react", 2), [user("hello")], gateway.endpoint)
            gateway.wait_for_requests(number)
            started = time.perf_counter()
            run.cancel()
            try:
                run.wait()
            except Exception:
                times.append(time.perf_counter() - started)
    assert len(times) == runs
    return sorted(times)
