"""The frozen base of everything that is stored or leaves the process, and how foreign data becomes one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import InputError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_put_values, _put_given, _put_extra, _put_private = (vars(BaseModel)[s].__set__ for s in BaseModel.__slots__)
"""How the parts of a model are set, frozen or not (pydantic's `model_construct` sets the same, by name)."""


class Record(BaseModel):
    """An immutable value. Unknown fields are refused, so a typo never vanishes silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def read(cls, data: Any, *, where: str = "") -> Self:
        """Validate foreign data.

        Args:
            data: what was handed in (usually a dict).
            where: where it came from ("tasks.jsonl line 3"), put in front of the message.

        Raises:
            InputError: one plain sentence that names the field and the reason.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as e:
            raise InputError(_first_sentence(e, where or cls.__name__.lower())) from e

    def canonical(self) -> str:
        """The value as JSON with sorted keys: equal values give equal bytes."""
        return canonical_json(self.model_dump(mode="json"))


def unchecked(kind: Callable[_P, _R]) -> Callable[_P, _R]:
    """A constructor for records of one kind that checks nothing at run time, and takes half as long.

    It is for values that were just made here with the types that the record declares; types are checked by mypy as
    for the record itself. What comes from outside goes through the record, or `Record.read`. Every field counts as
    given (`model_fields_set`).

    >>> unchecked(Record)() == Record()
    True
    """
    record = cast(type[Record], kind)
    fields = record.model_fields
    blank = {name: f.default for name, f in fields.items()}
    makers = [
        (name, cast(Callable[[], Any], f.default_factory)) for name, f in fields.items() if f.default_factory
    ]
    given, new = set(fields), cast(Callable[[Any], _R], object.__new__)

    def made(*_: _P.args, **values: _P.kwargs) -> _R:
        held = blank | values
        for name, maker in makers:
            if name not in values:
                held[name] = maker()
        one = new(record)
        _put_values(one, held)
        _put_given(one, given)
        _put_extra(one, None)
        _put_private(one, None)
        return one

    return made


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spare white space; the form that hashes and dumps are made of."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def content_hash(value: Any) -> str:
    """SHA-256 of a JSON value's canonical form, 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


PLAIN = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field",
    "string_type": "it should be text",
    "model_type": "it should be an object",
    "dict_type": "it should be an object",
    "list_type": "it should be a list",
    "tuple_type": "it should be a list",
    "none_required": "it should be null",
}
"""What pydantic calls a fault, and what a person does; what is not here is put into words by rule."""

_MANY = re.compile(r"\w+ should have at (least|most) (\d+) (items?|characters?) after validation, not (\d+)")


def _reason(kind: str, said: str) -> str:
    """Why a value does not fit, without the words of the library that found it."""
    if kind in PLAIN:
        return PLAIN[kind]
    if many := _MANY.fullmatch(said):
        bound, count, _, there = many.groups()
        return f"it needs at {bound} {count} entries, and has {there}"
    return re.sub(r"^Input should", "it should", said)


def _first_sentence(error: ValidationError, where: str) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "value"
    reason = _reason(first["type"], first["msg"].removeprefix("Value error, "))
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {field}: {reason}{more}."
