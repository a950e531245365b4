"""Hand-made tools: arguments against a JSON schema that somebody wrote."""

from __future__ import annotations

from typing import Any

import pytest

from steerkit import SpecError, Tool, ToolResultEvent
from steerkit.testing import ScriptedModel, call, say
from steerkit.tools.json_schema import validator
from tests.conftest import start

SCHEMA = {
    "type": "object",
    "properties": {"at": {"type": "string"}, "line": {"$ref": "#/$defs/line"}},
    "required": ["at"],
    "additionalProperties": False,
    "$defs": {"line": {"type": "integer", "minimum": 1}},
}


def look(**arguments: Any) -> str:
    return f"seen {arguments}"


def test_arguments_that_fit_are_returned_as_they_are() -> None:
    arguments = {"at": "a", "line": 2}
    assert validator(SCHEMA)(arguments) == arguments


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({}, ["'at' is a required property"]),
        ({"at": 3}, ["$.at: 3 is not of type 'string'"]),
        ({"at": "a", "line": 0}, ["$.line: 0 is less than the minimum of 1"]),
        ({"at": 3, "line": "x", "deep": 1}, ["$.at: ", "$.line: ", "'deep' was unexpected"]),
    ],
)
def test_every_fault_is_told_with_its_place(arguments: dict[str, Any], faults: list[str]) -> None:
    with pytest.raises(ValueError, match="do not fit the schema") as told:
        validator(SCHEMA)(arguments)
    assert all(fault in str(told.value) for fault in faults)


@pytest.mark.parametrize("schema", [None, True, [], "object", {"type": "array"}, {"type": ["object", "null"]}])
def test_what_is_no_schema_of_an_object_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match="no JSON schema of an object"):
        validator(schema)


@pytest.mark.parametrize("schema", [{"properties": 3}, {"required": "at"}, {"properties": {"at": {"type": "text"}}}])
def test_an_invalid_schema_is_refused_when_the_tool_is_checked(schema: Any) -> None:
    with pytest.raises(ValueError, match="no valid JSON schema"):
        validator(schema)


def test_the_dialect_that_a_schema_names_is_used() -> None:
    draft4 = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"n": {"minimum": 1, "exclusiveMinimum": True}},
    }
    with pytest.raises(ValueError, match=r"\$\.n"):
        validator(draft4)({"n": 1})


def test_a_reference_to_another_place_is_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[Any] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *args, **kwargs: fetched.append(args))
    check = validator({"type": "object", "properties": {"at": {"$ref": "http://127.0.0.1:9/schema.json"}}})
    with pytest.raises(Exception, match="127"):
        check({"at": "a"})
    assert fetched == []


# ---- in a run


def test_a_hand_made_tool_is_checked_against_its_schema_in_a_run() -> None:
    made = Tool("look", "Look.", SCHEMA, look)
    model = ScriptedModel([call("look"), call("look", at="a"), say("x")])
    result = start(model, tools=[made]).wait()
    assert "'at' is a required property" in result.messages[2].text
    assert result.messages[4].text == "seen {'at': 'a'}"


def test_a_hand_made_tool_with_an_empty_schema_takes_any_object() -> None:
    model = ScriptedModel([call("look", any="thing"), call("look", "3"), say("x")])
    result = start(model, tools=[Tool("look", "Look.", {}, look)]).wait()
    assert result.messages[2].text == "seen {'any': 'thing'}"
    assert "not an object" in result.messages[4].text


def test_a_hand_made_tool_with_a_check_of_its_own_is_not_checked_against_its_schema() -> None:
    made = Tool("look", "Look.", SCHEMA, look, validate=lambda arguments: {"checked": len(arguments)})
    result = start(ScriptedModel([call("look", any="thing"), say("x")]), tools=[made]).wait()
    assert result.messages[2].text == "seen {'checked': 1}"


def test_a_hand_made_tool_with_a_broken_schema_is_refused_before_anything_starts() -> None:
    model = ScriptedModel([])
    with pytest.raises(SpecError, match="The tool 'look': its parameters are no JSON schema"):
        start(model, tools=[Tool("look", "Look.", {"type": "string"}, look)])
    assert model.requests == []


def test_a_function_that_does_not_take_what_its_schema_promises_is_a_failed_call() -> None:
    def narrow(at: str) -> str:
        return at

    run = start(ScriptedModel([call("look", at="a", line=1), say("x")]), tools=[Tool("look", "Look.", SCHEMA, narrow)])
    assert "look failed: TypeError" in run.wait().messages[2].text
    (event,) = [event for event in run.events() if isinstance(event, ToolResultEvent)]
    assert isinstance(event.error, TypeError)
