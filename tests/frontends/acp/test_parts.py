"""The outbox, the lines of the input and the files, each alone."""

from __future__ import annotations

import os
import resource
import tempfile
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerkit import assistant, user
from steerkit.frontends.acp import connection
from steerkit.frontends.acp.outbox import ROOM, Outbox
from steerkit.frontends.acp.protocol import RpcError, content_blocks, message_parts, wants_prompt_required
from steerkit.frontends.acp.store import Store
from steerkit.frontends.acp.updates import plan_update
from tests.conftest import PATIENCE, in_thread

ID = "0" * 32

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "uri", "resource", "blob", "data", "steering"]), inner)
    ),
    max_leaves=8,
)


def waiting_for_room(outbox: Outbox) -> threading.Thread:
    thread = threading.Thread(target=outbox.wait_for_room, name="steerkit-test", daemon=True)
    thread.start()
    return thread


def test_a_full_outbox_holds_workers_until_enough_has_left() -> None:
    outbox = Outbox()
    outbox.put(b"x" * (ROOM + 1))
    thread = waiting_for_room(outbox)
    thread.join(0.05)
    assert thread.is_alive()
    outbox.put(b"y")  # never waits
    data = outbox.take()
    assert data is not None
    outbox.written(len(data))
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.parametrize("end", [Outbox.close, Outbox.discard])
def test_the_end_of_an_outbox_lets_everybody_go(end: object) -> None:
    outbox = Outbox()
    outbox.put(b"x" * (ROOM + 1))
    thread = waiting_for_room(outbox)
    end(outbox)  # type: ignore[operator]
    thread.join(PATIENCE)
    assert not thread.is_alive()
    outbox.put(b"late")
    assert b"late" not in (outbox.take() or b"")


def test_a_closed_outbox_gives_out_what_waits_and_then_none() -> None:
    outbox = Outbox()
    outbox.put(b"a")
    outbox.put(b"b")
    outbox.close()
    assert [outbox.take(), outbox.take()] == [b"ab", None]


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.integers(1, 9))
def test_lines_are_whole_however_they_are_cut(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"\n" for line in lines) + b"no end"
    read, write = os.pipe()
    with os.fdopen(write, "wb", buffering=0) as file:
        for start in range(0, len(data), size):
            file.write(data[start : start + size])
    try:
        assert list(connection._lines(read)) == lines
    finally:
        os.close(read)


def test_a_line_that_is_too_long_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LONGEST_LINE", 1000)
    read, write = os.pipe()

    def flood() -> None:
        with os.fdopen(write, "wb", buffering=0) as file:
            for _ in range(50):
                file.write(b"x" * 100_000)
            file.write(b"\nnext\n")

    writer = threading.Thread(target=flood, name="steerkit-test", daemon=True)
    writer.start()
    tracemalloc.start()
    try:
        assert list(connection._lines(read)) == [None, b"next"]
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
        os.close(read)
    writer.join(PATIENCE)


@given(JSON)
def test_params_of_any_shape_are_taken_or_refused_with_a_code(value: object) -> None:
    for check in (
        lambda: wants_prompt_required({"_meta": value}),
        lambda: message_parts(content_blocks({"prompt": value}, empty=True), images=True),
        lambda: message_parts(content_blocks({"prompt": [value]}, empty=False), images=False),
    ):
        try:
            check()
        except RpcError as error:
            assert error.code in (-32602, -32600)


@pytest.mark.parametrize(
    ("text", "steps"),
    [("1. a\n2) b\n", ["a", "b"]), ("Plan:\n- a\n  * b", ["a", "b"]), ("Just do it.\n", ["Just do it."])],
)
def test_a_plan_is_cut_into_its_steps(text: str, steps: list[str]) -> None:
    assert [entry["content"] for entry in plan_update(text, "pending")["entries"]] == steps


# ---- the store


def test_a_file_amounts_to_what_was_recorded_last(tmp_path: Path) -> None:
    log = Store(tmp_path).create(ID, "/x")
    one, two, three = user("one"), assistant("two"), user("three")
    log.record([one, two])
    log.record([one, two, three])
    log.record([one, three], [two])  # a pattern may shorten its history
    _, saved = Store(tmp_path).open(ID)
    assert (saved.cwd, saved.messages, saved.held) == ("/x", (one, three), (two,))


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    log = Store(tmp_path).create(ID, "/x")
    messages = [user("x" * 1000)]
    log.record(messages)
    size = (tmp_path / f"{ID}.jsonl").stat().st_size
    log.record(messages)
    assert (tmp_path / f"{ID}.jsonl").stat().st_size == size
    log.record([*messages, assistant("y")])
    assert (tmp_path / f"{ID}.jsonl").stat().st_size < size + 200


@given(st.data())
def test_a_file_that_was_cut_anywhere_is_whole_up_to_there(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = Store(folder).create(ID, "/x")
        path = folder / f"{ID}.jsonl"
        messages = [user("één"), assistant("two"), user("three")]
        header = path.stat().st_size
        for count in range(1, 4):
            log.record(messages[:count])
        path.write_bytes(path.read_bytes()[: data.draw(st.integers(header, path.stat().st_size))])
        reopened, saved = Store(folder).open(ID)
        assert list(saved.messages) == messages[: len(saved.messages)]
        reopened.record([*saved.messages, user("four")])
        assert Store(folder).open(ID)[1].messages == (*saved.messages, user("four"))


def test_a_record_that_finds_no_room_leaves_the_file_whole_and_is_made_good(tmp_path: Path) -> None:
    log = Store(tmp_path).create(ID, "/x")
    path = tmp_path / f"{ID}.jsonl"
    log.record([first := user("one")])

    def with_a_full_disk() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, hard))
        try:
            log.record([first, user("x" * 1000)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    size = path.stat().st_size
    in_thread(with_a_full_disk)
    assert path.stat().st_size == size
    log.record([first, user("two")])
    assert Store(tmp_path).open(ID)[1].messages == (first, user("two"))


def test_foreign_files_do_not_break_the_list(tmp_path: Path) -> None:
    Store(tmp_path).create(ID, "/x")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "foreign.jsonl").write_text("5\n6\n")
    (tmp_path / "folder.jsonl").mkdir()
    assert [listed.session_id for listed in Store(tmp_path).list()] == [ID]
