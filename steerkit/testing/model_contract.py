"""ModelContract: what every model client must do, as tests to inherit.

    class TestMyClient(ModelContract):
        def client(self, endpoint):
            return MyClient(endpoint)

pytest collects the inherited methods; they need no fixtures, so any other runner can call them too. The client talks
to a `Gateway`, whose path decides the format: chat completions, Anthropic Messages or OpenAI Responses.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from attrs import evolve

from steerkit.core.cancel import Cancelled
from steerkit.core.errors import ModelError
from steerkit.core.message import Message, Text, tool_result, user
from steerkit.core.model import Endpoint, ModelClient, ModelRef, OnText, Request, Response, Usage
from steerkit.core.tool import Tool
from steerkit.testing.gateway import Gateway, Recorded
from steerkit.testing.reply import Answer, Reply, call, fail, say

_KEY = "contract-key-that-nobody-may-see"
_STEER = "look in vault.py"
_HANGS = 10.0  # seconds after which something is said to hang
_SEARCH = Tool(
    "search", "Search.", {"type": "object", "properties": {"query": {"type": "string"}}}, lambda query: query
)


class ModelContract:
    """Inherit it, name the class `Test...`, and give `client`.

    Attributes:
        model: the name that requests ask for.
        patience: seconds within which a cancelled request has to end.
    """

    model = "contract-model"
    patience = 1.0

    def client(self, endpoint: Endpoint) -> ModelClient:
        """The client to test, for this endpoint."""
        raise NotImplementedError

    # ---- answers

    def test_an_answer_has_the_text_of_the_model(self) -> None:
        for response in self._both_ways(say("Hello, world.")):
            assert response.message.role == "assistant"
            assert response.message.text == "Hello, world."
            assert response.finish == "stop"

    def test_the_streamed_pieces_are_the_text(self) -> None:
        pieces: list[str] = []
        response = self._ask([say("Hello, world, \u00e9\U0001f600.")], pieces.append)
        assert "".join(pieces) == response.message.text == "Hello, world, \u00e9\U0001f600."
        assert len(pieces) > 1, "with on_text the answer is to be streamed"

    def test_tool_calls_arrive_whole_and_in_order(self) -> None:
        wanted = say("Let me look.") + call("search", query='a "b" {c}') + call("search", query="\u00e9\u4e2d")
        for response in self._both_ways(wanted):
            calls = response.message.tool_calls
            assert response.finish == "tool_calls"
            assert response.message.text == "Let me look."
            assert [(each.name, json.loads(each.arguments)) for each in calls] == [
                ("search", {"query": 'a "b" {c}'}),
                ("search", {"query": "\u00e9\u4e2d"}),
            ]
            assert len({each.id for each in calls}) == 2

    def test_the_usage_is_what_the_provider_counted(self) -> None:
        for response in self._both_ways(say("Hello.").using(120, 7, cached=100)):
            assert response.usage == Usage(120, 7, 100)

    def test_an_answer_that_was_cut_or_filtered_says_so(self) -> None:
        for response in self._both_ways(say("Hel").finishing("length")):
            assert response.finish == "length"
        for response in self._both_ways(say("Hel").finishing("content_filter")):
            assert response.finish == "content_filter"

    # ---- failures

    def test_a_refusal_is_a_model_error_of_its_kind(self) -> None:
        kinds = {400: "bad_request", 401: "auth", 402: "quota", 429: "rate_limit", 500: "server"}
        pieces: list[str] = []
        for (status, kind), on_text in itertools.product(kinds.items(), (None, pieces.append)):
            error = self._fail([fail(status, "The provider's own words.")], on_text)
            assert (error.status, error.kind) == (status, kind)
            assert "The provider's own words." in str(error)
        assert pieces == [], "an error is no text of the model"

    def test_a_stream_that_breaks_off_is_an_error_with_the_text_so_far(self) -> None:
        pieces: list[str] = []
        error = self._fail([say("Hello, world.").cut(after=8)], pieces.append)
        assert error.kind == "truncated"
        assert error.partial == "".join(pieces) == "Hello, w"

    def test_what_was_shown_is_not_asked_for_again(self) -> None:
        pieces: list[str] = []
        self._fail([say("Hello, world.").cut(after=8), say("Hello, world.")], pieces.append, max_retries=2)
        assert "".join(pieces) == "Hello, w"

    def test_a_call_that_breaks_off_is_not_handed_out(self) -> None:
        for on_text in (None, lambda _text: None):
            error = self._fail([call("search", query="vault").cut(after=6)], on_text)
            assert error.kind == "truncated"

    def test_the_key_is_in_no_text(self) -> None:
        client, request = self.client(Endpoint("http://127.0.0.1:9/v1", _KEY, max_retries=0)), self._request()
        try:
            client.complete(request)
        except ModelError as error:
            assert error.kind == "connection"
            assert _KEY not in str(error) + repr(error)
        else:
            raise AssertionError("nobody listens at that port, so there is no answer")
        refused = self._fail([fail(401, f"The key {_KEY} is wrong.")], None)
        assert _KEY not in str(refused) + repr(refused) + repr(client)

    # ---- cancelling and threads

    def test_a_cancel_ends_the_wait_for_an_answer(self) -> None:
        for on_text in (None, lambda _text: None):
            gate = threading.Event()
            self._cancelled(say("never").after(gate), on_text, lambda gateway: gateway.wait_for_requests(1), gate)

    def test_a_cancel_ends_a_stream(self) -> None:
        shown, gate = threading.Event(), threading.Event()
        pieces: list[str] = []

        def show(text: str) -> None:
            pieces.append(text)
            shown.set()

        held = say("Hello, world.").pausing(gate, after=5)
        self._cancelled(held, show, lambda _gateway: shown.wait(_HANGS), gate)
        assert pieces and "Hello".startswith("".join(pieces)), "behind a cancel nothing is shown"

    def test_a_request_that_was_cancelled_before_is_not_sent(self) -> None:
        with Gateway([say("never")], key=_KEY) as gateway:
            request = self._request()
            request.cancellation.request()
            assert isinstance(_outcome(self.client(self._endpoint(gateway)), request, None), Cancelled)
            assert gateway.requests == []

    def test_one_client_serves_many_threads(self) -> None:
        def echo(recorded: Recorded) -> Reply:
            return say(_spoken(recorded)[-1])

        with Gateway(echo, key=_KEY) as gateway, ThreadPoolExecutor(8) as pool:
            client = self.client(self._endpoint(gateway))
            words = [f"word-{number}-end" for number in range(40)]
            answers = pool.map(lambda word: client.complete(self._request(user(word)), lambda _text: None), words)
            for word, response in zip(words, answers, strict=True):
                assert word in response.message.text

    # ---- requests

    def test_what_is_asked_reaches_the_model(self) -> None:
        with Gateway([say("Hello.")], key=_KEY) as gateway:
            request = evolve(self._request(user("What is a vault?")), system="Be terse.")
            self.client(self._endpoint(gateway)).complete(request)
            (recorded,) = gateway.requests
        sent = json.dumps(recorded.body, ensure_ascii=False)
        for expected in (self.model, "Be terse.", "What is a vault?", '"search"'):
            assert sent.count(expected) >= 1

    def test_a_request_for_text_alone_says_so(self) -> None:
        with Gateway([say("Hello.")], key=_KEY) as gateway:
            self.client(self._endpoint(gateway)).complete(evolve(self._request(), tool_choice="none"))
            (recorded,) = gateway.requests
        assert recorded.body.get("tool_choice") in ("none", {"type": "none"}) or not recorded.body.get("tools")

    def test_a_steer_is_sent_once_and_at_its_place(self) -> None:
        _, *steered = ["".join(_spoken(recorded)) for recorded in self._conversation()]
        assert len(steered) == 3
        for sent in steered:
            assert sent.count(_STEER) == 1
            # Behind the result that had come, and before what the model did next.
            places = [sent.find(text) for text in ("room number 0", _STEER, "vault 1") if text in sent]
            assert len(places) >= 2
            assert places == sorted(places)

    def test_each_request_begins_with_the_one_before(self) -> None:
        bodies = [recorded.body for recorded in self._conversation()]
        items = [body.get("messages") or body.get("input") for body in bodies]
        assert len(items) > 2
        for earlier, later in itertools.pairwise(items):
            assert later[: len(earlier)] == earlier

    # ---- how they ask

    def _endpoint(self, gateway: Gateway) -> Endpoint:
        return gateway.endpoint_with(max_retries=0)

    def _request(self, *messages: Message) -> Request:
        return Request(ModelRef(self.model, max_tokens=100), messages or (user("Hi"),), tools=(_SEARCH,))

    def _ask(self, script: list[Reply], on_text: OnText | None, max_retries: int = 0) -> Response:
        with Gateway(script, key=_KEY) as gateway:
            client = self.client(gateway.endpoint_with(max_retries=max_retries))
            return client.complete(self._request(), on_text)

    def _both_ways(self, reply: Answer) -> Iterator[Response]:
        for on_text in (None, lambda _text: None):
            yield self._ask([reply], on_text)

    def _fail(self, script: list[Reply], on_text: OnText | None, max_retries: int = 0) -> ModelError:
        try:
            response = self._ask(script, on_text, max_retries)
        except ModelError as error:
            return error
        raise AssertionError(f"the request failed, and the client made an answer of it: {response}")

    def _cancelled(
        self, reply: Answer, on_text: OnText | None, wait: Callable[[Gateway], object], gate: threading.Event
    ) -> None:
        """Cancel a request for `reply`, which `gate` holds back, once `wait` has returned."""
        with Gateway([reply], key=_KEY) as gateway:
            client, request = self.client(self._endpoint(gateway)), self._request()
            outcome: Future[object] = Future()
            thread = threading.Thread(target=lambda: outcome.set_result(_outcome(client, request, on_text)))
            thread.start()
            wait(gateway)
            request.cancellation.request()
            thread.join(self.patience)
            hangs = thread.is_alive()
            gate.set()
            thread.join()
        assert not hangs, "the cancel did not end it"
        assert isinstance(outcome.result(), Cancelled)

    def _conversation(self) -> list[Recorded]:
        """The requests of a conversation that grows: a call, its result, a steer, and three more steps."""
        steer = Message(
            "user", f"The user sent this:\n{_STEER}", meta={"steer_id": "1", "steer_content": (Text(_STEER),)}
        )
        messages: list[Message] = [user("What is a vault?")]
        script = [call("search", query=f"vault {number}") for number in range(3)]
        with Gateway([*script, say("A strong room.")], key=_KEY) as gateway:
            client = self.client(self._endpoint(gateway))
            for number in range(4):
                reply = client.complete(self._request(*messages)).message
                messages.append(reply)
                messages += [tool_result(each.id, f"room number {number}") for each in reply.tool_calls]
                if number == 0:
                    messages.append(steer)
            return gateway.requests


def _outcome(client: ModelClient, request: Request, on_text: OnText | None) -> object:
    try:
        return client.complete(request, on_text)
    except BaseException as error:
        return error


def _spoken(recorded: Recorded) -> list[str]:
    """The JSON of each message of a request, in any of the formats."""
    items: list[Any] = recorded.body.get("messages") or recorded.body.get("input")
    return [json.dumps(item, ensure_ascii=False) for item in items]
