"""Single HTTP answers through the `responses` library, as users of steerkit may test their own programs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import responses

from steerkit import Endpoint, ModelError, ModelRef, Request, Response, Runner, Spec, Usage, user
from steerkit.models import anthropic_messages, openai_chat
from steerkit.patterns import ReAct

ENDPOINT = Endpoint("https://api.example.com/v1", "sk-secret", max_retries=0)
URL = "https://api.example.com/v1/chat/completions"
ANSWER = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2},
}


def ask(**settings: Any) -> Response:
    return openai_chat(ENDPOINT).complete(Request(ModelRef("m", **settings), (user("Hi"),)))


@responses.activate
def test_a_mocked_answer_is_read_like_a_real_one():
    responses.post(URL, json=ANSWER)
    answer = ask()
    assert (answer.message.text, answer.usage) == ("Hello.", Usage(7, 2))


@responses.activate
def test_what_is_sent_is_what_the_mock_saw():
    sent = responses.post(URL, json=ANSWER)
    ask(temperature=0.5, extra={"seed": 3})
    (call,) = sent.calls
    assert call.request.headers["Authorization"] == "Bearer sk-secret"
    assert json.loads(call.request.body) == {
        "model": "m",
        "temperature": 0.5,
        "seed": 3,
        "messages": [{"role": "user", "content": "Hi"}],
    }


@responses.activate
def test_a_mocked_stream_is_shown_piece_by_piece():
    events = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("Hel", "lo.")]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    responses.post(URL, body=body, content_type="text/event-stream")
    shown: list[str] = []
    answer = openai_chat(ENDPOINT).complete(Request(ModelRef("m"), (user("Hi"),)), shown.append)
    assert (shown, answer.message.text) == (["Hel", "lo."], "Hello.")


@responses.activate
@pytest.mark.parametrize(
    ("status", "kind"), [(401, "auth"), (402, "quota"), (404, "bad_request"), (429, "rate_limit"), (500, "server")]
)
def test_a_mocked_error_has_its_kind_and_keeps_the_key_to_itself(status, kind):
    responses.post(URL, status=status, json={"error": {"message": "sk-secret is wrong"}})
    with pytest.raises(ModelError) as caught:
        ask()
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert "sk-secret" not in str(caught.value)


@responses.activate
def test_a_whole_run_can_be_mocked():
    responses.post(URL, json=ANSWER)
    result = Runner(openai_chat, [ReAct()]).run(Spec("m", "react", 2, stream=False), [user("Hi")], ENDPOINT)
    assert result.output == "Hello."


@responses.activate
def test_the_other_formats_can_be_mocked_too():
    answer = {"type": "message", "content": [{"type": "text", "text": "Hello."}], "stop_reason": "end_turn"}
    responses.post("https://api.anthropic.com/v1/messages", json=answer)
    client = anthropic_messages(Endpoint("https://api.anthropic.com", "sk-secret"))
    assert client.complete(Request(ModelRef("claude-haiku-4-5"), (user("Hi"),))).message.text == "Hello."
