"""Spans of OpenTelemetry in the shapes in which files hold them: OTLP, the SDK's own, Phoenix's, rows of data frames.

Attributes are told in every possible way: key by key (`llm.input_messages.0.message.role`), as objects within objects,
as lists of `{"key": ..., "value": {"stringValue": ...}}`. Each is found by its full name, whichever way it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from core.importers.getting import MAX_DEPTH, as_dict, as_int, as_json, as_list, as_text, at
from core.importers.source import storable
from core.importers.times import moment

VALUE = ""
"""Key of a value where there are further keys below it (`gen_ai.prompt` beside `gen_ai.prompt.0.role`)."""

_PREFIXES = ("message.", "message_content.", "tool_call.", "document.", "embedding.")

_KIND = "openinference.span.kind"
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_FAILED = {"error", "status_code_error", "2"}
_WENT_WELL = {"ok", "status_code_ok", "1"}


class Attributes(dict[str, Any]):
    """Attributes as they were told. Most stand under their full name; where one is told in parts, a tree is made."""

    __slots__ = ("_shape", "_tree")

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        nested = dict in map(type, given.values())
        self._shape = None if nested else _shape_of(tuple(given))
        """None where it cannot be told by the keys what there may be."""
        self._tree: dict[str, Any] | None = None

    def first(self, *names: str) -> Any:
        """The first of these attributes that is there, each by its full name (`llm.model_name`); None for none."""
        shape = self._shape
        for name in names if shape is None else shape[names]:
            found = self.get(name)
            if isinstance(found, str):
                return found if found.isascii() else storable(found)
            in_parts = found is None or isinstance(found, (dict, list))
            plain = _at(self.tree, name) if in_parts else as_json(found)
            if plain is not None:
                return plain
        return None

    @property
    def tree(self) -> dict[str, Any]:
        """All of them as objects and lists."""
        if self._tree is None:
            self._tree = tree_of(self)
        return self._tree


class _Shape(dict[tuple[str, ...], tuple[str, ...]]):
    """Of names that are asked for, those that attributes with certain keys may have.

    These are the keys, and what stands before their dots: `gen_ai` and `gen_ai.usage` of `gen_ai.usage.input_tokens`.
    """

    __slots__ = ("_known",)

    def __init__(self, keys: tuple[str, ...]) -> None:
        beginnings = (key[:place] for key in map(str, keys) for place, c in enumerate(key) if c == ".")
        self._known = {*keys, *beginnings}

    def __missing__(self, names: tuple[str, ...]) -> tuple[str, ...]:
        self[names] = found = tuple(name for name in names if name in self._known)
        return found


_shape_of = lru_cache(maxsize=500)(_Shape)
"""Spans of a kind have the same keys."""


def _at(tree: dict[str, Any], name: str) -> Any:
    found: Any = tree
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found[VALUE] if isinstance(found, dict) and VALUE in found else found


class Span(NamedTuple):
    """One span."""

    trace: str
    own: str
    """Its id."""
    parent: str
    """The id of the span that it lies in; "" of a root."""
    name: str
    begun: float | None
    """Seconds since 1970."""
    ended: float | None
    failed: bool | None
    """By its status: True of an error, False of an explicit OK, None where it is unset (that is not OK)."""
    error: str
    attributes: Attributes
    events: Sequence[tuple[str, Attributes]]
    """(name, attributes) of each."""
    service: str
    """The name of the program that it is of; "" where its attributes tell it, or nothing does."""


def restored(values: list[Any]) -> Span:
    """A span that was kept as JSON."""
    span = Span(*values)
    events = [(name, Attributes(told)) for name, told in span.events]
    return span._replace(attributes=Attributes(span.attributes), events=events)


def spans_in(record: Mapping[str, Any]) -> Iterator[Span | None]:
    """All spans that a record of a file holds, be it one or a whole export; None for each that is none."""
    for key in ("result", "trace"):
        if isinstance(inner := record.get(key), dict) and inner.keys() & {"resourceSpans", "batches"}:
            record = inner
    for key in ("resourceSpans", "resource_spans", "batches"):
        if key in record:
            for resource in as_list(record[key]):
                yield from _of_otlp(as_dict(resource))
            return
    listed = record.get("data") if isinstance(record.get("data"), list) else record.get("spans")
    if isinstance(listed, list) and "attributes" not in record:
        yield from (_of_record(as_dict(part)) for part in listed)
    else:
        yield _of_record(record)


def _of_otlp(resource: dict[str, Any]) -> Iterator[Span | None]:
    about = at(resource, "resource", "attributes")
    told = _pairs(about)
    service = as_text(told.get("service.name")) or as_text(Attributes(told).first("service.name"))
    for key in _SCOPES:
        for scope in as_list(resource.get(key)):
            for raw in as_list(as_dict(scope).get("spans")):
                span = as_dict(raw)
                yield _span(span, _pairs(span.get("attributes")), service)


def _pairs(value: Any) -> dict[str, Any]:
    """Attributes as OTLP lists them; attributes that are an object already stand as they are."""
    if isinstance(value, dict):
        return value
    found = {}
    for pair in as_list(value):
        try:
            key, given = pair["key"], pair["value"]
            text = given.get("stringValue") if isinstance(given, dict) else None
            found[key] = _plain(given) if text is None else text
        except (TypeError, KeyError):
            continue  # no attribute
    return found


def _plain(value: Any) -> Any:
    """A value of OTLP without its type: {"intValue": "5"} is 5."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    [(kind, inner)] = value.items()
    if kind in ("intValue", "int_value"):
        number = as_int(inner)
        return number if number is not None else inner
    if kind in ("arrayValue", "array_value"):
        return [_plain(v) for v in as_list(as_dict(inner).get("values"))]
    if kind in ("kvlistValue", "kvlist_value"):
        return _pairs(as_dict(inner).get("values"))
    return inner if kind.endswith(("Value", "_value")) else value


def _of_record(record: Mapping[str, Any]) -> Span | None:
    """A span that is an object of its own; None for what is no span."""
    attributes = _attributes_of(record)
    return None if attributes is None else _span(record, attributes)


def _span(record: Mapping[str, Any], attributes: dict[str, Any], service: str = "") -> Span | None:
    """A span with these attributes; None for what has no ids."""
    of = record.get
    own = _id(of("spanId")) or _id_under(record, "span_id", "spanId", "context.span_id")
    trace = _id(of("traceId")) or _id_under(record, "trace_id", "traceId", "context.trace_id")
    if not own or not trace:
        return None
    parent = _id(of("parentSpanId")) or _id(of("parent_id")) or _id(of("parent_span_id"))
    parent = parent or _id(at(of("parent"), "span_id"))
    failed, error = _status_of(record)
    events = _events_in(listed) if (listed := of("events")) else ()
    if failed and not error:
        error = next((as_text(told.first("exception.message")) for n, told in events if n == "exception"), "")
    begun, ended = moment(of("startTimeUnixNano")), moment(of("endTimeUnixNano"))
    if begun is None:
        begun = _time(record, "start_time_unix_nano", "start_time", "startTime")
    if ended is None:
        ended = _time(record, "end_time_unix_nano", "end_time", "endTime")
    name, told = as_text(of("name")), Attributes(attributes)
    return Span(trace, own, parent, name, begun, ended, failed, error, told, events, service)


def _id(given: Any) -> str:
    """An id as hexadecimal text without "0x"; zeros alone stand for none."""
    text = as_text(given)
    if text[:1] != "0":
        return text
    text = text.removeprefix("0x")
    return text if len(text) < 8 or text.strip("0") else ""


def _id_under(record: Mapping[str, Any], *keys: str) -> str:
    """The first id under one of these keys, in the span's context or in the span."""
    holders = (as_dict(record.get("context")), record)
    return next((found for holder in holders for key in keys if (found := _id(holder.get(key)))), "")


def _time(record: Mapping[str, Any], *keys: str) -> float | None:
    return next((found for key in keys if (found := moment(record.get(key))) is not None), None)


def _attributes_of(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The attributes as they are told; None where there are none. Data frames have a column for each."""
    given = record.get("attributes")
    if isinstance(given, list):
        given = _pairs(given)
    told = {k[11:]: v for k, v in record.items() if k[:11] == "attributes."}
    if not isinstance(given, dict) and not told and "span_kind" not in record:
        return None
    told = {**as_dict(given), **told}
    if (kind := as_text(record.get("span_kind"))) and Attributes(told).first(_KIND) is None:
        told[_KIND] = kind
    return told


def _status_of(record: Mapping[str, Any]) -> tuple[bool | None, str]:
    """(whether it failed, the message), from `status` or from columns of their own."""
    status = record.get("status")
    told: Mapping[str, Any] = status if isinstance(status, dict) else record
    if not told:
        return None, ""
    codes = (told.get(k) for k in ("status_code", "statusCode", "code"))
    word = as_text(next((c for c in codes if c is not None), None)).lower().removeprefix("statuscode.")
    messages = (told.get(k) for k in ("status_message", "message", "description"))
    message = as_text(next(filter(None, messages), ""))
    return (True if word in _FAILED else False if word in _WENT_WELL else None), message


def _events_in(listed: Any) -> list[tuple[str, Attributes]]:
    return [(as_text(e.get("name")), _event_of(e)) for e in as_list(listed) if isinstance(e, dict)]


def _event_of(event: dict[str, Any]) -> Attributes:
    """What an event tells: its attributes, and its body, where it is a log record."""
    told, body = _pairs(event.get("attributes")), _plain(event.get("body"))
    return Attributes(told if body is None else {**told, "body": body})


class _Node(dict[str, Any]):
    """An object that the dots in keys made."""


class _Path(NamedTuple):
    """Where an attribute stands in the tree."""

    above: tuple[str, ...]
    last: str
    places: bool
    """Whether parts of it are places in lists."""


@lru_cache(maxsize=1_000)
def _path(key: str) -> _Path:
    *above, last = as_text(key).split(".", MAX_DEPTH)
    return _Path(tuple(above), last, any(map(str.isdecimal, (*above, last))))


def tree_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as one tree: dots in keys lead down, numbers are places in lists, null and NaN are nothing.

    >>> tree_of({"a.1.b": 3, "a.0.b": 2, "c": {"d.e": 5}, "f": None})
    {'a': [{'b': 2}, {'b': 3}], 'c': {'d.e': 5}}
    """
    tree = _Node()
    places = False
    for key, value in attributes.items():
        plain = storable(value) if isinstance(value, str) else _branch(as_json(value))
        if plain is not None:
            path = _path(key)
            places = places or path.places
            _put(tree, path, plain)
    return {k: _with_lists(v) for k, v in tree.items()} if places else tree


def _branch(value: Any) -> Any:
    """A value; only the objects of OpenInference have keys with dots that lead down."""
    if isinstance(value, dict):
        if any(k.startswith(_PREFIXES) for k in value):
            return tree_of(value)
        return {k: _branch(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_branch(v) for v in value]
    return value


def _put(tree: dict[str, Any], path: _Path, value: Any) -> None:
    above, last, _ = path
    for key in above:
        below = tree.get(key)
        if not isinstance(below, dict):
            below = tree[key] = _Node() if below is None else _Node({VALUE: below})
        tree = below
    known = tree.get(last)
    if not isinstance(known, dict):
        tree[last] = value
    elif isinstance(value, dict):
        for key, inner in value.items():
            _put(known, _Path((), key, False), inner)
    else:
        known[VALUE] = value


def _with_lists(value: Any) -> Any:
    """Objects whose keys are all numbers are lists, in the order of the numbers ("10" comes after "9")."""
    if not isinstance(value, _Node):
        return value
    inner = {k: _with_lists(v) if isinstance(v, _Node) else v for k, v in value.items()}
    places = [k for k in inner if k != VALUE]
    if places and all(k.isdecimal() and len(k) < 10 for k in places):
        return [inner[k] for k in sorted(places, key=int)]
    return inner
