"""An answer that is JSON of a given schema."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field, JsonValue, field_validator

from core.rollout import Score, Task
from core.verifiers.check import Check
from core.verifiers.regex import longest_answer

_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n([^`]*)```", re.IGNORECASE)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class JsonSchema(Check):
    """1 where the answer parses as JSON (NaN and infinity are none) and follows the schema.

    Nothing is ever fetched: a reference must stay inside the schema (`#/...`).
    """

    max_answer: ClassVar[int] = 20_000

    # `schema` is taken in pydantic's base class, hence the alias.
    json_schema: dict[str, JsonValue] = Field(alias="schema")
    equals: JsonValue = None
    """The value that the answer must have besides, where it is given (null too)."""
    fence: bool = False
    """Whether one ```json fence around the answer is allowed."""

    @field_validator("json_schema")
    @classmethod
    def _usable(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        from jsonschema import SchemaError
        from jsonschema.validators import Draft202012Validator, validator_for

        for reference in _references(value):
            if not reference.startswith("#"):
                raise ValueError(
                    f"the reference {reference[:80]!r} leaves the schema; put what it names under $defs"
                )
        try:
            validator_for(value, default=Draft202012Validator).check_schema(value)
        except SchemaError as e:
            where = "/".join(str(part) for part in e.absolute_path) or "the top"
            raise ValueError(f"not a JSON schema at {where[:80]}: {e.message[:160]}") from e
        for pattern in _patterns(value):
            longest_answer(pattern, full=False)
        return value

    @property
    def needs_answer(self) -> bool:
        return False

    @property
    def longest(self) -> int:
        return min([self.max_answer, *(longest_answer(p, full=False) for p in _patterns(self.json_schema))])

    def judge(self, task: Task, answer: str) -> Score:
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry

        text = answer.strip()
        if self.fence and (fenced := _FENCE.fullmatch(text)):
            text = fenced[1]
        try:
            value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        except ValueError as e:
            return Score(value=0.0, reason=f"not JSON: {str(e)[:120]}")
        validator = validator_for(self.json_schema, default=Draft202012Validator)
        # With a registry of our own nothing is looked up outside, whatever the schema says.
        error = next(validator(self.json_schema, registry=Registry()).iter_errors(value), None)
        if error is not None:
            where = "/".join(str(part) for part in error.absolute_path)
            return Score(
                value=0.0,
                reason=f"against the schema{' at ' + where[:60] if where else ''}: {error.message[:160]!r}",
            )
        if "equals" in self.model_fields_set and not same_json(value, self.equals):
            return Score(value=0.0, reason="follows the schema, but has another value")
        return Score(value=1.0)


def same_json(a: Any, b: Any) -> bool:
    """Equality of JSON values: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return bool(a == b)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"{digits[:40]} is no finite number")
    return value


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in _REFERENCES and isinstance(value, str):
                yield value
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "pattern" and isinstance(value, str):
                yield value
            if key == "patternProperties" and isinstance(value, dict):
                yield from value
            yield from _patterns(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _patterns(value)
