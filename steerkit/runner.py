"""Runner: checks what is asked for, picks the pattern and the client, and starts runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import evolve

from steerkit.core.checks import check_callable, check_kind
from steerkit.core.errors import SpecError
from steerkit.core.message import Message
from steerkit.core.model import Endpoint, ModelClient
from steerkit.core.pairing import check_pairs
from steerkit.core.pattern import Pattern
from steerkit.core.spec import Result, Spec
from steerkit.core.tool import Tool
from steerkit.run import OnEvent, Run


class Runner:
    """Build it once with a way to reach models and the patterns on offer; start runs from any thread.

    Args:
        client_for: makes the client of an endpoint; called once for each endpoint.
        patterns: told apart by their names.
    """

    def __init__(self, client_for: Callable[[Endpoint], ModelClient], patterns: Iterable[Pattern]) -> None:
        if not callable(client_for):
            raise TypeError(f"Runner takes a function of an Endpoint, such as openai_chat, not {client_for!r}.")
        self._client_for = client_for
        self._clients: dict[Endpoint, ModelClient] = {}
        self._patterns: dict[str, Pattern] = {}
        for pattern in patterns:
            if isinstance(pattern, type) or not isinstance(getattr(pattern, "name", None), str):
                raise TypeError(f"Runner takes pattern objects with a name, such as ReAct(), not {pattern!r}.")
            if pattern.name in self._patterns:
                raise ValueError(f"Two patterns are named {pattern.name!r}, so a spec could not choose between them.")
            self._patterns[pattern.name] = pattern

    def start(
        self, spec: Spec, messages: Sequence[Message], endpoint: Endpoint, on_event: OnEvent | None = None
    ) -> Run:
        """Start a run on a thread of its own, with a copy of the caller's context variables.

        Args:
            spec: what is asked for.
            messages: the conversation so far; it ends with what the model is to answer.
            endpoint: where the model is reached.
            on_event: `on_event(run, event)`, called in the worker for every event; what it raises is logged and
                counted on `run.event_errors`. It may be called before `start` has returned.

        Raises:
            SpecError: the spec or the messages cannot be run; no thread was started and nothing was sent.
        """
        try:
            check_kind("spec", spec, Spec, "a Spec")
            check_kind("endpoint", endpoint, Endpoint, "an Endpoint, such as Endpoint.from_env()")
            check_callable("on_event", on_event, "a function of a run and an event")
        except ValueError as error:
            raise SpecError(str(error)) from None
        messages = self._checked_messages(spec, messages)
        pattern = self._patterns.get(spec.pattern)
        if pattern is None:
            known = ", ".join(sorted(self._patterns)) or "none"
            raise SpecError(f"There is no pattern named {spec.pattern!r}. This runner has: {known}.")
        check = getattr(pattern, "check", None)
        if check is not None:
            check(spec)
        spec = evolve(spec, tools=[_validated(tool) for tool in spec.tools])
        return Run(spec, messages, pattern, self._client(endpoint), on_event)

    def run(
        self, spec: Spec, messages: Sequence[Message], endpoint: Endpoint, on_event: OnEvent | None = None
    ) -> Result:
        """`start(...).wait()`: for when only the answer is wanted."""
        return self.start(spec, messages, endpoint, on_event).wait()

    def _client(self, endpoint: Endpoint) -> ModelClient:
        client = self._clients.get(endpoint)
        # Two threads may both make one: the first that is kept serves both.
        return client if client is not None else self._clients.setdefault(endpoint, self._client_for(endpoint))

    @staticmethod
    def _checked_messages(spec: Spec, messages: Sequence[Message]) -> Sequence[Message]:
        if isinstance(messages, (str, Message)):
            raise SpecError("messages is a list of messages, such as [user('Why is the test failing?')].")
        messages = tuple(messages)
        for index, message in enumerate(messages):
            if not isinstance(message, Message):
                raise SpecError(f"messages[{index}] is a {type(message).__name__}, not a Message: see user().")
            if message.role == "user" and not message.has_image and not message.text.strip():
                raise SpecError(f"messages[{index}] is blank, and providers refuse an empty message.")
            if message.has_image and not spec.model.images:
                raise SpecError(f"messages[{index}] has an image, and the model {spec.model.name!r} takes none.")
        if not messages:
            raise SpecError("messages is empty, so the model has nothing to answer: begin with [user(...)].")
        try:
            check_pairs(messages)
        except ValueError as error:
            raise SpecError(f"{error} Every provider refuses such a conversation.") from None
        return messages


def _validated(tool: Tool) -> Tool:
    """A hand-made tool with a check of its arguments against its schema."""
    if tool.validate is not None:
        return tool
    from steerkit.tools.json_schema import validator  # the schema library is not loaded for those who do not need it

    try:
        return evolve(tool, validate=validator(tool.parameters))
    except ValueError as error:
        raise SpecError(f"The tool {tool.name!r}: {error}") from None
