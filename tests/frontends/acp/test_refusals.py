"""What a steer or a prompt is refused for: with its code, idle and in the middle of a turn, and of no effect."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.frontends.acp.client import OPT_IN, PROMPT_REQUIRED, STEERING, AcpError, Client, said, text
from tests.frontends.acp.conftest import Spawn
from tests.frontends.acp.desk import Desk

IMAGE = {"type": "image", "data": base64.b64encode(b"\x89PNG").decode(), "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}


def refused_idle_and_mid_turn(client: Client, desk: Desk, session: str, params: dict[str, Any]) -> set[int]:
    """The codes; fails if the refusals have any effect."""
    codes = {client.error(STEERING, params).code}
    prompt = client.prompt(session, f"TASK-{session}")
    held = desk.next(f"TASK-{session}")
    codes.add(client.error(STEERING, params).code)
    held.reply("one")
    assert prompt.wait()["stopReason"] == "end_turn"
    assert len(desk.with_token(f"TASK-{session}")) == 1
    return codes


@pytest.mark.parametrize("value", ["x", "", None, 1, True, {}, [], ["promptRequired"]])
def test_steer_bad_idle_behavior(client: Client, desk: Desk, session: str, value: Any) -> None:
    params = {**said(session, "x"), "_meta": {"steering": {"idleBehavior": value}}}
    assert refused_idle_and_mid_turn(client, desk, session, params) == {-32602}


@pytest.mark.parametrize("meta", ["x", 5, [], True, {"steering": "x"}, {"steering": None}, {"steering": []}])
def test_steer_meta_odd_shapes(client: Client, session: str, meta: Any) -> None:
    assert client.error(STEERING, {**said(session, "x"), "_meta": meta}).code == -32602


@pytest.mark.parametrize(
    "meta",
    [None, {}, {"other": 1}, {"steering": {}}, {"steering": {"unknown": 1}}, {"sessionId": "evil", "prompt": []}],
    ids=["null", "empty", "other_keys", "empty_steering", "unknown_in_steering", "named_like_params"],
)
def test_steer_meta_other_keys_are_as_no_opt_in(client: Client, desk: Desk, session: str, meta: Any) -> None:
    assert client.steer(session, f"STEER-{session}", _meta=meta).wait() == {"outcome": "startedNewTurn"}
    desk.next(f"STEER-{session}").reply("fine")
    client.until(lambda: client.said(session) == "fine", "its output")


@pytest.mark.parametrize("more", [{}, OPT_IN])
def test_steer_unknown_session(client: Client, more: dict[str, Any]) -> None:
    error = client.error(STEERING, {**said("no-such", "x"), **more})
    assert (error.code, error.data) == (-32002, {"sessionId": "no-such"})


@pytest.mark.parametrize("session_id", [None, 5, "", [], {}])
def test_steer_bad_session_id(client: Client, session_id: Any) -> None:
    assert client.error(STEERING, {"sessionId": session_id, "prompt": text("x")}).code == -32602


def test_steer_without_a_session_id(client: Client) -> None:
    assert client.error(STEERING, {"prompt": text("x")}).code == -32602


@pytest.mark.parametrize("params", [[], "x", 5, True])
def test_params_that_are_no_object(client: Client, params: Any) -> None:
    assert client.error(STEERING, params).code == -32602


MALFORMED: dict[str, Any] = {
    "null": None,
    "string": "x",
    "object": {"type": "text", "text": "x"},
    "null_block": [None],
    "number_block": [5],
    "empty_block": [{}],
    "type_is_no_string": [{"type": 5, "text": "x"}],
    "unknown_type": [{"type": "video", "text": "x"}],
    "text_without_text": [{"type": "text"}],
    "text_is_no_string": [{"type": "text", "text": 5}],
    "link_without_uri": [{"type": "resource_link", "name": "n"}],
    "resource_without_resource": [{"type": "resource"}],
    "resource_without_text": [{"type": "resource", "resource": {"uri": "file:///a"}}],
    "image_without_data": [{"type": "image", "mimeType": "image/png"}],
    "good_then_bad": [{"type": "text", "text": "x"}, {"type": "text"}],
    "lone_surrogate": [{"type": "text", "text": "\ud800"}],
}


@pytest.mark.parametrize("method", [STEERING, "session/prompt"])
@pytest.mark.parametrize("prompt", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_prompt(client: Client, session: str, method: str, prompt: Any) -> None:
    assert client.error(method, {"sessionId": session, "prompt": prompt}).code == -32602
    assert client.error(method, {"sessionId": session}).code == -32602


@pytest.mark.parametrize("prompt", [[], text(""), text(" \n")])
def test_a_steer_with_nothing_in_it(client: Client, desk: Desk, session: str, prompt: Any) -> None:
    assert refused_idle_and_mid_turn(client, desk, session, {"sessionId": session, "prompt": prompt}) == {-32602}


@pytest.mark.parametrize("prompt", [[], text("")])
def test_a_prompt_with_nothing_in_it_ends_at_once(client: Client, session: str, prompt: Any) -> None:
    assert client.call("session/prompt", {"sessionId": session, "prompt": prompt}) == {"stopReason": "end_turn"}


@pytest.mark.parametrize("prompt", [[IMAGE], [*text("x"), IMAGE]], ids=["alone", "mixed"])
@pytest.mark.parametrize("more", [{}, OPT_IN], ids=["default", "opt_in"])
def test_steer_image_for_a_model_without_eyes(
    client: Client, desk: Desk, session: str, prompt: Any, more: dict[str, Any]
) -> None:
    params = {"sessionId": session, "prompt": prompt, **more}
    assert refused_idle_and_mid_turn(client, desk, session, params) == {-32600}


def test_steer_audio(client: Client, session: str) -> None:
    assert client.error(STEERING, {"sessionId": session, "prompt": [AUDIO]}).code == -32602


def test_an_unknown_session_comes_before_the_kinds_of_blocks(client: Client) -> None:
    assert client.error(STEERING, {"sessionId": "no-such", "prompt": [IMAGE]}).code == -32002


def test_a_malformed_block_comes_before_the_unknown_session(client: Client) -> None:
    assert client.error(STEERING, {"sessionId": "no-such", "prompt": [None]}).code == -32602


def test_steer_image_reaches_a_model_with_eyes(spawn: Spawn, desk: Desk, tmp_path: Path) -> None:
    client = spawn("--images")
    assert client.initialize()["agentCapabilities"]["promptCapabilities"]["image"] is True
    session = client.new(tmp_path)
    prompt = client.prompt(session, "TASK-EYES")
    held = desk.next("TASK-EYES")
    blocks = [*text("STEER-EYES"), IMAGE]
    assert client.call(STEERING, {"sessionId": session, "prompt": blocks}) == {"outcome": "injected"}
    held.reply("one")
    asked = desk.next("STEER-EYES")
    assert f"data:image/png;base64,{IMAGE['data']}" in asked.raw
    asked.reply("two")
    assert prompt.wait()["stopReason"] == "end_turn"


@pytest.mark.parametrize("image", [{"data": "!", "mimeType": "image/png"}, {"data": "AAAA", "mimeType": "text/plain"}])
def test_an_image_that_is_none(spawn: Spawn, tmp_path: Path, image: dict[str, str]) -> None:
    client = spawn("--images")
    session = client.new(tmp_path)
    assert client.error(STEERING, {"sessionId": session, "prompt": [{"type": "image", **image}]}).code == -32602


BLOCKS: dict[str, tuple[dict[str, Any], str]] = {
    "steer_resource_link": ({"type": "resource_link", "name": "n", "uri": "file:///a/b.py"}, "file:///a/b.py"),
    "link_without_a_name": ({"type": "resource_link", "uri": "file:///c.py"}, "file:///c.py"),
    "steer_embedded_resource": (
        {"type": "resource", "resource": {"uri": "file:///d.py", "text": "x = 5"}, "annotations": None, "_meta": None},
        "x = 5",
    ),
    "binary_resource": ({"type": "resource", "resource": {"uri": "file:///e.bin", "blob": "AAAA"}}, "file:///e.bin"),
}


@pytest.mark.parametrize(("block", "seen"), BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block_reaches_the_model(client: Client, desk: Desk, session: str, block: dict[str, Any], seen: str) -> None:
    prompt = client.request("session/prompt", {"sessionId": session, "prompt": [*text(f"TASK-{session}"), block]})
    held = desk.next(f"TASK-{session}")
    assert seen in held.raw
    client.call(STEERING, {"sessionId": session, "prompt": [*text(f"STEER-{session}"), block]})
    held.reply("one")
    asked = desk.next(f"STEER-{session}")
    assert asked.raw.count(seen) >= 2
    asked.reply("two")
    prompt.wait()


def test_steer_after_close(client: Client, session: str) -> None:
    assert client.call("session/close", {"sessionId": session}) == {}
    error = client.error(STEERING, {**said(session, "x"), **OPT_IN})
    assert (error.code, error.data) == (-32002, {"sessionId": session})
    with pytest.raises(AcpError) as raised:
        client.prompt(session, "x").wait()
    assert raised.value.code == -32002


@pytest.mark.parametrize(
    ("method", "more"),
    [("session/prompt", {"prompt": text("x")}), ("session/close", {}), ("session/set_mode", {"modeId": "ask"})],
)
def test_prompt_unknown_session(client: Client, method: str, more: dict[str, Any]) -> None:
    error = client.error(method, {"sessionId": "no-such", **more})
    assert (error.code, error.data) == (-32002, {"sessionId": "no-such"})


def test_a_refused_steer_leaves_the_session_idle(client: Client, session: str) -> None:
    client.error(STEERING, {"sessionId": session, "prompt": [IMAGE]})
    assert client.steer(session, "x", **OPT_IN).wait() == PROMPT_REQUIRED
