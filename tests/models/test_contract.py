"""Every client keeps the contract, and the contract catches clients that do not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from steerkit.core.cancel import Cancellation, Cancelled
from steerkit.core.errors import ModelError
from steerkit.core.message import Message
from steerkit.core.model import Endpoint, ModelClient, OnText, Request, Response, Usage
from steerkit.models import anthropic_messages, openai_chat, openai_responses
from steerkit.testing import ModelContract, Reply, ScriptedModel


class TestOpenAIChat(ModelContract):
    def client(self, endpoint: Endpoint) -> ModelClient:
        return openai_chat(endpoint)


class TestOpenAIChatWithABridge(ModelContract):
    model = "mistral-small"

    def client(self, endpoint: Endpoint) -> ModelClient:
        return openai_chat(endpoint)


class TestAnthropicMessages(ModelContract):
    model = "claude-sonnet-4-5"

    def client(self, endpoint: Endpoint) -> ModelClient:
        return anthropic_messages(endpoint)


class TestAnthropicMessagesWithSystemMessages(ModelContract):
    model = "claude-opus-5-5"

    def client(self, endpoint: Endpoint) -> ModelClient:
        return anthropic_messages(endpoint)


class TestOpenAIResponses(ModelContract):
    def client(self, endpoint: Endpoint) -> ModelClient:
        return openai_responses(endpoint)


# ---- the scripted model stands in for a client, so it answers and fails like one; there is no wire to look at


class OfAScript(ModelContract):
    def _ask(self, script: list[Reply], on_text: OnText | None, _max_retries: int = 0) -> Response:
        return ScriptedModel(script).complete(self._request(), on_text)


WITHOUT_A_WIRE = [
    "test_an_answer_has_the_text_of_the_model",
    "test_the_streamed_pieces_are_the_text",
    "test_tool_calls_arrive_whole_and_in_order",
    "test_the_usage_is_what_the_provider_counted",
    "test_an_answer_that_was_cut_or_filtered_says_so",
    "test_a_refusal_is_a_model_error_of_its_kind",
    "test_a_stream_that_breaks_off_is_an_error_with_the_text_so_far",
    "test_what_was_shown_is_not_asked_for_again",
    "test_a_call_that_breaks_off_is_not_handed_out",
]


@pytest.mark.parametrize("name", WITHOUT_A_WIRE)
def test_the_scripted_model_answers_and_fails_like_a_client(name: str) -> None:
    getattr(OfAScript(), name)()


# ---- clients that break it, each in one way


class Wrong:
    """A right client, until a subclass changes what goes in or comes out."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.inner = openai_chat(endpoint)

    def asked(self, request: Request) -> Request:
        return request

    def answered(self, response: Response) -> Response:
        return response

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        return self.answered(self.inner.complete(self.asked(request), on_text))


class NeverStreams(Wrong):
    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        response = self.inner.complete(request)
        if on_text:
            on_text(response.message.text)
        return response


class LosesText(Wrong):
    def answered(self, response: Response) -> Response:
        return evolve(response, message=evolve(response.message, content=()))


class LosesACall(Wrong):
    def answered(self, response: Response) -> Response:
        return evolve(response, message=evolve(response.message, tool_calls=response.message.tool_calls[:1]))


class CountsNothing(Wrong):
    def answered(self, response: Response) -> Response:
        return evolve(response, usage=Usage())


class AlwaysStops(Wrong):
    def answered(self, response: Response) -> Response:
        return evolve(response, finish="stop")


class HidesErrors(Wrong):
    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        try:
            return self.inner.complete(request, on_text)
        except ModelError as error:
            return Response(Message("assistant", error.partial))


class TellsTheKey(Wrong):
    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        try:
            return self.inner.complete(request, on_text)
        except ModelError as error:
            raise ModelError(f"{error} (key {self.endpoint.api_key})", kind=error.kind, status=error.status) from None


class AsksAgain(Wrong):
    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        try:
            return self.inner.complete(request, on_text)
        except ModelError:
            return self.inner.complete(request, on_text)


class ShowsItsErrors(Wrong):
    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        try:
            return self.inner.complete(request, on_text)
        except (ModelError, Cancelled) as error:
            if on_text:
                on_text(f"[{error}]")
            raise


class IgnoresCancel(Wrong):
    def asked(self, request: Request) -> Request:
        return evolve(request, cancellation=Cancellation())


class ForgetsSteers(Wrong):
    def asked(self, request: Request) -> Request:
        return evolve(request, messages=tuple(each for each in request.messages if "steer_id" not in each.meta))


class SteersLast(Wrong):
    """The steer is always the newest thing said."""

    def asked(self, request: Request) -> Request:
        messages = sorted(request.messages, key=lambda message: "steer_id" in message.meta)
        return evolve(request, messages=tuple(messages))


class SteersFirst(Wrong):
    """The steer is told as if it had been known from the start."""

    def asked(self, request: Request) -> Request:
        messages = sorted(request.messages, key=lambda message: "steer_id" not in message.meta)
        return evolve(request, messages=tuple(messages))


class SteersTwice(Wrong):
    def asked(self, request: Request) -> Request:
        steers = tuple(message for message in request.messages if "steer_id" in message.meta)
        return evolve(request, messages=request.messages + steers)


class OneAtATime(Wrong):
    """Threads share what one of them is asking."""

    latest: Request | None = None
    together = threading.Barrier(2)

    def asked(self, request: Request) -> Request:
        type(self).latest = request
        try:
            self.together.wait(0.2)
        except threading.BrokenBarrierError:
            self.together.reset()
        return type(self).latest or request


class LosesTheSystemPrompt(Wrong):
    def asked(self, request: Request) -> Request:
        return evolve(request, system=None)


class AlwaysOffersTools(Wrong):
    def asked(self, request: Request) -> Request:
        return evolve(request, tool_choice="auto")


BROKEN: list[tuple[type[Wrong], str]] = [
    (NeverStreams, "test_the_streamed_pieces_are_the_text"),
    (LosesText, "test_an_answer_has_the_text_of_the_model"),
    (LosesACall, "test_tool_calls_arrive_whole_and_in_order"),
    (CountsNothing, "test_the_usage_is_what_the_provider_counted"),
    (AlwaysStops, "test_an_answer_that_was_cut_or_filtered_says_so"),
    (HidesErrors, "test_a_refusal_is_a_model_error_of_its_kind"),
    (HidesErrors, "test_a_stream_that_breaks_off_is_an_error_with_the_text_so_far"),
    (HidesErrors, "test_a_call_that_breaks_off_is_not_handed_out"),
    (ShowsItsErrors, "test_a_refusal_is_a_model_error_of_its_kind"),
    (ShowsItsErrors, "test_a_stream_that_breaks_off_is_an_error_with_the_text_so_far"),
    (ShowsItsErrors, "test_a_cancel_ends_a_stream"),
    (AsksAgain, "test_what_was_shown_is_not_asked_for_again"),
    (TellsTheKey, "test_the_key_is_in_no_text"),
    (IgnoresCancel, "test_a_request_that_was_cancelled_before_is_not_sent"),
    (IgnoresCancel, "test_a_cancel_ends_the_wait_for_an_answer"),
    (IgnoresCancel, "test_a_cancel_ends_a_stream"),
    (OneAtATime, "test_one_client_serves_many_threads"),
    (LosesTheSystemPrompt, "test_what_is_asked_reaches_the_model"),
    (AlwaysOffersTools, "test_a_request_for_text_alone_says_so"),
    (ForgetsSteers, "test_a_steer_is_sent_once_and_at_its_place"),
    (SteersTwice, "test_a_steer_is_sent_once_and_at_its_place"),
    (SteersFirst, "test_a_steer_is_sent_once_and_at_its_place"),
    (SteersLast, "test_a_steer_is_sent_once_and_at_its_place"),
    (SteersLast, "test_each_request_begins_with_the_one_before"),
]


def broken(kind: type[Wrong]) -> Any:
    class Contract(ModelContract):
        patience = 0.2

        def client(self, endpoint: Endpoint) -> ModelClient:
            return kind(endpoint)

    return Contract()


@pytest.mark.parametrize(("kind", "name"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_the_contract_catches_a_client_that_breaks_it(kind: type[Wrong], name: str) -> None:
    test: Callable[[], None] = getattr(broken(kind), name)
    with pytest.raises(AssertionError):
        test()


def test_each_part_of_the_contract_catches_somebody() -> None:
    assert {name for name in vars(ModelContract) if name.startswith("test_")} == {name for _, name in BROKEN}
