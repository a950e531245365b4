"""Commands: bounded in time and output, and nothing of them is left behind.

A FIFO tells what still lives: every process of a command holds its end for writing, and reading comes to an end only
when the last of them is dead.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steerkit.core.cancel import Cancellation
from steerkit.tools.run_process import without_keys
from steerkit.tools.workspace import workspace
from tests.conftest import PATIENCE
from tests.tools.workspace_calls import do, outcome, refusal, text

FAMILY = "exec 3>alive; (sleep 1000 & sleep 1000) & echo up >&3; "


@pytest.fixture
def alive(tmp_path: Path) -> Iterator[int]:
    """The reading end of the FIFO `alive` in the workspace."""
    os.mkfifo(tmp_path / "alive")
    descriptor = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


def _read(descriptor: int) -> bytes:
    assert select.select([descriptor], [], [], PATIENCE)[0], "a process that should be dead is alive"
    return os.read(descriptor, 100)


def _run(root: Path, command: str, cancellation: Cancellation | None = None, **limits: Any) -> str:
    return text(outcome(root, "run_command", {"command": command}, cancellation, **limits))


# ---- what it answers


def test_a_command_answers_with_its_exit_code_and_its_output(tmp_path: Path) -> None:
    assert do(tmp_path, "run_command", command="echo out; echo err >&2; exit 3") == "[Exit code 3.]\nout\nerr\n"


def test_a_command_works_in_the_root(tmp_path: Path) -> None:
    assert do(tmp_path, "run_command", command="pwd -P") == f"[Exit code 0.]\n{tmp_path.resolve()}\n"


def test_a_command_that_a_signal_ended_says_so(tmp_path: Path) -> None:
    assert do(tmp_path, "run_command", command="kill -9 $$") == "[Ended by signal 9.]\n"


def test_a_command_that_reads_its_input_finds_none(tmp_path: Path) -> None:
    assert do(tmp_path, "run_command", command="cat; echo end") == "[Exit code 0.]\nend\n"


def test_a_command_does_not_read_what_is_typed_for_this_process(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"typed for another\n")
    os.close(writing)
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        assert do(tmp_path, "run_command", command="cat") == "[Exit code 0.]\n"
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(reading)


def test_output_that_is_no_utf8_is_shown_as_well_as_it_can_be(tmp_path: Path) -> None:
    assert do(tmp_path, "run_command", command=r"printf 'caf\351'") == "[Exit code 0.]\ncaf\ufffd"


def test_of_much_output_the_start_and_the_end_are_kept_and_it_is_said_how_much_is_not(tmp_path: Path) -> None:
    whole = "".join(f"{number}\n" for number in range(1, 50_001))
    answer = _run(tmp_path, "seq 50000", output_limit=1000)
    assert answer == (
        f"[Exit code 0.]\n{whole[:500]}\n[{len(whole) - 1000:,} bytes were left out here.]\n{whole[-500:]}"
    )


def test_output_that_just_fits_is_whole(tmp_path: Path) -> None:
    assert _run(tmp_path, "printf 0123456789", output_limit=10) == "[Exit code 0.]\n0123456789"


def test_a_command_that_closed_its_output_is_waited_for(tmp_path: Path) -> None:
    answer = do(tmp_path, "run_command", command="exec >&- 2>&-; sleep 0.2; touch done; exit 4")
    assert answer == "[Exit code 4.]\n"
    assert (tmp_path / "done").exists()


def test_a_command_with_a_nul_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "run_command", command="echo \0") == "A command line has no NUL in it."


def test_a_command_that_cannot_be_started_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert "could not be started" in refusal(tmp_path, "run_command", command="x" * 3_000_000)


@pytest.mark.parametrize("limit", ["command_timeout", "search_timeout", "output_limit"])
def test_a_limit_of_nothing_is_refused(tmp_path: Path, limit: str) -> None:
    limits: dict[str, Any] = {limit: 0}
    with pytest.raises(ValueError, match="are more than 0"):
        workspace(tmp_path, **limits)


# ---- what it is given


def test_a_command_sees_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEERKIT_API_KEY", "AWS_ACCESS_KEY_ID", "github_token", "PGPASSWORD", "MY_SECRET"):
        monkeypatch.setenv(name, "do-not-show")
    monkeypatch.setenv("KEYBOARD", "shown")
    answer = do(tmp_path, "run_command", command="env")
    assert "do-not-show" not in answer
    assert "KEYBOARD=shown" in answer


def test_a_command_sees_the_variables_that_it_is_given(tmp_path: Path) -> None:
    assert _run(tmp_path, "echo $API_KEY", environment={"API_KEY": "mine"}) == "[Exit code 0.]\nmine\n"


def test_ordinary_variables_are_no_keys() -> None:
    ordinary = {"PATH": "/bin", "HOME": "/root", "LANG": "C", "MONKEYS": "2", "KEYMAP": "us"}
    assert without_keys(ordinary) == ordinary


# ---- how it ends


def test_when_the_time_is_up_all_that_a_command_started_is_dead(tmp_path: Path, alive: int) -> None:
    answer = _run(tmp_path, FAMILY + "wait", command_timeout=1.0)
    assert answer.startswith("[It had not ended after 1 s and was stopped")
    assert _read(alive) == b"up\n"
    assert _read(alive) == b""


def test_a_cancel_ends_all_that_a_command_started(tmp_path: Path, alive: int) -> None:
    cancellation, answers = Cancellation(), list[str]()
    thread = threading.Thread(
        target=lambda: answers.append(_run(tmp_path, FAMILY + "wait", cancellation)), name="steerkit-test", daemon=True
    )
    thread.start()
    assert _read(alive) == b"up\n"
    cancellation.request()
    thread.join(PATIENCE)
    assert answers[0].startswith("[The run was cancelled")
    assert _read(alive) == b""


def test_a_command_has_a_session_of_its_own(tmp_path: Path) -> None:
    # So it has no terminal either, to which it could write or from which it could read a password.
    pid, session = do(tmp_path, "run_command", command="cut -d' ' -f1,6 /proc/$$/stat").split("\n")[1].split()
    assert session == pid


def test_what_a_command_leaves_in_the_background_is_ended_with_it(tmp_path: Path, alive: int) -> None:
    assert do(tmp_path, "run_command", command=FAMILY + "echo done") == "[Exit code 0.]\ndone\n"
    assert _read(alive) == b"up\n"
    assert _read(alive) == b""


def test_a_command_that_will_not_end_is_killed(tmp_path: Path, alive: int) -> None:
    stubborn = "trap '' TERM; exec 3>alive; echo up >&3; while :; do sleep 1000; done"
    assert "was stopped" in _run(tmp_path, stubborn, command_timeout=0.5)
    assert _read(alive) == b"up\n"
    assert _read(alive) == b""


def test_a_command_may_clean_up_when_its_time_is_up(tmp_path: Path) -> None:
    tidy = "trap 'echo cleaned; exit' TERM; echo up; sleep 1000 & wait"
    assert _run(tmp_path, tidy, command_timeout=0.5).endswith("\nup\ncleaned\n")


def test_a_command_that_never_stops_talking_is_stopped(tmp_path: Path) -> None:
    answer = _run(tmp_path, "yes", command_timeout=0.3, output_limit=1000)
    assert answer.startswith("[It had not ended after 0.3 s")
    assert len(answer) < 1300


def test_a_daemon_that_left_the_group_is_not_waited_for(tmp_path: Path) -> None:
    daemon = "setsid sh -c 'echo $$ >pid; exec sleep 1000' & while ! test -s pid; do :; done; echo done"
    answers: list[str] = []
    thread = threading.Thread(
        target=lambda: answers.append(_run(tmp_path, daemon, command_timeout=PATIENCE)), name="steerkit-test"
    )
    thread.start()
    thread.join(PATIENCE)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    thread.join(PATIENCE)
    assert answers == ["[Exit code 0.]\ndone\n"]
