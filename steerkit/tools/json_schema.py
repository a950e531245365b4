"""Arguments against a hand-made JSON schema, with the jsonschema library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jsonschema
import referencing


def validator(schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    """A check of arguments, which returns them or raises ValueError with every fault in it, for the model to mend.

    Raises:
        ValueError: `schema` is no JSON schema of an object.
    """
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise ValueError("its parameters are no JSON schema of an object: use {'type': 'object', 'properties': {...}}.")
    kind = jsonschema.validators.validator_for(dict(schema), default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(dict(schema))
    except jsonschema.SchemaError as error:
        raise ValueError(f"its parameters are no valid JSON schema: {error.message}.") from None
    # With a registry of its own, jsonschema does not fetch what a "$ref" names: a schema may come from anywhere.
    checker = kind(dict(schema), registry=referencing.Registry())

    def validate(arguments: dict[str, Any]) -> Mapping[str, Any]:
        faults = [f"{error.json_path}: {error.message}" for error in checker.iter_errors(arguments)]
        if faults:
            raise ValueError("The arguments do not fit the schema. " + "; ".join(faults))
        return arguments

    return validate
