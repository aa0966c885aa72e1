"""What is read from a model's reply.

1. Reading is tolerant about the wrapping: code fences, text around the JSON, trailing commas, one object in
   place of a list, ids in brackets, keys in any case.
2. Half a JSON value is never patched up: the reader complains, and the model is asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core.errors import AnswerError
from core.ports import Completion


def schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema of an object that has exactly these properties (as strict endpoints ask for)."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


# ---- reading JSON ---------------------------------------------------------------------------------------

_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:\n[ \t]*)?```", re.DOTALL)
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
# A string that never closes reaches to the end: else each of its quotes would be tried anew, in quadratic time.
_STRING = r'"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z)'
_STRING_OR_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_STRING_OR_BRACKET = re.compile(_STRING + r"|[{}\[\]]", re.DOTALL)
_OPENING = re.compile(r'\{\s*(?:"|$)|\[\s*(?:[{"\[]|$)')
"""How JSON begins, and prose hardly ever does."""
_RESTARTS = 20
"""How many brackets of prose that never close are stepped over."""


def read_json(reply: Completion, keys: Iterable[str] = ()) -> Any:
    """The JSON value of a reply, whatever is written around it.

    Args:
        reply: as it came.
        keys: a value that holds one of these (of several values in one reply) is the one that is meant; the
            last such value wins, since models correct themselves.

    Raises:
        AnswerError: there is none; says where the reader gave up, keeps the reply.
    """
    text = _without_thoughts(reply.text).strip().removeprefix("\ufeff")
    if not text:
        raise AnswerError("the reply is empty", reply.text)
    wanted = {key.casefold() for key in keys}
    best: tuple[bool, Any] | None = None
    for candidate in _candidates(text):
        try:
            value = _parsed(candidate)
        except ValueError:
            continue
        if isinstance(value, (dict, list)):
            meant = bool(wanted & _keys_of(value))
            if best is None or meant or not best[0]:
                best = (meant, value)
            if candidate is text:  # the whole reply is JSON: nothing else can be meant
                break
    if best is None or (_cut_off(text) and not (best[0] and reply.finish_reason != "length")):
        raise AnswerError(_complaint(text, reply), reply.text)
    value = best[1]
    if isinstance(value, list) and len(value) == 1 and wanted & _keys_of(value[0]):
        return value[0]  # the object that was asked for, in a list of its own
    return value


def _without_thoughts(text: str) -> str:
    """The text without its <think> ... </think> parts; one that never closes is left as it is."""
    kept: list[str] = []
    end, opened = 0, None
    for tag in _THOUGHT.finditer(text):
        if not tag[1]:
            opened = tag.start() if opened is None else opened
        elif opened is not None:
            kept.append(text[end:opened])
            end, opened = tag.end(), None
    return "".join([*kept, text[end:]])


def _cut_off(text: str) -> bool:
    """Whether the text ends inside of a JSON value; a complete value that lies inside is only a part of it."""
    try:
        _parsed(text)
    except ValueError:
        return any(end is None and _OPENING.match(text, start) for start, end in _brackets(text))
    return False


def _candidates(text: str) -> Iterator[str]:
    yield text
    yield from _spans(text)
    for found in _FENCED.finditer(text):
        yield found[1].strip()


def _spans(text: str) -> Iterator[str]:
    """The outermost bracketed parts of a text, in order."""
    return (text[start:end] for start, end in _brackets(text) if end is not None)


def _brackets(text: str) -> Iterator[tuple[int, int | None]]:
    """Start and end of each outermost bracket; None where it never closes.

    Nothing is looked for inside of JSON that never closes: that is a reply that was cut off.
    """
    position, restarts = 0, 0
    while restarts < _RESTARTS and (found := re.compile(r"[{\[]").search(text, position)):
        end = _closing(text, found.start())
        yield found.start(), end
        if end is None and _OPENING.match(text, found.start()):
            return
        restarts += end is None
        position = end or found.end()


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text, start):
        if (c := found[0]) in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
            if depth == 0:
                return found.end()
    return None


def _parsed(text: str) -> Any:
    try:
        value = _loads(text)
    except ValueError:
        value = _loads(_STRING_OR_COMMA.sub(lambda m: "" if m[0] == "," else m[0], text))
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):  # JSON in a JSON string
        value = _loads(value)
    return value


def _loads(text: str) -> Any:
    try:
        return json.loads(text, strict=False, parse_constant=lambda _: None)
    except RecursionError as e:
        raise ValueError("the JSON is nested too deeply") from e


def _keys_of(value: Any) -> set[str]:
    items = value if isinstance(value, list) else [value]
    return {str(key).casefold() for item in items[:100] if isinstance(item, dict) for key in item}


def _complaint(text: str, reply: Completion) -> str:
    if reply.finish_reason == "length":
        return "the reply was cut off at the token limit before its JSON was complete; answer more briefly"
    found = _FENCED.search(text)
    body = found[1] if found else text[m.start() :] if (m := re.search(r"[{\[]", text)) else ""
    if not body:
        return "the reply holds no JSON"
    try:
        _parsed(body)
    except ValueError as e:
        return f"the JSON is not valid: {e}"
    return "the reply holds no JSON object"


# ---- reading values -------------------------------------------------------------------------------------


def lowered(item: Mapping[Any, Any]) -> dict[str, Any]:
    """The same mapping with keys in one form: "Experience ID" -> "experience_id"."""
    return {re.sub(r"[\s-]+", "_", str(key).strip().casefold()): value for key, value in item.items()}


def first_of(item: Mapping[str, Any], *keys: str) -> Any:
    """The first value that is there and not null."""
    return next((item[key] for key in keys if item.get(key) is not None), None)


def plain(value: Any) -> str:
    """A value as text that can be stored: "" for null; no NUL, no half surrogate pairs."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("\x00", "").encode("utf-8", "replace").decode().strip()


def listed(value: Any) -> list[Any]:
    """A list, where one thing or none may have been given in its place."""
    if value is None or (isinstance(value, str) and value.strip().casefold() in NOTHING):
        return []
    return list(value) if isinstance(value, list) else [value]


NOTHING = {"", "none", "null", "n/a", "-", "[]", "no", "nothing"}


def labels_in(value: Any) -> list[str]:
    """Ids or labels without brackets and quotes, in order, each once; beside brackets nothing else counts.

    >>> labels_in("E-0007 and [G1] are alike"), labels_in("E-0007 and G1, G1")
    (['G1'], ['E-0007', 'G1'])
    >>> labels_in([3, "`R2`", None]), labels_in("none")
    (['3', 'R2'], [])
    """
    found: list[str] = []
    for entry in listed(value):
        if isinstance(entry, Mapping):
            entry = first_of(lowered(entry), "id", "label", "rollout", "draft")  # noqa: PLW2901
        if isinstance(entry, str):
            bracketed = re.findall(r"\[([^\]]+)\]", entry)
            found += re.split(r"[,;\s]+", " ".join(bracketed) or entry)
        elif isinstance(entry, int) and not isinstance(entry, bool):
            found.append(str(entry))
        elif entry is not None:
            found.append(json.dumps(entry))
    stripped = [name.strip().strip("[](){}<>\"'`#.:").strip() for name in found]
    return list(dict.fromkeys(name for name in stripped if name.casefold() not in NOTHING | {"and"}))
